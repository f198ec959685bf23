# SPDX-License-Identifier: Apache-2.0
"""Kubernetes objects as plain dicts: reading them, their times, their names.

Objects in the store are never changed in place: a change is a new dict. That is what
lets a reply be written while the next change is under way.
"""

import datetime
import random
from typing import Any

from . import READY_ANNOTATION

Obj = dict[str, Any]

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def timestamp(delta: float = 0) -> str:
    """The time ``delta`` seconds from now, as ``metav1.Time`` is written."""
    moment = datetime.datetime.now(datetime.timezone.utc)
    return (moment + datetime.timedelta(seconds=delta)).strftime(_TIME)


def precise_timestamp() -> str:
    """Now, as ``metav1.MicroTime`` is written (the times in a Lease)."""
    moment = datetime.datetime.now(datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def age(stamp: str) -> float:
    """Seconds since a ``metav1.Time``."""
    then = datetime.datetime.strptime(stamp, _TIME)
    then = then.replace(tzinfo=datetime.timezone.utc)
    return (datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()


def random_suffix(length: int) -> str:
    """The tail of a generated name; no vowels, as in Kubernetes."""
    return "".join(random.choices(_SUFFIX_LETTERS, k=length))


def dig(obj: Any, path: str, default: Any = "") -> Any:
    """The value at a dotted path; ``default`` where anything on the way is missing."""
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
        if obj is None:
            return default
    return obj


def name_of(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Obj) -> str | None:
    namespace: str | None = obj["metadata"].get("namespace")
    return namespace


def labels_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def with_metadata(obj: Obj, **changes: Any) -> Obj:
    """A copy of the object with some fields of its metadata set."""
    return {**obj, "metadata": {**obj["metadata"], **changes}}


def is_terminating(obj: Obj) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def condition(obj: Obj, kind: str) -> Obj:
    """The status condition of that type, or an empty dict."""
    conditions = dig(obj, "status.conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def is_ready(obj: Obj) -> bool:
    """Whether a node or pod is Ready; something that is being deleted never is."""
    return not is_terminating(obj) and condition(obj, "Ready").get("status") == "True"


def held_unready(obj: Obj) -> bool:
    """Whether the failure annotation prevents that it becomes Ready."""
    return bool(
        dig(obj["metadata"], "annotations", {}).get(READY_ANNOTATION) == "false"
    )


def controller_of(obj: Obj) -> Obj | None:
    """The owner reference of the controller that made the object, if any."""
    owners = obj["metadata"].get("ownerReferences") or []
    return next((o for o in owners if o.get("controller")), None)


def owner_reference(owner: Obj) -> Obj:
    """What an object that ``owner`` makes carries to name it as its controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
