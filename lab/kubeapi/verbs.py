# SPDX-License-Identifier: Apache-2.0
"""Requests on resources: their paths, and what each verb does."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import access, admission, custom, patches, pods
from .access import Access, Identity
from .admission import with_ip_modes
from .cluster import Cluster
from .eviction import evict
from .objects import (
    Obj,
    check_selectors,
    dig,
    fields_match,
    labels_match,
    labels_of,
    name_of,
    namespace_of,
    timestamp,
    with_metadata,
)
from .resources import (
    ENDPOINTS,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ApiError,
    Key,
    Resource,
    bad_request,
    invalid,
    method_not_allowed,
    no_such_page,
    no_such_path,
    not_found,
    served,
    unsupported_media_type,
)
from .store import Store
from .tables import table

_ANSWER = b"served by a stand-in\n"


def answer_of_service(store: Store, namespace: str | None, name: str) -> bytes:
    """The answer of a pod.

    :param name: ``NAME``, ``NAME:PORT`` or ``SCHEME:NAME:PORT``.
    :raises ApiError: 404, there is no such Service; 503, no such port or no ready pod.
    """
    parts = name.split(":")
    service, port = (parts[1], parts[2]) if len(parts) == 3 else ([*parts, ""])[:2]
    found = store.find(SERVICES, namespace, service)
    if found is None:
        raise not_found(SERVICES, service)
    if port and not any(_is_port(one, port) for one in found["spec"].get("ports", ())):
        raise _unavailable(f'no service port {port} found for service "{service}"')
    endpoints = store.find(ENDPOINTS, namespace, service) or {}
    if not dig(endpoints, "subsets", []):
        raise _unavailable(f'no endpoints available for service "{service}"')
    return _ANSWER


def _is_port(port: Obj, wanted: str) -> bool:
    return wanted in (str(port["port"]), port.get("name"))


def _unavailable(text: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", text)


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


def parse_path(kinds: Mapping[Key, Resource], parts: list[str]) -> Target:
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


_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_TOKEN_SECONDS = 3600
# Kinds whose deletion answers with the object and not with a Status.
_SHOWN_WHEN_DELETED = (
    *("pods", "services", "serviceaccounts", "persistentvolumes"),
    *("persistentvolumeclaims", "resourcequotas"),
    *("storageclasses", "volumeattachments"),
)

Reply = tuple[int, Any]
"""HTTP status and body."""


@dataclass(frozen=True)
class Request:
    """One request on a resource, authorised, with its body decoded."""

    target: Target
    method: str
    query: Mapping[str, str]
    identity: Identity
    content_type: str = ""
    wants_table: bool = False
    body: Any = None

    @property
    def dry_run(self) -> bool:
        return "dryRun" in self.query

    @property
    def is_strict(self) -> bool:
        """Whether an unknown field is refused, as kubectl asks for."""
        return self.query.get("fieldValidation") == "Strict"


def shown(obj: Obj, target: Target) -> Obj:
    """The object in the version that was asked for."""
    return {**obj, "apiVersion": target.resource.api_version(target.version)}


def selected(cluster: Cluster, request: Request) -> list[Obj]:
    """The objects that namespace, name and selectors of the request leave."""
    target = request.target
    return [
        obj
        for obj in cluster.store.all(target.resource, target.namespace)
        if matches(obj, request)
    ]


def matches(obj: Obj, request: Request) -> bool:
    """Whether the request's namespace, name and selectors include the object."""
    target, query = request.target, request.query
    return (
        target.namespace in (None, namespace_of(obj))
        and target.name in ("", name_of(obj))
        and labels_match(query.get("labelSelector", ""), labels_of(obj))
        and fields_match(query.get("fieldSelector", ""), obj)
    )


