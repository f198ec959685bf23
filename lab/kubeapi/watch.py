# SPDX-License-Identifier: Apache-2.0
"""Watches: the store's events as a stream."""

import json
import time
from collections.abc import Iterator
from typing import Any

from .cluster import Cluster
from .objects import Obj
from .resources import ApiError
from .store import Event
from .tables import table
from .verbs import Request, matches, selected, shown

_LONGEST = 1800.0  # seconds, unless the client asks for less
_LOOK_UP_PERIOD = 1.0
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def _line(event_type: str, obj: Any) -> bytes:
    return json.dumps({"type": event_type, "object": obj}).encode() + b"\n"


def _encode(event_type: str, obj: Obj, request: Request) -> bytes:
    obj = shown(obj, request.target)
    if request.wants_table:
        return _line(event_type, table(request.target.resource, [obj], ""))
    return _line(event_type, obj)


def _newer(cluster: Cluster, request: Request, since: int) -> list[Event]:
    """The events after a version, oldest first; the store's lock is held."""
    found = []
    for event in reversed(cluster.store.events):
        if event.version <= since:
            break
        if event.key == request.target.resource.key and matches(event.obj, request):
            found.append(event)
    return found[::-1]


def _too_old(cluster: Cluster, since: int) -> bool:
    events = cluster.store.events
    oldest = events[0].version if events else cluster.store.version + 1
    return since < oldest - 1 and since < cluster.store.version


def _bookmark(request: Request, version: int) -> Obj:
    """As the API server sends it: only the version, and that the list is complete."""
    target = request.target
    metadata = {
        "resourceVersion": str(version),
        "annotations": {_INITIAL_EVENTS_END: "true"},
    }
    if request.wants_table:
        partial = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
        }
        bookmark = table(target.resource, [], str(version))
        return {**bookmark, "rows": [{"cells": [], "object": partial}]}
    api_version = target.resource.api_version(target.version)
    return {
        "kind": target.resource.kind,
        "apiVersion": api_version,
        "metadata": metadata,
    }


def stream(cluster: Cluster, request: Request) -> Iterator[bytes]:
    """One line of JSON per event, until the watch's time is over.

    Without a resource version (or with 0) it begins with what there is; with one that
    is older than what is remembered, the only event is the 410 that makes the client
    list again. A client that takes a watch for a list (``sendInitialEvents``, kubectl
    since 1.35) gets a bookmark when it has seen everything.
    """
    query, store = request.query, cluster.store
    is_list = query.get("sendInitialEvents") == "true"
    version = "0" if is_list else query.get("resourceVersion") or "0"
    deadline = time.monotonic() + float(query.get("timeoutSeconds") or _LONGEST)
    with store.lock:
        seen = int(version) if version.isdigit() and version != "0" else store.version
        present = selected(cluster, request) if version == "0" else []
        expired = _too_old(cluster, seen)
    if expired:
        text = f"too old resource version: {seen}"
        yield _line("ERROR", ApiError(410, "Expired", text).status)
        return
    for obj in present:
        yield _encode("ADDED", obj, request)
    if is_list:
        yield _line("BOOKMARK", _bookmark(request, seen))
    while (left := deadline - time.monotonic()) > 0 and not cluster.stopping.is_set():
        with store.lock:
            if store.version <= seen:
                store.changed.wait(min(_LOOK_UP_PERIOD, left))
            events = _newer(cluster, request, seen)
            seen = store.version
        for event in events:
            yield _encode(event.type, event.obj, request)
