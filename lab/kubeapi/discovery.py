"""What is below no resource: versions, groups, health, OpenAPI."""

from typing import Any

from . import openapi
from .errors import no_such_path
from .resources import RESOURCES, Resource, served

_VERBS = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
]
HEALTH = ("healthz", "livez", "readyz")
# The checks of a kube-apiserver, in its order; the first ones ask etcd.
_ETCD_CHECKS = ("etcd", "etcd-readiness")
_OTHER_CHECKS = (
    "informer-sync",
    *(
        f"poststarthook/{hook}"
        for hook in (
            "start-apiserver-admission-initializer",
            "generic-apiserver-start-informers",
            "priority-and-fairness-config-consumer",
            "priority-and-fairness-filter",
            "storage-object-count-tracker-hook",
            "start-apiextensions-informers",
            "start-apiextensions-controllers",
            "crd-informer-synced",
            "start-system-namespaces-controller",
            "start-cluster-authentication-info-controller",
            "start-legacy-token-tracking-controller",
            "rbac/bootstrap-roles",
            "scheduling/bootstrap-system-priority-classes",
            "priority-and-fairness-config-producer",
            "bootstrap-controller",
            "start-kube-aggregator-informers",
            "apiservice-registration-controller",
            "apiservice-status-available-controller",
            "kube-apiserver-autoregistration",
        )
    ),
    "autoregister-completion",
    "shutdown",
)
_JSON = "application/json"

Answer = tuple[Any, str]
"""A body (bytes, or what becomes JSON) and its content type."""


def is_open(parts: list[str]) -> bool:
    """Whether anybody may ask, as health checks of load balancers do."""
    return parts[0] in (*HEALTH, "version")


def without_etcd(probe: str) -> bytes:
    """The report of a health check that fails because etcd does not answer.

    kube-apiserver sends it with status 500 (k8s.io/apiserver, ``healthz.go``).
    """
    lines = [
        *("[+]ping ok", "[+]log ok"),
        *(f"[-]{name} failed: reason withheld" for name in _ETCD_CHECKS),
        *(f"[+]{name} ok" for name in _OTHER_CHECKS),
        f"{probe} check failed",
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def answer(parts: list[str], kubernetes_version: str, host: str) -> Answer:
    """The answer for a path without a resource.

    :param host: how the client called this server.
    :raises ApiError: 404 for anything else.
    """
    match parts:
        case [probe, *_] if probe in HEALTH:
            return b"ok", "text/plain"
        case ["version"]:
            return _version(kubernetes_version), _JSON
        case ["openapi", "v2"]:
            return openapi.version_2(kubernetes_version), openapi.V2_CONTENT_TYPE
        case ["openapi", "v3"]:
            return openapi.version_3_index(), _JSON
        case ["openapi", "v3", "api", version]:
            return openapi.version_3("", version, kubernetes_version), _JSON
        case ["openapi", "v3", "apis", group, version]:
            return openapi.version_3(group, version, kubernetes_version), _JSON
        case ["api"]:
            return _core_versions(host), _JSON
        case ["apis"]:
            groups = list(_groups().values())
            body = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            return body, _JSON
        case ["apis", group] if group in _groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **_groups()[group]}, _JSON
        case ["api", version] if served("", version):
            return _resource_list("", version), _JSON
        case ["apis", group, version] if served(group, version):
            return _resource_list(group, version), _JSON
    raise no_such_path()


def _version(kubernetes_version: str) -> dict[str, str]:
    major, minor = kubernetes_version.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": kubernetes_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "go1",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _core_versions(host: str) -> dict[str, Any]:
    """The Python client refuses the answer without its server addresses."""
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": host}
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [address],
    }


def _groups() -> dict[str, dict[str, Any]]:
    versions: dict[str, list[dict[str, str]]] = {}
    for resource in RESOURCES.values():
        for version in resource.versions if resource.group else ():
            entry = {"groupVersion": f"{resource.group}/{version}", "version": version}
            known = versions.setdefault(resource.group, [])
            if entry not in known:
                known.append(entry)
    return {
        group: {"name": group, "versions": known, "preferredVersion": known[0]}
        for group, known in versions.items()
    }


def _entries(resource: Resource) -> list[dict[str, Any]]:
    in_all = resource.plural in ("pods", "services") or resource.group == "apps"
    entries: list[dict[str, Any]] = [
        {
            "name": resource.plural,
            "singularName": resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _VERBS,
            "shortNames": list(resource.short_names),
            "categories": ["all"] if in_all else [],
        }
    ]
    for sub in resource.subresources:
        entry = {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": sub.kind or resource.kind,
            "verbs": ["create"] if sub.kind else ["get", "patch", "update"],
        }
        if sub.group_version:
            entry["group"], entry["version"] = sub.group_version.split("/")
        entries.append(entry)
    return entries


def _resource_list(group: str, version: str) -> dict[str, Any]:
    resources = [entry for r in served(group, version) for entry in _entries(r)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }
