# SPDX-License-Identifier: Apache-2.0
"""Tenants: what the driver applies for one, and what its token allows."""

from http import HTTPStatus
from typing import Any

from tacker_k8s_mgmt.features.tenants import tenant_objects
from tacker_k8s_mgmt.request.tenants import Tenant
from tests.helpers import admission_requests, kubeapi
from tests.real.differential.rows import Row, comparable, http, kubectl, manifest_list
from tests.real.differential.site import Site

_BLUE = Tenant.model_validate(
    {
        "name": "blue",
        "pod_security": "baseline",
        "quota": {"pods": 4, "requests.cpu": "2"},
        "limits": {"default": {"cpu": "500m", "memory": "128Mi"}},
        "allowed": [
            {
                "direction": "ingress",
                "networks": ["192.0.2.0/24"],
                "ports": [{"port": 80}],
            }
        ],
    }
)
_OBJECTS = (
    tenant_objects.accounts(),
    *tenant_objects.of(_BLUE, guarded=False),
    tenant_objects.token("blue"),
)
_APPLY = "apply --server-side --force-conflicts --field-manager ours -f -"
_SECRET = f"/api/v1/namespaces/{tenant_objects.ACCOUNTS}/secrets/blue"
#: A verb, a kind, a namespace: some that the token allows, and some that it does not.
_ASKED = (
    *("create pods blue", "create pods default", "delete deployments.apps blue"),
    *("get secrets blue", "get secrets default", "create networkpolicies blue"),
    *("get networkpolicies blue", "create resourcequotas blue", "list namespaces blue"),
    *("create endpoints blue", "create roles blue", "get nodes blue"),
)


def _token(site: Site) -> Any:
    secret = site.wait(lambda: (s := site.get(_SECRET)).get("data") and s)
    site.kept["blue"] = kubeapi.secret_value(secret, "token")
    return sorted(secret["data"])


def _refused(site: Site) -> Any:
    """What a real server answers as soon as it has forgotten the account."""

    def answer() -> Any:
        got = site.request("GET", "/api/v1/namespaces", token=site.kept["blue"])
        return got.status != HTTPStatus.OK and got

    refused = site.wait(answer)
    return {"status": refused.status, "body": comparable(refused.body)}


def _decided(site: Site) -> Any:
    """What the policy of a tenant's namespace admits and refuses."""

    def ask(method: str, path: str, body: Any, kind: str) -> tuple[int, Any]:
        got = site.request(method, path, body, headers={"Content-Type": kind})
        return got.status, got.body

    admission_requests.prepare(ask)
    site.wait(lambda: admission_requests.is_active(ask))
    return comparable(admission_requests.answers(ask))


def _path(manifest: Any) -> str:
    """Where an object of the tenant's own namespace is."""
    group = manifest["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    metadata, kind = manifest["metadata"], manifest["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return f"{root}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"


ROWS: tuple[Row, ...] = (
    kubectl("tenants: apply", _APPLY, stdin=manifest_list(*_OBJECTS)),
    kubectl("tenants: apply again", _APPLY, stdin=manifest_list(*_OBJECTS)),
    *(
        http(
            f"tenants: {one['kind']} {one['metadata']['name']}",
            "GET",
            _path(one),
            None,
            "metadata.labels spec rules roleRef subjects",
        )
        for one in _OBJECTS
        if one["metadata"].get("namespace") == "blue"
    ),
    Row("tenants: the token", _token),
    *(
        kubectl(
            f"tenants: may it {verb} {kind} in {namespace}?",
            f"auth can-i {verb} {kind} --namespace {namespace}",
            token="blue",
        )
        for verb, kind, namespace in map(str.split, _ASKED)
    ),
    kubectl("tenants: another's pods", "get pods -n default", token="blue"),
    kubectl("tenants: its own pods", "get pods -n blue", token="blue"),
    kubectl(
        "tenants: no namespace of its own",
        "create namespace green",
        token="blue",
    ),
    kubectl("tenants: the end", "delete namespace blue --wait=true"),
    kubectl(
        "tenants: its account",
        f"delete serviceaccount blue -n {tenant_objects.ACCOUNTS}",
    ),
    Row("tenants: its token is refused", _refused),
    Row("tenants: admission policies", _decided),
    kubectl("tenants: the end of those", "delete namespace blue free --wait=true"),
)
