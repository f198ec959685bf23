# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: the fields that a manager no longer applies are removed.

``metadata.managedFields`` has them as in Kubernetes ("Server-Side Apply", FieldsV1).
Fields that were set otherwise have no manager here, so there are no conflicts.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from .objects import Obj, timestamp, with_metadata
from .patches import merge_key, strategic

_IDENTITY = ("name", "namespace", "managedFields")
_ITSELF = "."


def apply(old: Obj, body: Obj, manager: str) -> Obj:
    """The object after an apply; *old* without anything for a new one."""
    entries = (old.get("metadata") or {}).get("managedFields") or []
    before: Obj = next((e["fieldsV1"] for e in entries if e["manager"] == manager), {})
    others = [entry for entry in entries if entry["manager"] != manager]
    now = _of_object(body)
    kept = _union([now, *(entry["fieldsV1"] for entry in others)])
    merged = strategic(_without(old, before, kept) if before else old, body)
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": body.get("apiVersion"),
        "time": timestamp(),
        "fieldsType": "FieldsV1",
        "fieldsV1": now,
    }
    former: Obj = next((e for e in entries if e["manager"] == manager), {})
    if {**former, "time": None} == {**entry, "time": None}:
        entry = former
    return with_metadata(merged, managedFields=[*others, entry])


def _of_object(body: Obj) -> Obj:
    """The fields of an object that was applied."""
    metadata = body.get("metadata") or {}
    plain = {name: metadata[name] for name in metadata if name not in _IDENTITY}
    content = {n: v for n, v in body.items() if n not in ("apiVersion", "kind")}
    return _fields({**content, "metadata": plain})


def _fields(value: Any, field: str = "") -> Obj:
    if isinstance(value, dict):
        return {f"f:{name}": _fields(inner, name) for name, inner in value.items()}
    if isinstance(value, list) and (key := merge_key(field, value)):
        return {_item(key, one): {_ITSELF: {}, **_fields(one)} for one in value}
    return {}


def _item(key: str, one: Obj) -> str:
    return f"k:{json.dumps({key: one.get(key)})}"


def _union(sets: Iterable[Obj]) -> Obj:
    result: Obj = {}
    for fields in sets:
        for name, inner in fields.items():
            result[name] = _union([result.get(name, {}), inner])
    return result


def _without(value: Any, before: Obj, kept: Obj) -> Any:
    """A value without the fields of *before* that are not kept."""
    if isinstance(value, dict):
        result = dict(value)
        for name, inner, is_kept in _inner(value, before, kept):
            rest = _without(value[name], inner, kept.get(f"f:{name}", {}))
            if is_kept or (inner and rest not in ({}, [])):
                result[name] = rest
            else:
                del result[name]
        return result
    if isinstance(value, list):
        return [one for item in value for one in _item_without(item, before, kept)]
    return value


def _inner(value: Obj, before: Obj, kept: Obj) -> Iterator[tuple[str, Obj, bool]]:
    for name, inner in before.items():
        field = name.removeprefix("f:")
        if field in value and name != _ITSELF:
            yield field, inner, name in kept


def _item_without(item: Any, before: Obj, kept: Obj) -> Iterator[Any]:
    """An item of a list; nothing if it is not kept."""
    for name, inner in before.items():
        if not name.startswith("k:") or not isinstance(item, dict):
            continue
        ((key, value),) = json.loads(name.removeprefix("k:")).items()
        if item.get(key) == value:
            if name in kept:
                yield _without(item, inner, kept[name])
            return
    yield item
