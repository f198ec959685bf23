# SPDX-License-Identifier: Apache-2.0
"""Patches: JSON, merge, strategic merge, and server-side apply without conflicts."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import jsonpatch

from .objects import Obj, timestamp, with_metadata
from .resources import ApiError, bad_request

_MERGE_KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "secrets": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def merge(target: Any, patch: Any) -> Any:
    """RFC 7396, JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target: dict[str, Any] | None, patch: dict[str, Any]) -> dict[str, Any]:
    """Strategic merge patch: lists are merged by their kind's merge key."""
    if patch.get("$patch") == "replace":
        return {k: v for k, v in patch.items() if k != "$patch"}
    result = dict(target or {})
    keep = patch.get("$retainKeys")
    if keep is not None:
        result = {k: v for k, v in result.items() if k in keep}
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            field = key.removeprefix(_DELETE_PRIMITIVES)
            result[field] = [v for v in result.get(field, []) if v not in value]
        elif not key.startswith("$"):
            _merge_field(result, key, value)
    return result


def _merge_field(result: dict[str, Any], key: str, value: Any) -> None:
    old = result.get(key)
    if value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
        result.pop(key, None)
    elif isinstance(value, dict):
        result[key] = strategic(old if isinstance(old, dict) else {}, value)
    elif isinstance(value, list) and key == "finalizers":
        result[key] = list(dict.fromkeys([*(old or []), *value]))
    elif isinstance(value, list):
        result[key] = _merge_list(old or [], value, merge_key(key, value))
    else:
        result[key] = value


def merge_key(field: str, items: list[Any]) -> str | None:
    """The field that tells the items of a list apart; None: it is replaced whole."""
    if field == "ports":
        ports = [i for i in items if isinstance(i, dict)]
        if any("containerPort" in port for port in ports):
            return "containerPort"
        return "port" if any("port" in port for port in ports) else None
    return _MERGE_KEYS.get(field)


def _is_replace(item: Any) -> bool:
    return isinstance(item, dict) and item.get("$patch") == "replace"


def _merge_list(old: list[Any], patch: list[Any], key: str | None) -> list[Any]:
    if key is None or any(map(_is_replace, patch)):
        return [item for item in patch if not _is_replace(item)]
    result = list(old)
    for item in patch:
        same = [n for n, o in enumerate(result) if o.get(key) == item.get(key)]
        if item.get("$patch") == "delete":
            for index in same:
                result.pop(index)
        elif same:
            result[same[0]] = strategic(result[same[0]], item)
        else:
            result.append(item)
    return result


def json_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902.

    :raises ApiError: 400 for what is no list of operations, 422 where a path is
        missing or a ``test`` fails.
    """
    if not isinstance(operations, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of "
            "type []handlers.jsonPatchOp"
        )
    try:
        return jsonpatch.apply_patch(document, operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        text = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", text) from error


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
