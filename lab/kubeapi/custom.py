# SPDX-License-Identifier: Apache-2.0
"""Kinds that CustomResourceDefinitions define.

They are served with discovery as the others are, without schemas. Of a definition whose
conversion is by a webhook, objects that were written in another version than the one
that is stored now cannot be read while the webhook's Service is not there.
"""

import re

from .objects import Obj, dig, timestamp
from .resources import DEFINITIONS, RESOURCES, SERVICES, ApiError, Resource, Subresource
from .store import Store

_CONDITIONS = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)


def step(store: Store) -> None:
    """Serve what the definitions define, and no longer what they do not."""
    kinds = {}
    for definition in store.all(DEFINITIONS):
        resource = _resource(definition)
        if resource:
            kinds[resource.key] = resource
            store.objects.setdefault(resource.key, {})
            _establish(store, definition)
    for key in store.kinds.keys() - RESOURCES.keys() - kinds.keys():
        del store.objects[key]
    store.kinds = {**RESOURCES, **kinds}


def _resource(definition: Obj) -> Resource | None:
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    versions = [one for one in spec.get("versions") or () if one.get("served")]
    if not versions or "plural" not in names:
        return None
    parts = [name for one in versions for name in one.get("subresources") or {}]
    return Resource(
        group=spec["group"],
        versions=tuple(sorted((one["name"] for one in versions), key=_preference)),
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        subresources=tuple(map(Subresource, dict.fromkeys(parts))),
    )


def _preference(version: str) -> tuple[bool, int, int]:
    """Order of versions: those without ``alpha`` and ``beta`` first, the newest first.

    Documentation of Kubernetes, "Versions in CustomResourceDefinitions".
    """
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    major, word, minor = match.groups() if match else ("0", "alpha", "0")
    rank = {None: 0, "beta": 1}.get(word, 2)
    return match is None, rank, -int(major) * 1000 - int(minor or 0)


def _establish(store: Store, definition: Obj) -> None:
    if dig(definition, "status.conditions"):
        return
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": timestamp(),
        }
        for kind, reason, message in _CONDITIONS
    ]
    names = definition["spec"]["names"]
    status = {"acceptedNames": names, "conditions": conditions}
    status["storedVersions"] = [_stored_version(definition)]
    store.replace(DEFINITIONS, definition, status=status)


def _definition(store: Store, resource: Resource) -> Obj | None:
    return store.find(DEFINITIONS, None, f"{resource.plural}.{resource.group}")


def _stored_version(definition: Obj) -> str:
    versions = definition["spec"]["versions"]
    return next(str(one["name"]) for one in versions if one.get("storage"))


def stored_as(store: Store, resource: Resource) -> str:
    """The version in which an object of this kind is written."""
    definition = None if resource.key in RESOURCES else _definition(store, resource)
    return resource.api_version(_stored_version(definition) if definition else "")


def unreadable(store: Store, resource: Resource, version: str = "") -> ApiError | None:
    """What the API answers instead of objects of this kind; None if they can be read.

    One object that cannot be converted is enough, in whatever namespace: a real server
    has all of a kind in one cache.

    :param version: that is asked for; "" for the preferred one.
    """
    definition = None if resource.key in RESOURCES else _definition(store, resource)
    service = dig(
        definition or {}, "spec.conversion.webhook.clientConfig.service", None
    )
    if not definition or not service:
        return None
    if store.find(SERVICES, service["namespace"], service["name"]):
        return None
    wanted = resource.api_version(version)
    for obj in store.all(resource):
        if obj["apiVersion"] != wanted:
            name, port = service["name"], service.get("port", 443)
            host = f"{name}.{service['namespace']}.svc:{port}"
            text = (
                f"conversion webhook for {obj['apiVersion']}, Kind={resource.kind} "
                f'failed: Post "https://{host}{service.get("path", "/")}?timeout=30s": '
                f'service "{name}" not found'
            )
            return ApiError(500, "", text)
    return None


def warnings(store: Store, resource: Resource, version: str) -> tuple[str, ...]:
    """What the API advises about a version that is deprecated."""
    definition = None if resource.key in RESOURCES else _definition(store, resource)
    for one in (definition or {"spec": {}})["spec"].get("versions") or ():
        if one["name"] == version and one.get("deprecated"):
            usual = f"{resource.api_version(version)} {resource.kind} is deprecated"
            return (one.get("deprecationWarning") or usual,)
    return ()
