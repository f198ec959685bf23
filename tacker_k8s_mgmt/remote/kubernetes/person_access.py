# SPDX-License-Identifier: Apache-2.0
"""Access for a person: a service account with one cluster role, and tokens.

The account of a person and a role is another one than that of the same person and
another role, so a token never gets rights that were granted later. It is deleted to
withdraw all of its tokens at once.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.model.cluster import PersonAccess
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient

#: Of the accounts of persons; nothing else is in it.
NAMESPACE = "tacker-k8s-mgmt-users"
# Of admin.conf; the administrator's key in it stays there.
_AUTHORITY = "jsonpath-as-json={.clusters[0].cluster.certificate-authority-data}"


def person_access(
    client: KubeClient, person: str, role: str, seconds: int
) -> PersonAccess:
    """Create the account, if need be, and have a token issued; see ``KubeControl``."""
    # A person's name has no dot, so no two accounts have the same name.
    account = f"{person}.{role}"
    client.run("apply", "-f", "-", stdin=json.dumps(_manifest(account, role)))
    text = client.run("config", "view", "--raw", "-o", _AUTHORITY)
    with client.understanding("config view"):
        (authority,) = json_text.parse(text) or ("",)
    if not authority:
        raise errors.ClusterError(
            detail=f"admin.conf on {client.host} has no certificate authority."
        )
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    create = ("create", f"--raw={path}", "-f", "-")
    text = client.run(*create, stdin=json.dumps(request))
    with client.understanding(f"create --raw={path}"):
        status = json_text.parse(text)["status"]
        return PersonAccess(
            f"system:serviceaccount:{NAMESPACE}:{account}",
            SecretStr(status["token"]),
            status["expirationTimestamp"],
            base64.b64decode(authority).decode(),
        )


def _manifest(account: str, role: str) -> Mapping[str, Any]:
    metadata = {"name": account, "namespace": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{NAMESPACE}:{account}"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": role,
                },
                "subjects": [{"kind": "ServiceAccount", **metadata}],
            },
        ],
    }
