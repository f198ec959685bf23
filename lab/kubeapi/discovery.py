# SPDX-License-Identifier: Apache-2.0
"""How a client learns what the API has: discovery and OpenAPI, as JSON and protobuf.

kubectl and Go clients send and want protobuf at some places; only those are known.
"""

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .resources import (
    NAMESPACES,
    ApiError,
    Key,
    Resource,
    no_such_page,
    no_such_path,
    served,
)

_MAGIC_LENGTH = 4  # b"k8s\0"
_VARINT, _FIXED64, _BYTES = 0, 1, 2

_METADATA_TEXTS = {1: "name", 2: "generateName", 3: "namespace"}
_METADATA_MAPS = {11: "labels", 12: "annotations"}

# The fields of each kind's spec: a name, or a name and the fields of a message.
_RESOURCE_ATTRIBUTES = {
    1: "namespace",
    2: "verb",
    3: "group",
    4: "version",
    5: "resource",
    6: "subresource",
    7: "name",
}
_SPECS: dict[str, dict[int, Any]] = {
    "Namespace": {},
    "ServiceAccount": {},
    "Eviction": {},
    "SelfSubjectReview": {},
    "TokenRequest": {4: "expirationSeconds"},
    "SelfSubjectAccessReview": {
        1: ("resourceAttributes", _RESOURCE_ATTRIBUTES),
        2: ("nonResourceAttributes", {1: "path", 2: "verb"}),
    },
}


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number: int, data: bytes | str) -> bytes:
    """One length-delimited field."""
    data = data.encode() if isinstance(data, str) else data
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _read_varint(data: bytes, index: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[index]
        index += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, index


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message as (number, int or bytes); fixed-width ones are left out.

    :raises IndexError: if the message ends in the middle of a field.
    """
    index = 0
    found: list[tuple[int, Any]] = []
    while index < len(data):
        tag, index = _read_varint(data, index)
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, index = _read_varint(data, index)
            found.append((tag >> 3, value))
        elif wire_type == _BYTES:
            length, index = _read_varint(data, index)
            found.append((tag >> 3, data[index : index + length]))
            index += length
        else:
            index += 8 if wire_type == _FIXED64 else 4
    return found


def _metadata(data: bytes) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for number, value in fields(data):
        if number in _METADATA_TEXTS and value:
            metadata[_METADATA_TEXTS[number]] = value.decode()
        elif number in _METADATA_MAPS:
            pair = {n: text.decode() for n, text in fields(value)}
            entries = metadata.setdefault(_METADATA_MAPS[number], {})
            entries[pair.get(1, "")] = pair.get(2, "")
    return metadata


def _message(data: bytes, names: dict[int, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for number, value in fields(data):
        match names.get(number):
            case (name, inner):
                message[name] = _message(value, inner)
            case str(name):
                message[name] = value.decode() if isinstance(value, bytes) else value
    return message


def decode(raw: bytes) -> dict[str, Any]:
    """The object in a request body: magic, then runtime.Unknown{1: type, 2: object}.

    :raises ApiError: 415 for a kind that is not decoded.
    """
    envelope = dict(fields(raw[_MAGIC_LENGTH:]))
    type_meta = {number: text.decode() for number, text in fields(envelope[1])}
    api_version, kind = type_meta[1], type_meta[2]
    if kind == "DeleteOptions":
        return _delete_options(envelope[2])
    if kind == "Secret":
        return {"apiVersion": api_version, "kind": kind, **_secret(envelope[2])}
    if kind not in _SPECS:
        text = f"the stand-in does not decode {kind} from protobuf; send JSON"
        raise ApiError(415, "UnsupportedMediaType", text)
    parts = dict(fields(envelope[2]))
    spec = parts.get(2, b"")
    decoded = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": _metadata(parts.get(1, b"")),
    }
    if kind == "Eviction":
        return {**decoded, "deleteOptions": _delete_options(spec)}
    if not _SPECS[kind]:
        return decoded
    is_message = isinstance(spec, bytes)
    return {**decoded, "spec": _message(spec, _SPECS[kind]) if is_message else {}}


def _secret(data: bytes) -> dict[str, Any]:
    secret: dict[str, Any] = {"data": {}}
    for number, value in fields(data):
        if number == 1:
            secret["metadata"] = _metadata(value)
        elif number == 2:
            entry = dict(fields(value))
            content = base64.b64encode(entry.get(2, b""))
            secret["data"][entry[1].decode()] = content.decode()
        elif number == 3:
            secret["type"] = value.decode()
    return secret


def _delete_options(data: bytes) -> dict[str, Any]:
    options = _message(
        data, {1: "gracePeriodSeconds", 2: ("preconditions", {1: "uid"}), 5: "dryRun"}
    )
    return {key: value for key, value in options.items() if value not in ({}, "")}


V2_CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_GVK = "x-kubernetes-group-version-kind"

# Field numbers of openapi.v2.Document and what is in it.
_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9
_SCHEMA_TYPE, _SCHEMA_EXTENSION = 22, 31
_NAME, _VALUE, _YAML = 1, 2, 2


def openapi_2(kinds: Mapping[Key, Resource], kubernetes_version: str) -> bytes:
    """The whole document."""
    definitions = b""
    for resource in kinds.values():
        for version in resource.versions:
            kind = (
                f'- group: "{resource.group}"\n'
                f"  kind: {resource.kind}\n"
                f"  version: {version}\n"
            )
            extension = field(_NAME, _GVK) + field(_VALUE, field(_YAML, kind))
            schema = field(_SCHEMA_TYPE, field(1, "object"))
            schema += field(_SCHEMA_EXTENSION, extension)
            name = f"kubeapi.{resource.group or 'core'}.{version}.{resource.kind}"
            definitions += field(1, field(_NAME, name) + field(_VALUE, schema))
    info = field(1, "Kubernetes") + field(2, kubernetes_version)
    return (
        field(_SWAGGER, "2.0")
        + field(_INFO, info)
        + field(_PATHS, b"")
        + field(_DEFINITIONS, definitions)
    )


def openapi_3_index(kinds: Mapping[Key, Resource]) -> dict[str, Any]:
    """Where the version 3 documents of the groups are."""
    groups = {
        f"apis/{resource.group}/{version}" if resource.group else f"api/{version}"
        for resource in kinds.values()
        for version in resource.versions
    }
    return {
        "paths": {
            group: {"serverRelativeURL": f"/openapi/v3/{group}"}
            for group in sorted(groups)
        }
    }


def openapi_3(
    kinds: Mapping[Key, Resource], group: str, version: str, kubernetes_version: str
) -> dict[str, Any]:
    """The document of one group: the patch operations, which declare dry-run."""
    prefix = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    paths = {}
    for resource in served(kinds, group, version):
        scope = "namespaces/{namespace}/" if resource.namespaced else ""
        patch = {
            "parameters": [
                {"name": name, "in": "query", "schema": {"type": "string"}}
                for name in ("dryRun", "fieldValidation")
            ],
            "responses": {},
            _GVK: {"group": group, "version": version, "kind": resource.kind},
        }
        paths[f"{prefix}{scope}{resource.plural}/{{name}}"] = {"patch": patch}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": kubernetes_version},
        "paths": paths,
    }


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
            return openapi_2(kinds, kubernetes_version), V2_CONTENT_TYPE
        case ["openapi", "v3"]:
            return openapi_3_index(kinds), _JSON
        case ["openapi", "v3", "api", version]:
            return openapi_3(kinds, "", version, kubernetes_version), _JSON
        case ["openapi", "v3", "apis", group, version]:
            document = openapi_3(kinds, group, version, kubernetes_version)
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
