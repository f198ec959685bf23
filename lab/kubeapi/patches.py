# SPDX-License-Identifier: Apache-2.0
"""The three patch types: JSON merge, strategic merge, JSON patch.

None of them changes its arguments.
"""

import copy
from typing import Any

from .errors import ApiError, bad_request

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
    """RFC 6902 without ``move`` and ``copy``.

    :raises ApiError: 400 for what is no list of operations, 422 where a path is
        missing or a ``test`` fails.
    """
    if not isinstance(operations, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of "
            "type []handlers.jsonPatchOp"
        )
    document = copy.deepcopy(document)
    for operation in operations:
        try:
            _apply_operation(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            text = "the server rejected our request due to an error in our request"
            raise ApiError(422, "Invalid", text) from error
    return document


def _apply_operation(document: Any, operation: dict[str, Any]) -> None:
    parts = [
        part.replace("~1", "/").replace("~0", "~")
        for part in operation["path"].split("/")[1:]
    ]
    target = document
    for part in parts[:-1]:
        target = target[int(part)] if isinstance(target, list) else target[part]
    last: Any = parts[-1]
    if isinstance(target, list):
        last = len(target) if last == "-" else int(last)
    match operation["op"]:
        case "test":
            if target[last] != operation["value"]:
                raise ValueError("test")
        case "remove":
            del target[last]
        case "add" if isinstance(target, list):
            target.insert(last, operation["value"])
        case "add" | "replace":
            target[last] = operation["value"]
        case other:
            raise ValueError(other)
