# SPDX-License-Identifier: Apache-2.0
"""What a request is about: its path and method as a resource and an RBAC verb."""

from collections.abc import Mapping
from dataclasses import dataclass

from .access import Access
from .errors import method_not_allowed, no_such_page, no_such_path
from .resources import Key, Resource, served

_OF_NAMESPACE_ITSELF = ("status", "finalize")


@dataclass(frozen=True)
class Target:
    """The object or collection that a path names; "" and None where it names none."""

    resource: Resource
    version: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


def is_resource_path(parts: list[str]) -> bool:
    """Whether the path is below ``/api/VERSION`` or ``/apis/GROUP/VERSION``."""
    return len(parts) > {"api": 2, "apis": 3}.get(parts[0], len(parts))


def parse(kinds: Mapping[Key, Resource], parts: list[str]) -> Target:
    """:raises ApiError: 404 if nothing is served there."""
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    else:
        group, version, rest = parts[1], parts[2], parts[3:]
    namespace = None
    in_namespace = rest[0] == "namespaces" and len(rest) > 2
    if in_namespace and rest[2] not in _OF_NAMESPACE_ITSELF:
        namespace, rest = rest[1], rest[2:]
    for resource in served(kinds, group, version):
        if resource.plural == rest[0]:
            name, subresource = ([*rest, "", ""])[1:3]
            return Target(resource, version, namespace, name, subresource)
    if not any(resource.group == group for resource in kinds.values()):
        raise no_such_page()
    raise no_such_path()


def access_of(target: Target, method: str, query: Mapping[str, str]) -> Access:
    """What RBAC is asked about the request.

    :raises ApiError: 405 for a method that no resource has.
    """
    match method, bool(target.name):
        case "GET", True:
            verb = "get"
        case "GET", False:
            verb = "list"
        case "POST", _:
            verb = "create"
        case "PUT", True:
            verb = "update"
        case "PATCH", True:
            verb = "patch"
        case "DELETE", named:
            verb = "delete" if named else "deletecollection"
        case _:
            raise method_not_allowed()
    if method == "GET" and query.get("watch") in ("true", "1"):
        verb = "watch"
    plural = target.resource.plural
    return Access(
        verb=verb,
        group=target.resource.group,
        resource=f"{plural}/{target.subresource}" if target.subresource else plural,
        namespace=target.namespace,
        name=target.name,
    )