def serve(cluster: Cluster, request: Request) -> Reply:
    """Do what the request asks; everything but watches.

    :raises ApiError: whatever the API answers other than success.
    """
    check_selectors(request.query, request.target.resource.kind)
    target, store = request.target, cluster.store
    asked = (target.resource, target.version)
    if request.method != "POST" and (failure := custom.unreadable(store, *asked)):
        raise failure
    match request.method:
        case "GET" if request.target.name:
            return _get(cluster, request)
        case "GET":
            return _list(cluster, request)
        case "POST":
            return _post(cluster, request)
        case "DELETE":
            return _delete(cluster, request)
        case "PUT" | "PATCH":
            return _write(cluster, request)
    raise method_not_allowed()


def _find(cluster: Cluster, target: Target) -> Obj:
    return cluster.store.get(target.resource, target.namespace, target.name)


def _get(cluster: Cluster, request: Request) -> Reply:
    target = request.target
    if target.subresource == "proxy":
        place = (target.namespace, target.name)
        return 200, answer_of_service(cluster.store, *place)
    found = _find(cluster, target)
    if target.subresource == "log":
        return 200, pods.log(found, request.query.get("container", "")).encode()
    if target.subresource == "scale":
        return 200, _scale(found)
    if request.wants_table:
        return 200, table(target.resource, [shown(found, target)], "")
    return 200, shown(found, target)


def _list(cluster: Cluster, request: Request) -> Reply:
    target, version = request.target, str(cluster.store.version)
    found = [shown(obj, target) for obj in selected(cluster, request)]
    found.sort(key=lambda obj: (namespace_of(obj) or "", name_of(obj)))
    if request.wants_table:
        return 200, table(target.resource, found, version)
    return 200, {
        "kind": f"{target.resource.kind}List",
        "apiVersion": target.resource.api_version(target.version),
        "metadata": {"resourceVersion": version},
        "items": found,
    }


def _post(cluster: Cluster, request: Request) -> Reply:
    target, body = request.target, request.body
    match target.resource.plural, target.subresource:
        case "pods", "eviction":
            dry = request.dry_run or bool(dig(body, "deleteOptions.dryRun"))
            done = evict(cluster.store, target.namespace, target.name, body, dry)
            return 201, done
        case "serviceaccounts", "token":
            return 201, _token(cluster, target, body)
        case "selfsubjectaccessreviews", "":
            return 201, _review_access(cluster, request)
        case "tokenreviews", "":
            return 201, _review_token(cluster, body)
        case "selfsubjectreviews", "":
            identity = request.identity
            groups = sorted(identity.groups, key=access.order_of_group)
            user = {"username": identity.user, "groups": groups}
            return 201, {**body, "status": {"userInfo": user}}
    if target.name:
        raise method_not_allowed()
    admission.check_object(target.resource, target.namespace, body)
    if request.is_strict:
        admission.check_fields(target.resource, body, is_apply=False)
    store = cluster.store
    body = {**body, "apiVersion": custom.stored_as(store, target.resource)}
    created = store.create(target.resource, target.namespace, body, request.dry_run)
    return 201, shown(created, target)


def _token(cluster: Cluster, target: Target, body: Obj) -> Obj:
    account = cluster.store.get(SERVICE_ACCOUNTS, target.namespace, target.name)
    seconds = dig(body, "spec.expirationSeconds", _TOKEN_SECONDS)
    status = {
        "token": cluster.tokens.issue(account, seconds),
        "expirationTimestamp": timestamp(seconds),
    }
    return {**body, "status": status}


def _review_access(cluster: Cluster, request: Request) -> Obj:
    attributes = dig(request.body, "spec.resourceAttributes", {})
    plural, sub = attributes.get("resource", ""), attributes.get("subresource")
    wanted = Access(
        verb=attributes.get("verb", ""),
        group=attributes.get("group", ""),
        resource=f"{plural}/{sub}" if sub else plural,
        namespace=attributes.get("namespace") or None,
        name=attributes.get("name", ""),
    )
    allowed = access.allowed(cluster.store, request.identity, wanted)
    return {**request.body, "status": {"allowed": allowed}}


