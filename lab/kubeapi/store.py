# SPDX-License-Identifier: Apache-2.0
"""The objects of the cluster, their versions, and the events that watches read.

Without etcd they are kept in a JSON file.
"""

import contextlib
import copy
import json
import os
import threading
import uuid
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from . import admission, resources
from .admission import SERVICE_NETWORK, fill_defaults, with_template_generation
from .objects import (
    Obj,
    is_terminating,
    name_of,
    namespace_of,
    random_suffix,
    timestamp,
    with_metadata,
)
from .resources import (
    DAEMON_SETS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    POLICIES,
    POLICY_BINDINGS,
    RESOURCES,
    ApiError,
    Key,
    Resource,
)

_EVENTS_KEPT = 5000
# Kept by an owner until all that refers to it is gone.
_FOREGROUND = "foregroundDeletion"
_IMMUTABLE = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "generation",
)


@dataclass(frozen=True)
class Event:
    """One change, as a watch reports it (``ADDED``, ``MODIFIED``, ``DELETED``)."""

    version: int
    type: str
    key: Key
    obj: Obj


class Store:
    """All objects, with the rules of writing them.

    Hold :attr:`lock` to read and then write; :attr:`changed` (on the
    same lock) is notified after every change.
    """

    def __init__(self, service_network: str = SERVICE_NETWORK) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.service_network = service_network
        self.version = 1
        self.saved_version = 1
        self.events: deque[Event] = deque(maxlen=_EVENTS_KEPT)
        #: When each pod was to be evicted first, and how often, by its uid.
        self.evictions: dict[str, tuple[float, int]] = {}
        self.kinds: dict[Key, Resource] = dict(RESOURCES)
        self.objects: dict[Key, dict[tuple[str | None, str], Obj]] = {
            key: {} for key in RESOURCES
        }

    # --- reading ---

    def all(self, resource: Resource, namespace: str | None = None) -> list[Obj]:
        """The objects of a kind, of one namespace if one is given."""
        objects = self.objects[resource.key].values()
        return [o for o in objects if namespace in (None, namespace_of(o))]

    def find(self, resource: Resource, namespace: str | None, name: str) -> Obj | None:
        """The object of that name; of that namespace, if the kind has one."""
        where = namespace if resource.namespaced else None
        return self.objects[resource.key].get((where, name))

    def get(self, resource: Resource, namespace: str | None, name: str) -> Obj:
        """:raises ApiError: 404 if there is none."""
        found = self.find(resource, namespace, name)
        if found is None:
            raise resources.not_found(resource, name)
        return found

    def owned(self, resource: Resource, owner: Obj) -> list[Obj]:
        """The objects of a kind that the controller ``owner`` made."""
        uid = owner["metadata"]["uid"]
        return [
            obj
            for obj in self.objects[resource.key].values()
            for reference in obj["metadata"].get("ownerReferences") or []
            if reference.get("uid") == uid and reference.get("controller")
        ]

    # --- writing ---

    def _put(self, event: str, resource: Resource, obj: Obj) -> Obj:
        self.version += 1
        obj = with_metadata(obj, resourceVersion=str(self.version))
        place = (namespace_of(obj), name_of(obj))
        if event == "DELETED":
            self.objects[resource.key].pop(place, None)
        else:
            self.objects[resource.key][place] = obj
        self.events.append(Event(self.version, event, resource.key, obj))
        if resource is LEASES and self.saved_version == self.version - 1:
            self.saved_version = self.version  # a heartbeat is not worth a save
        with self.lock:
            self.changed.notify_all()
        return obj

    def create(
        self, resource: Resource, namespace: str | None, obj: Obj, dry_run: bool = False
    ) -> Obj:
        """Add an object; fills in names and defaults.

        :raises ApiError: 404 (no such namespace), 409 (exists), 422 (no name).
        """
        obj = copy.deepcopy(obj)
        metadata = obj.setdefault("metadata", {})
        name = metadata.get("name", "")
        if resource.namespaced:
            namespace = namespace or metadata.get("namespace") or "default"
            metadata["namespace"] = namespace
            self._check_namespace(resource, self.get(NAMESPACES, None, namespace), name)
        else:
            metadata.pop("namespace", None)
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                problem = "Required value: name or generateName is required"
                group = resource.group
                raise resources.invalid(
                    resource.kind, "", "metadata.name", problem, group
                )
            metadata["name"] = metadata["generateName"] + random_suffix(5)
        if self.find(resource, namespace, metadata["name"]):
            raise resources.already_exists(resource, metadata["name"])
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = timestamp()
        metadata.pop("deletionTimestamp", None)
        obj.setdefault("kind", resource.kind)
        if resource.key in RESOURCES or "apiVersion" not in obj:
            obj["apiVersion"] = resource.api_version()
        fill_defaults(resource.plural, obj, self.service_network)
        if "spec" in obj and resource is not NODES:
            metadata["generation"] = 1
        self._check_policies(resource, obj)
        return obj if dry_run else self._put("ADDED", resource, obj)

    def _check_policies(
        self, resource: Resource, obj: Obj, old: Obj | None = None
    ) -> None:
        bindings = self.all(POLICY_BINDINGS)
        if bindings and resource not in (POLICIES, POLICY_BINDINGS):
            where = namespace_of(obj)
            namespace = self.find(NAMESPACES, None, where) if where else None
            admission.check_policies(
                self.all(POLICIES), bindings, resource, namespace, obj, old
            )

    @staticmethod
    def _check_namespace(resource: Resource, namespace: Obj, name: str) -> None:
        if not is_terminating(namespace):
            return
        where = name_of(namespace)
        text = (
            f'{resource.qualified_name} "{name}" is forbidden: unable to create new '
            f"content in namespace {where} because it is being terminated"
        )
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {where} is being terminated",
            "field": "metadata.namespace",
        }
        about = {"name": name, "group": resource.group, "kind": resource.plural}
        raise resources.ApiError(403, "Forbidden", text, **about, causes=[cause])

    def update(
        self,
        resource: Resource,
        old: Obj,
        new: Obj,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Obj:
        """Write what a client sent for an existing object.

        :raises ApiError: 409 if the client saw another version or another object.
        """
        new = copy.deepcopy(new)
        before, metadata = old["metadata"], new.setdefault("metadata", {})
        if metadata.get("resourceVersion") not in (None, "", before["resourceVersion"]):
            raise resources.conflict(resource, before["name"])
        if metadata.get("uid") not in (None, before["uid"]):
            raise resources.precondition_failed(metadata["uid"], before["uid"])
        for field in _IMMUTABLE:
            metadata.pop(field, None)
            if field in before:
                metadata[field] = before[field]
        if "managedFields" in before:
            metadata.setdefault("managedFields", before["managedFields"])
        if subresource == "status":
            new = _with_status_of(old, new)
        elif "status" in old:
            new["status"] = old["status"]
        new["kind"], new["apiVersion"] = old["kind"], old["apiVersion"]
        if "stringData" in new or resource.plural == "limitranges":
            fill_defaults(resource.plural, new, self.service_network)
        if resource is DAEMON_SETS:
            new = with_template_generation(old, new)
        if not subresource:
            self._check_policies(resource, new, old)
        if new == old or dry_run:
            return new
        return self._put_update(resource, old, new)

    def replace(self, resource: Resource, old: Obj, **parts: Any) -> Obj:
        """Write parts of an object on a controller's behalf.

        Nothing happens if that changes nothing, or if ``old`` is no longer what the
        store holds: the controller will see the newer one on its next round.
        """
        new = {**old, **parts}
        stale = self.find(resource, namespace_of(old), name_of(old)) is not old
        return old if stale or new == old else self._put_update(resource, old, new)

    def _put_update(self, resource: Resource, old: Obj, new: Obj) -> Obj:
        generation = old["metadata"].get("generation")
        if generation and new.get("spec") != old.get("spec"):
            new = with_metadata(new, generation=generation + 1)
        new = self._put("MODIFIED", resource, new)
        finished = is_terminating(new) and not new["metadata"].get("finalizers")
        if finished and resource not in (PODS, NAMESPACES):
            self.remove(resource, new)
        return new

    # --- deleting ---

    def delete(
        self,
        resource: Resource,
        obj: Obj,
        options: Obj | None = None,
        dry_run: bool = False,
    ) -> Obj:
        """Delete, or mark as terminating where a kubelet or finaliser comes first.

        :raises ApiError: 409 if a uid precondition is not met.
        """
        options = options or {}
        uid, metadata = obj["metadata"]["uid"], obj["metadata"]
        wanted = (options.get("preconditions") or {}).get("uid") or uid
        if wanted != uid:
            raise resources.another_object(resource, name_of(obj), wanted, uid)
        if dry_run:
            return obj
        if resource is PODS:
            grace = options.get("gracePeriodSeconds")
            if grace is None:
                grace = obj["spec"].get("terminationGracePeriodSeconds", 30)
            if grace > 0 and obj["spec"].get("nodeName"):
                return self._mark_terminating(resource, obj, grace)
        if resource is NAMESPACES:
            ending = {**(obj.get("status") or {}), "phase": "Terminating"}
            return self._mark_terminating(resource, {**obj, "status": ending}, 0)
        policy = options.get("propagationPolicy")
        if policy == "Foreground" and (dependents := self._dependents(obj)):
            kept = [*(metadata.get("finalizers") or []), _FOREGROUND]
            obj = with_metadata(obj, finalizers=list(dict.fromkeys(kept)))
            obj = self._mark_terminating(resource, obj, 0)
            for kind, dependent in dependents:
                self.delete(kind, dependent, {"propagationPolicy": policy})
            return obj
        if metadata.get("finalizers"):
            return self._mark_terminating(resource, obj, 0)
        self.remove(resource, obj, policy == "Orphan")
        return obj

    def _mark_terminating(self, resource: Resource, obj: Obj, grace: int) -> Obj:
        if is_terminating(obj):
            return obj
        times: Obj = {"deletionTimestamp": timestamp(grace)}
        if resource is PODS:
            times["deletionGracePeriodSeconds"] = grace
        return self._put("MODIFIED", resource, with_metadata(obj, **times))

    def remove(self, resource: Resource, obj: Obj, orphan: bool = False) -> None:
        """Take the object out at once, and with it (unless ``orphan``) what it owns."""
        uid, name = obj["metadata"]["uid"], name_of(obj)
        current = self.find(resource, namespace_of(obj), name)
        if current is None or current["metadata"]["uid"] != uid:
            return
        self._put("DELETED", resource, current)
        for kind, child in self._dependents(current):
            if orphan:
                references = child["metadata"]["ownerReferences"]
                kept = [r for r in references if r.get("uid") != uid]
                new = with_metadata(child, ownerReferences=kept)
                self.replace(kind, child, **new)
            else:
                self.delete(kind, child)
        self._release_owners(current)

    def _dependents(self, owner: Obj) -> list[tuple[Resource, Obj]]:
        """What refers to it as an owner."""
        uid = owner["metadata"]["uid"]
        return [
            (kind, child)
            for kind in self.kinds.values()
            for child in self.all(kind)
            if any(r.get("uid") == uid for r in _owners(child))
        ]

    def _release_owners(self, gone: Obj) -> None:
        """Remove owners that are deleted in the foreground and waited for this one."""
        for reference in _owners(gone):
            for kind in self.kinds.values():
                if kind.kind != reference.get("kind"):
                    continue
                owner = self.find(kind, namespace_of(gone), reference["name"])
                if owner is None or owner["metadata"]["uid"] != reference.get("uid"):
                    continue
                kept = list(owner["metadata"].get("finalizers") or [])
                if _FOREGROUND in kept and not self._dependents(owner):
                    kept.remove(_FOREGROUND)
                    self._put_update(kind, owner, with_metadata(owner, finalizers=kept))


def _owners(obj: Obj) -> list[Obj]:
    return obj["metadata"].get("ownerReferences") or []


def _with_status_of(old: Obj, new: Obj) -> Obj:
    metadata = {
        key: new["metadata"][key]
        for key in ("labels", "annotations")
        if key in new["metadata"]
    }
    return {**with_metadata(old, **metadata), "status": new.get("status", {})}


_KEPT = 500  # a real cluster keeps them for an hour


def record_event(
    store: Store,
    about: Obj,
    reason: str,
    message: str,
    component: str,
    kind: str = "Normal",
) -> None:
    """Add an event about an object, or count the one that is there.

    :param component: the source, such as ``node-controller``.
    :param kind: ``Normal`` or ``Warning``.
    """
    namespace = namespace_of(about) or "default"
    involved = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": name_of(about),
        "namespace": namespace_of(about) or "",
        "uid": about["metadata"]["uid"],
    }
    for event in store.all(EVENTS, namespace):
        if (event["involvedObject"], event["reason"], event["message"]) == (
            involved,
            reason,
            message,
        ):
            count, now = event["count"] + 1, timestamp()
            store.replace(EVENTS, event, count=count, lastTimestamp=now)
            return
    new = {
        "metadata": {"name": f"{name_of(about)}.{random_suffix(16)}"},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": kind,
        "source": {"component": component},
        "reportingComponent": component,
        "count": 1,
        "firstTimestamp": timestamp(),
        "lastTimestamp": timestamp(),
    }
    with contextlib.suppress(ApiError):  # its namespace is going away
        store.create(EVENTS, namespace, new)
    for old in store.all(EVENTS)[:-_KEPT]:
        store.delete(EVENTS, old)


