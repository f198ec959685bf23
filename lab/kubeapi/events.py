# SPDX-License-Identifier: Apache-2.0
"""Events, which ``kubectl describe`` and ``kubectl get events`` show."""

import contextlib

from .errors import ApiError
from .objects import Obj, name_of, namespace_of, random_suffix, timestamp
from .resources import EVENTS
from .store import Store

_KEPT = 500  # a real cluster keeps them for an hour


def record(
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
