# SPDX-License-Identifier: Apache-2.0
"""What is below no resource: versions, groups, health, OpenAPI."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from . import openapi
from .errors import no_such_page, no_such_path
from .resources import NAMESPACES, Key, Resource, served

_COLLECTION = "deletecollection"
_VERBS = [
    "create",
    "delete",
    _COLLECTION,
    "get",
    "list",
    "patch",
    "update",
    "watch",
]
HEALTH = ("healthz", "livez", "readyz")
# The checks of a kube-apiserver 1.35, in its order.
_CHECKS = (
    *("ping", "log", "etcd", "etcd-readiness", "informer-sync"),
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
            "start-kube-apiserver-identity-lease-controller",
            "start-kube-apiserver-identity-lease-garbage-collector",
            "start-legacy-token-tracking-controller",
            "start-service-ip-repair-controllers",
            "rbac/bootstrap-roles",
            "scheduling/bootstrap-system-priority-classes",
            "priority-and-fairness-config-producer",
            "bootstrap-controller",
            "start-kubernetes-service-cidr-controller",
            "start-kube-aggregator-informers",
            "apiservice-status-local-available-controller",
            "apiservice-status-remote-available-controller",
            "apiservice-registration-controller",
            "apiservice-discovery-controller",
            "kube-apiserver-autoregistration",
        )
    ),
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "shutdown",
)
_ONLY_READY = ("etcd-readiness", "informer-sync", "shutdown")
_ETCD_CHECKS = ("etcd", "etcd-readiness")
# What is done after the listener is open; the last of it takes about a second.
_STARTING_CHECKS = ("poststarthook/rbac/bootstrap-roles",)
_NO_ETCD = "error getting data from etcd: context deadline exceeded"
_STARTING = "not finished"
TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"

Answer = tuple[Any, str]
"""A body (bytes, or what becomes JSON) and its content type."""


def is_open(parts: list[str]) -> bool:
    """Whether anybody may ask, as health checks of load balancers do."""
    return parts[0] in (*HEALTH, "version")


def health(
    parts: list[str], verbose: bool, etcd: bool = True, starting: bool = False
) -> tuple[int, bytes]:
    """Status and text of a health check (k8s.io/apiserver, ``healthz.go``).

    :param parts: of the path: ``readyz``, or ``readyz`` and the name of one check.
    :param verbose: the report of all checks is wanted even if they pass.
    :param etcd: whether etcd answers.
    :param starting: the server has only just begun to listen.
    :raises ApiError: 404, there is no such check.
    """
    probe, one = parts[0], "/".join(parts[1:])
    checks = [c for c in _CHECKS if probe == "readyz" or c not in _ONLY_READY]
    failed = (*(() if etcd else _ETCD_CHECKS), *(_STARTING_CHECKS if starting else ()))
    if one:
        if one not in checks:
            raise no_such_page()
        why = _NO_ETCD if one in _ETCD_CHECKS else _STARTING
        bad = one in failed
        text = f"internal server error: {why}\n" if bad else "ok"
        return (500 if bad else 200), text.encode()
    bad = any(check in failed for check in checks)
    if not bad and not verbose:
        return 200, b"ok"
    lines = [
        f"[-]{c} failed: reason withheld" if c in failed else f"[+]{c} ok"
        for c in checks
    ]
    lines.append(f"{probe} check {'failed' if bad else 'passed'}")
    return (500 if bad else 200), "".join(f"{line}\n" for line in lines).encode()


def answer(
    parts: list[str],
    kubernetes_version: str,
    host: str,
    kinds: Mapping[Key, Resource] = MappingProxyType({}),
) -> Answer:
    """The answer for a path without a resource.

    :param host: how the client called this server.
    :raises ApiError: 404 for anything else.
    """
    match parts:
        case ["version"]:
            return _version(kubernetes_version), _JSON
        case ["openapi", "v2"]:
            return openapi.version_2(kinds, kubernetes_version), openapi.V2_CONTENT_TYPE
        case ["openapi", "v3"]:
            return openapi.version_3_index(kinds), _JSON
        case ["openapi", "v3", "api", version]:
            return openapi.version_3(kinds, "", version, kubernetes_version), _JSON
        case ["openapi", "v3", "apis", group, version]:
            document = openapi.version_3(kinds, group, version, kubernetes_version)
            return document, _JSON
        case ["api"]:
            return _core_versions(host), _JSON
        case ["apis"]:
            groups = list(_groups(kinds).values())
            body = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            return body, _JSON
        case ["apis", group] if group in _groups(kinds):
            return {
                "kind": "APIGroup",
                "apiVersion": "v1",
                **_groups(kinds)[group],
            }, _JSON
        case ["api", version] if served(kinds, "", version):
            return _resource_list(kinds, "", version), _JSON
        case ["apis", group, version] if served(kinds, group, version):
            return _resource_list(kinds, group, version), _JSON
        case ["apis", group, _] if group in _groups(kinds):
            raise no_such_path()
    raise no_such_page()


def _version(kubernetes_version: str) -> dict[str, str]:
    major, minor = kubernetes_version.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
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


def _groups(kinds: Mapping[Key, Resource]) -> dict[str, dict[str, Any]]:
    versions: dict[str, list[dict[str, str]]] = {}
    for resource in kinds.values():
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
    verbs = [v for v in _VERBS if resource is not NAMESPACES or v != _COLLECTION]
    entries: list[dict[str, Any]] = [
        {
            "name": resource.plural,
            "singularName": resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": verbs,
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
            "verbs": ["create"] if sub.is_posted else ["get", "patch", "update"],
        }
        if sub.group_version:
            entry["group"], entry["version"] = sub.group_version.split("/")
        entries.append(entry)
    return entries


def _resource_list(
    kinds: Mapping[Key, Resource], group: str, version: str
) -> dict[str, Any]:
    resources = [entry for r in served(kinds, group, version) for entry in _entries(r)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }
