# SPDX-License-Identifier: Apache-2.0
"""OpenAPI documents: just enough for kubectl's validation and patch code.

Version 2 is sent as protobuf, every kind as an object without properties that carries
its group, version and kind. ``type: object`` must be there: kubectl 1.20's ``apply``
dies of a nil pointer without it.
"""

from collections.abc import Mapping
from typing import Any

from .protobuf import field
from .resources import Key, Resource, served

V2_CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_GVK = "x-kubernetes-group-version-kind"

# Field numbers of openapi.v2.Document and what is in it.
_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9
_SCHEMA_TYPE, _SCHEMA_EXTENSION = 22, 31
_NAME, _VALUE, _YAML = 1, 2, 2


def version_2(kinds: Mapping[Key, Resource], kubernetes_version: str) -> bytes:
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


def version_3_index(kinds: Mapping[Key, Resource]) -> dict[str, Any]:
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


def version_3(
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