def _review_token(cluster: Cluster, body: Obj) -> Obj:
    try:
        user = cluster.tokens.user_of(dig(body, "spec.token"))
    except (ValueError, KeyError):
        user = None
    status = {"authenticated": bool(user), "user": {"username": user or ""}}
    return {**body, "status": status}


def _delete(cluster: Cluster, request: Request) -> Reply:
    target, store = request.target, cluster.store
    options = dict(request.body or {})
    if "gracePeriodSeconds" in request.query:
        options["gracePeriodSeconds"] = int(request.query["gracePeriodSeconds"])
    success: Obj = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    if not target.name:
        reply = _list(cluster, request)
        for obj in selected(cluster, request):
            store.delete(target.resource, obj, options, request.dry_run)
        return reply
    found = _find(cluster, target)
    deleted = store.delete(target.resource, found, options, request.dry_run)
    left = store.find(target.resource, target.namespace, target.name)
    if left or target.resource.plural in _SHOWN_WHEN_DELETED:
        at_once = target.resource is PODS and options.get("gracePeriodSeconds") == 0
        return 200, shown(_at_once(deleted) if at_once else deleted, target)
    details = {
        "name": target.name,
        "group": target.resource.group,
        "kind": target.resource.plural,
        "uid": deleted["metadata"]["uid"],
    }
    details = {key: value for key, value in details.items() if value}
    return 200, {**success, "details": details}


def _at_once(pod: Obj) -> Obj:
    """The pod as deleted, with a grace period of 0."""
    return with_metadata(
        pod, deletionTimestamp=timestamp(), deletionGracePeriodSeconds=0
    )


def _write(cluster: Cluster, request: Request) -> Reply:
    target, store = request.target, cluster.store
    old = store.find(target.resource, target.namespace, target.name)
    is_apply = request.method == "PATCH" and request.content_type == _APPLY
    if is_apply and not request.query.get("fieldManager"):
        problem = "Required value: is required for apply patch"
        raise invalid("PatchOptions", "", "fieldManager", problem, "meta.k8s.io")
    if is_apply:
        admission.check_fields(target.resource, request.body, is_apply=True)
    if old is None and is_apply:
        made = patches.apply({}, request.body, request.query["fieldManager"])
        creation = replace(request, body=made, target=replace(target, name=""))
        return _post(cluster, creation)
    old = _find(cluster, target)
    is_scale = target.subresource == "scale"
    new = request.body
    if request.method == "PATCH":
        new = _patched(_scale(old) if is_scale else old, request)
    if not isinstance(new, dict):
        raise bad_request("the result is not an object")
    if request.method == "PUT":
        admission.check_version(target.resource, new)
    if request.is_strict and not is_scale:
        admission.check_fields(target.resource, new, is_apply=False)
    admission.check_change(target.resource, old, new)
    if is_scale:
        spec = {**old["spec"], "replicas": new["spec"]["replicas"]}
        scaled = store.update(target.resource, old, {**old, "spec": spec})
        return 200, _scale(scaled)
    if (target.resource.plural, target.subresource) == ("services", "status"):
        new = with_ip_modes(new, cluster.settings.version)
    written = store.update(
        target.resource, old, new, target.subresource, request.dry_run
    )
    return 200, shown(written, target)


def _patched(old: Obj, request: Request) -> Any:
    match request.content_type:
        case content_type if content_type == _JSON_PATCH:
            return patches.json_patch(old, request.body)
        case content_type if content_type == _MERGE_PATCH:
            return patches.merge(old, request.body)
    if request.content_type not in (_STRATEGIC_PATCH, _APPLY):
        raise unsupported_media_type("415: Unsupported Media Type")
    if not isinstance(request.body, dict):
        raise bad_request("the patch is not an object")
    if request.content_type == _APPLY:
        return patches.apply(old, request.body, request.query["fieldManager"])
    return patches.strategic(old, request.body)


_SCALE_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _scale(obj: Obj) -> Obj:
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in _SCALE_METADATA},
        "spec": {"replicas": obj["spec"].get("replicas", 0)},
        "status": {"replicas": dig(obj, "status.replicas", 0)},
    }
