# SPDX-License-Identifier: Apache-2.0
"""Values of the Base HOT's parameters: what Heat refuses before it makes anything.

After ``heat/engine/parameters.py`` and ``constraints.py``. Constraints that ask the
cloud, such as ``nova.flavor``, are left to it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.csar import foreign_patterns
from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.model.tree import mapping, sequence
from tacker_k8s_mgmt.request import blanks

_BOOLEANS = frozenset(
    (*("t", "true", "on", "y", "yes", "1"), *("f", "false", "off", "n", "no", "0"))
)


def problems(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Why a parameter does not take a value; nothing for a marked blank.

    :param schema: of the parameter, as a HOT has it.
    :return: sentences that begin with the value.
    """
    if blanks.is_in(value):
        return []
    kind = str(schema.get("type"))
    shown = "the hidden value" if schema.get("hidden") else _shown(value)
    try:
        typed = _typed(kind, value)
    except (ValueError, TypeError):
        return [f"{shown} is no {kind.replace('_', ' ')}"]
    return [
        f"{shown} {text}"
        for constraint in sequence(schema.get("constraints"))
        for text in _broken(mapping(constraint), kind, typed)
    ]


def _typed(kind: str, value: Any) -> Any:
    """A value as Heat reads it.

    :raises ValueError, TypeError: it cannot.
    """
    match kind:
        case "number":
            return _number(value)
        case "json" if isinstance(value, str) and value:
            return json.loads(value)
        case "comma_delimited_list" if isinstance(value, str):
            return [part.strip() for part in value.split(",")]
    is_wrong = {
        "boolean": str(value).strip().lower() not in _BOOLEANS,
        "comma_delimited_list": not isinstance(value, list),
        "string": isinstance(value, dict | list),
    }
    if is_wrong.get(kind):
        raise ValueError(value)
    return value


def _number(value: Any) -> float:
    if isinstance(value, int | float):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def _broken(constraint: Mapping[str, Any], kind: str, value: Any) -> Iterator[str]:
    """What a value breaks of one constraint."""
    for name, wanted in constraint.items():
        check = _CHECKS.get(name)
        if check and (why := check(wanted, kind, value)):
            more = constraint.get("description")
            yield f"{why} ({more})" if more else why


def _range(wanted: Any, kind: str, value: Any) -> str:
    if not isinstance(value, int | float):
        return ""
    return _limits(mapping(wanted), value, "is", "")


def _length(wanted: Any, kind: str, value: Any) -> str:
    if not hasattr(value, "__len__"):
        return ""
    unit = " characters" if isinstance(value, str) else " entries"
    return _limits(mapping(wanted), len(value), "has", unit)


def _limits(wanted: Mapping[str, Any], number: float, verb: str, unit: str) -> str:
    low, high = (wanted.get(name) for name in ("min", "max"))
    if isinstance(low, int | float) and number < low:
        return f"{verb} less than {low}{unit}"
    if isinstance(high, int | float) and number > high:
        return f"{verb} more than {high}{unit}"
    return ""


def _modulo(wanted: Any, kind: str, value: Any) -> str:
    step, offset = (mapping(wanted).get(name, 0) for name in ("step", "offset"))
    if not isinstance(value, int | float) or not step or value % step == offset:
        return ""
    return f"is no multiple of {step}" + (f" and {offset}" if offset else "")


def _allowed(wanted: Any, kind: str, value: Any) -> str:
    known = sequence(wanted)
    if kind == "number":
        is_known = value in map(_number, known)
    else:
        read = str.lower if kind == "boolean" else str
        given = value if isinstance(value, list) else [value]
        is_known = {read(str(one)) for one in given} <= {read(str(k)) for k in known}
    return "" if is_known else f"is none of {', '.join(map(str, known))}"


def _pattern(wanted: Any, kind: str, value: Any) -> str:
    if not isinstance(value, str):
        return ""
    why = foreign_patterns.problem(str(wanted), value)
    return f"{why} {wanted}" if why else ""


def _custom(wanted: Any, kind: str, value: Any) -> str:
    try:
        match wanted:
            case "net_cidr":
                networks.network(str(value))
            case "ip_addr":
                networks.address(str(value))
    except ValueError:
        return (
            "is no network such as 192.0.2.0/24"
            if wanted == "net_cidr"
            else "is no IP address"
        )
    return ""


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return text if text.isprintable() and text else repr(text)


_CHECKS: Mapping[str, Callable[[Any, str, Any], str]] = {
    "range": _range,
    "length": _length,
    "modulo": _modulo,
    "allowed_values": _allowed,
    "allowed_pattern": _pattern,
    "custom_constraint": _custom,
}
