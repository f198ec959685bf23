# SPDX-License-Identifier: Apache-2.0
"""Requests that tell whether an API server enforces a tenant's admission policy.

Made to the laboratory's stand-in and to kube-apiserver.
"""

from collections.abc import Callable
from typing import Any

from tacker_k8s_mgmt.features.tenants import tenant_objects
from tacker_k8s_mgmt.request.tenants import Tenant

#: Makes a request (method, path, body, content type); returns status and body.
Ask = Callable[[str, str, Any, str], tuple[int, Any]]

_JSON = "application/json"
_MERGE, _APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
_STRATEGIC = "application/strategic-merge-patch+json"
_PORTS = [{"port": 80, "protocol": "TCP"}]
_IPS: dict[str, Any] = {"externalIPs": ["192.0.2.1"]}
_MORE_IPS: dict[str, Any] = {"externalIPs": ["192.0.2.1", "192.0.2.2"]}
_NAME = {"type": "ExternalName", "externalName": "a.example.org"}
_BLUE, _FREE = (f"/api/v1/namespaces/{name}/services" for name in ("blue", "free"))

Request = tuple[str, str, str, Any, str]


def _service(name: str, **spec: Any) -> dict[str, Any]:
    ports = {} if spec.get("type") == "ExternalName" else {"ports": _PORTS}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {**ports, **spec},
    }


def _created(text: str, place: str = _BLUE, /, **spec: Any) -> Request:
    name = text.replace(" ", "-").lower()
    return f"create {text}", "POST", place, _service(name, **spec), _JSON


def _patched(text: str, name: str, change: Any, kind: str = _MERGE) -> Request:
    return f"patch {text}", "PATCH", f"{_BLUE}/{name}", change, kind


#: What is there before the policy is.
BEFORE: tuple[Request, ...] = (
    _created("old ips", **_IPS),
    _created("old name", **_NAME),
    _created("old name two", **_NAME),
    _created("plain"),
)
REQUESTS: tuple[Request, ...] = (
    _created("a cluster ip"),
    _created("a headless one", clusterIP="None"),
    _created("a node port", type="NodePort"),
    _created("a balanced one", type="LoadBalancer"),
    _created(
        "a balanced one of sources",
        type="LoadBalancer",
        loadBalancerSourceRanges=["192.0.2.0/24"],
    ),
    _created("no ips", externalIPs=[]),
    _created("null ips", externalIPs=None),
    _created("ips", **_IPS),
    _created("ips of a balanced one", type="LoadBalancer", **_IPS),
    _created("a name", **_NAME),
    _created("a name and ips", **_NAME, **_IPS),
    _created("a name of no type", externalName="a.example.org"),
    _created("ips elsewhere", _FREE, **_IPS),
    _created("a name elsewhere", _FREE, **_NAME),
    (
        "create ips without effect",
        "POST",
        f"{_BLUE}?dryRun=All",
        _service("dry", **_IPS),
        _JSON,
    ),
    (
        "apply ips",
        "PATCH",
        f"{_BLUE}/applied?fieldManager=x",
        _service("applied", **_IPS),
        _APPLY,
    ),
    (
        "apply none",
        "PATCH",
        f"{_BLUE}/applied?fieldManager=x",
        _service("applied"),
        _APPLY,
    ),
    (
        "apply ips to it",
        "PATCH",
        f"{_BLUE}/applied?fieldManager=x",
        _service("applied", **_IPS),
        _APPLY,
    ),
    _patched("ips onto a plain one", "plain", {"spec": _IPS}),
    _patched("ips onto it otherwise", "plain", {"spec": _IPS}, _STRATEGIC),
    _patched("a plain one to a name", "plain", {"spec": _NAME}),
    _patched("a label", "old-ips", {"metadata": {"labels": {"a": "b"}}}),
    _patched("a finalizer", "old-ips", {"metadata": {"finalizers": ["x.y/z"]}}),
    _patched("more ips", "old-ips", {"spec": _MORE_IPS}),
    _patched("other ips", "old-ips", {"spec": {"externalIPs": ["192.0.2.2"]}}),
    _patched("the type", "old-ips", {"spec": {"type": "LoadBalancer"}}),
    # The address of the load balancer, as the driver publishes it.
    _patched(
        "the status",
        "old-ips/status",
        {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}},
    ),
    _patched("an annotation", "plain", {"metadata": {"annotations": {"a": "b"}}}),
    _patched("the finalizer away", "old-ips", {"metadata": {"finalizers": None}}),
    _patched("no ips any more", "old-ips", {"spec": {"externalIPs": None}}),
    _patched("ips again", "old-ips", {"spec": _IPS}),
    _patched("a label of a name", "old-name", {"metadata": {"labels": {"a": "b"}}}),
    _patched("another name", "old-name", {"spec": {"externalName": "b.example.org"}}),
    _patched("a name and ips", "old-name", {"spec": _IPS}),
    _patched(
        "a name to a plain one",
        "old-name",
        {"spec": {"type": "ClusterIP", "externalName": None, "ports": _PORTS}},
    ),
    _patched("and back", "old-name", {"spec": _NAME}),
    ("delete old ips", "DELETE", f"{_BLUE}/old-ips", None, _JSON),
    ("delete a name", "DELETE", f"{_BLUE}/old-name-two", None, _JSON),
)


def guard() -> tuple[dict[str, Any], ...]:
    """The policy of tenant blue and its binding."""
    objects = tenant_objects.of(Tenant(name="blue"), guarded=True)
    group = tenant_objects.POLICY[0]
    return tuple(one for one in objects if one["apiVersion"] == group)


def prepare(ask: Ask) -> None:
    """Make namespaces, what was there before, and then the policy."""
    for name in ("blue", "free"):
        _made(ask, "/api/v1/namespaces", {"metadata": {"name": name}})
    for _, _, path, body, _ in BEFORE:
        _made(ask, path, body)
    policy, binding = guard()
    group = f"/apis/{policy['apiVersion']}"
    _made(ask, f"{group}/validatingadmissionpolicies", policy)
    _made(ask, f"{group}/validatingadmissionpolicybindings", binding)


def _made(ask: Ask, path: str, body: Any) -> None:
    status, answer = ask("POST", path, body, _JSON)
    assert status == 201, answer


def is_active(ask: Ask) -> bool:
    """Whether the policy holds by now; kube-apiserver learns of it after a moment."""
    probe = _service("probe", **_IPS)
    return ask("POST", f"{_BLUE}?dryRun=All", probe, _JSON)[0] != 201


def answers(ask: Ask) -> dict[str, str]:
    """Status of each answer, and the message of a refusal, by the request's name.

    The policy's own message is its number.
    """
    own = [message for _, message in tenant_objects._FOR_SERVICES]
    found = {}
    for name, *request in REQUESTS:
        status, body = ask(*request)
        text = str(body.get("message", "")) if body.get("kind") == "Status" else ""
        for number, message in enumerate(own):
            text = text.replace(message, f"({number})")
        found[name] = f"{status} {text}".strip()
    return found
