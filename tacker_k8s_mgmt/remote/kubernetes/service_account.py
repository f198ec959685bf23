# SPDX-License-Identifier: Apache-2.0
"""The driver's service account, an administrator of the cluster."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.cluster import ClusterAccess
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient

ACCOUNT = "tacker-k8s-mgmt-admin"
NAMESPACE = "kube-system"


def admin_access(client: KubeClient, limit: float) -> ClusterAccess:
    """Create the account, if need be, and return its access; see ``KubeControl``."""
    # Apply repeatedly: the token controller deletes a Secret whose account it does not
    # know yet.
    secret = ("secret", ACCOUNT, "-n", NAMESPACE, "--ignore-not-found")
    waiting = Backoff(limit)
    while True:
        client.run("apply", "-f", "-", stdin=json.dumps(_MANIFEST))
        access = client.get(*secret, read=ClusterAccess.read)
        if access is not None:
            return replace(access, uid=client.get(*_NAMESPACE, read=_uid))
        if waiting.spent():
            raise errors.ClusterError(
                detail=f"Secret {NAMESPACE}/{ACCOUNT} holds no token after "
                f"{limit:g} s.",
                hint="Look whether kube-controller-manager runs.",
            )
        waiting.pause()


def _uid(namespace: Mapping[str, Any]) -> str:
    return str(namespace["metadata"]["uid"])


_NAMESPACE = ("namespace", NAMESPACE)
_METADATA = {"name": ACCOUNT, "namespace": NAMESPACE}
_MANIFEST: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _METADATA},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", **_METADATA}],
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {
                **_METADATA,
                "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
            },
        },
    ],
}
