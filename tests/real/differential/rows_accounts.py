# SPDX-License-Identifier: Apache-2.0
"""Service accounts, their Secrets and tokens."""

import base64
import json
from typing import Any

from tests.helpers import kubeapi
from tests.real.differential.rows import Row, comparable, http, kubectl, manifest_list
from tests.real.differential.site import Site

_ADMIN = "an-administrator"


def _claims(token: str) -> Any:
    """Header, names of the claims and what is in those that are the same everywhere."""
    header, payload = (
        json.loads(base64.urlsafe_b64decode(part + "==="))
        for part in token.split(".")[:2]
    )
    nested = payload.get("kubernetes.io")
    return comparable(
        {
            "alg": header["alg"],
            "header": sorted(header),
            "claims": sorted(payload),
            "sub": payload["sub"],
            "iss": payload["iss"],
            "nested": {
                key: sorted(nested[key])
                if isinstance(nested[key], dict)
                else nested[key]
                for key in nested
            }
            if nested
            else None,
            "expires in": payload["exp"] - payload["iat"] if "exp" in payload else None,
        }
    )


def _secret(site: Site) -> Any:
    path = f"/api/v1/namespaces/kube-system/secrets/{_ADMIN}"
    secret = site.wait(lambda: (s := site.get(path)).get("data") and s)
    token = kubeapi.secret_value(secret, "token")
    site.kept["admin"] = token
    return {
        "keys": sorted(secret["data"]),
        "type": secret["type"],
        "annotations": sorted(secret["metadata"]["annotations"]),
        "namespace": kubeapi.secret_value(secret, "namespace"),
        "ca": kubeapi.secret_value(secret, "ca.crt") == site.ca.read_text(),
        "token": _claims(token),
    }


def _no_account(site: Site) -> Any:
    """A Secret for an account that does not exist."""
    secret = dict(kubeapi.admin_manifests("nobody")[2])
    path = "/api/v1/namespaces/kube-system/secrets"
    made = site.request("POST", path, secret)
    site.wait(lambda: site.request("GET", f"{path}/nobody").status == 404)
    return {"made": made.status}


def _requested(site: Site) -> Any:
    done = site.run("create", "token", "guest", "--duration", "1h")
    site.kept["guest"] = done.stdout.strip()
    return {"exit": done.returncode, "token": _claims(site.kept["guest"])}


def _deleted_account(site: Site) -> Any:
    site.run("create", "serviceaccount", "short")
    token = site.run("create", "token", "short").stdout.strip()
    site.run("delete", "serviceaccount", "short")
    refused = site.wait(
        lambda: (a := site.request("GET", "/api/", token=token)).status != 200 and a
    )
    return {"status": refused.status, "body": comparable(refused.body)}


ROWS = (
    kubectl(
        "accounts: the driver's manifest",
        "apply -f -",
        stdin=manifest_list(*kubeapi.admin_manifests(_ADMIN)),
    ),
    Row("accounts: the Secret with its token", _secret),
    kubectl(
        "accounts: the manifest again",
        "apply -f -",
        stdin=manifest_list(*kubeapi.admin_manifests(_ADMIN)),
    ),
    http(
        "accounts: namespaces, which Tacker asks with it",
        "GET",
        "/api/v1/namespaces",
        None,
        "items.*.metadata.name",
        token="admin",
    ),
    kubectl(
        "accounts: may it delete pods?",
        "auth can-i delete pods",
        token="admin",
    ),
    kubectl(
        "accounts: who is it?",
        "auth whoami -o "
        "'jsonpath={{.status.userInfo.username}} {{.status.userInfo.groups}}'",
        token="admin",
    ),
    Row("accounts: the Secret of none goes", _no_account),
    kubectl("accounts: a guest", "create serviceaccount guest"),
    Row("accounts: a token on request", _requested),
    kubectl("accounts: the guest is refused", "get nodes", token="guest"),
    kubectl("accounts: the guest may not delete", "delete node w1", token="guest"),
    kubectl("accounts: may the guest?", "auth can-i list nodes", token="guest"),
    kubectl("accounts: a wrong token", "get nodes", token="wrong"),
    Row("accounts: the token of one that was deleted", _deleted_account),
    kubectl(
        "accounts: a secret that is not there",
        "get secret none --ignore-not-found -o json",
    ),
    kubectl("accounts: a secret that is not there, an error", "get secret none"),
)