State = dict[str, Any]

# Writes that were not stored in time are lost with their resource versions, which must
# not be used again for others.
_VERSIONS_LOST = 1000


class Keeper(Protocol):
    """Where the state is between two lives of a server."""

    def load(self) -> State | None:
        """The state; None if there is none yet."""

    def save(self, state: State) -> None:
        """Keep this one instead."""


def dump(store: Store, signing_key: str) -> State:
    """Everything in the store, as of now."""
    with store.lock:
        return {
            "version": store.version,
            "signingKey": signing_key,
            "objects": [
                [*key, list(objects.values())] for key, objects in store.objects.items()
            ],
        }


def fill(store: Store, state: State) -> str:
    """Fill an empty store.

    :returns: the key that the tokens in it were signed with.
    """
    store.version = store.saved_version = state["version"] + _VERSIONS_LOST
    for group, plural, objects in state["objects"]:
        if (group, plural) in RESOURCES or objects:
            store.objects[group, plural] = {
                (o["metadata"].get("namespace"), o["metadata"]["name"]): o
                for o in objects
            }
    return str(state["signingKey"])


class StateFile:
    """A file that is replaced in one step; for its owner only: it holds secrets."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> State | None:
        """:raises ValueError: the file is not of this program."""
        return json.loads(self._path.read_text()) if self._path.exists() else None

    def save(self, state: State) -> None:
        """:raises OSError: it cannot be written."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
