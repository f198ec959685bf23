# SPDX-License-Identifier: Apache-2.0
"""Request bodies against the JSON schemas of Tacker's APIs.

``request_schemas.json`` has the schemas of the installed Tacker, by API and operation;
``tests/contract/request_schemas.py`` writes it. What Tacker's code demands beyond them
is here.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any
from uuid import UUID

import jsonschema
import netaddr

CREATE = "create"
INSTANTIATE = "instantiate"
SCALE = "scale"
HEAL = "heal"
TERMINATE = "terminate"
CHANGE_EXT_CONN = "change_ext_conn"
CHANGE_VNFPKG = "change_vnfpkg"
MODIFY = "modify"

#: In place of a pattern of all printable characters, which depends on Python's version.
PRINTABLE = "printable"
_PARAMS = "additionalParams"
#: Of equally likely operations the first one counts.
_ORDER = (
    *(CREATE, INSTANTIATE, CHANGE_EXT_CONN, SCALE),
    *(MODIFY, HEAL, TERMINATE, CHANGE_VNFPKG),
)

Schema = Mapping[str, Any]
Place = tuple[str, ...]


def _below(names: Iterable[str], schema: Schema) -> Schema:
    """The schema of a body with *schema* at a place.

    :param names: ``[]`` is each entry of a list, ``*`` each value of an object.
    """
    for name in reversed(tuple(names)):
        if name == "[]":
            schema = {"items": schema}
        elif name == "*":
            schema = {"additionalProperties": schema}
        else:
            schema = {"properties": {name: schema}}
    return schema


# v2's openstack.py makes extCpInfo of it.
_ETHERNET = _below(
    ("extVirtualLinks", "[]", "extCps", "[]", "cpConfig", "*", "cpProtocolData", "[]"),
    {"required": ["ipOverEthernet"]},
)
_BEYOND: Mapping[str, Mapping[str, Schema]] = {
    "v1": {
        HEAL: _below([_PARAMS], {"type": "object"}),
        # The controller applies no schema; these go into columns of the database.
        MODIFY: {
            "properties": {
                "metadata": {"type": "object"},
                "vnfInstanceName": {"type": "string", "maxLength": 255},
                "vnfInstanceDescription": {"type": "string", "maxLength": 1024},
            }
        },
    },
    "v2": {
        INSTANTIATE: _ETHERNET,
        CHANGE_EXT_CONN: _ETHERNET,
        HEAL: _below([_PARAMS, "all"], {"type": "boolean"}),
        # controller/vnflcm_v2.py and vnflcm_driver_v2.py
        CHANGE_VNFPKG: {
            **_below(
                [_PARAMS],
                {
                    "required": ["upgrade_type", "vdu_params"],
                    "properties": {
                        "upgrade_type": {"enum": ["RollingUpdate"]},
                        "vdu_params": {"type": "array", "items": {"type": "object"}},
                    },
                },
            ),
            "required": [_PARAMS],
        },
    },
}


@cache
def tackers() -> Mapping[str, Mapping[str, Schema]]:
    """Tacker's schemas, by API and operation."""
    path = resources.files("tacker_k8s_mgmt.csar") / "request_schemas.json"
    read: Mapping[str, Mapping[str, Schema]] = json.loads(path.read_text("utf-8"))
    return read


@cache
def _attributes(operation: str) -> tuple[frozenset[str], frozenset[str]]:
    """All attributes of an operation's body in either API, and the required ones."""
    schemas = [every[operation] for every in tackers().values() if operation in every]
    names = frozenset().union(*(schema.get("properties", ()) for schema in schemas))
    return names, frozenset(schemas[-1].get("required", ()))


def operation_of(body: Mapping[str, Any]) -> str:
    """The operation whose schemas know the most of a body; "" if none knows any."""
    ranks = {}
    for operation in _ORDER:
        names, required = _attributes(operation)
        known = names.intersection(body)
        if known - {_PARAMS}:  # Most operations have it.
            ranks[operation] = (len(known), required <= known)
    return max(ranks, key=lambda operation: ranks[operation], default="")


def problems(
    api: str, operation: str, body: Mapping[str, Any]
) -> Iterator[tuple[Place, str]]:
    """What Tacker refuses of a body: where, and a sentence without its values.

    :param api: name of the API, which has the operation.
    """
    schemas = [tackers()[api][operation], _BEYOND[api].get(operation, {})]
    for error in validator({"allOf": schemas}).iter_errors(body):
        yield from _described(error)


def validator(schema: Schema) -> Any:
    """A validator of request bodies, which takes what Tacker's takes."""
    return jsonschema.Draft7Validator(schema, format_checker=_formats())


def _formats() -> Any:
    """The formats of Tacker's ``api/validation/validators.py``.

    The schemas want text as well, which alone is reported of other values.
    """
    checker = jsonschema.FormatChecker(formats=("ipv4", "ipv6"))
    checker.checks("uuid")(_of_text(_is_uuid))
    checker.checks(PRINTABLE)(_of_text(_is_printable))
    for name in ("mac_address", "mac_address_or_none"):
        checker.checks(name)(_of_text(netaddr.valid_mac))
    return checker


def _of_text(check: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) or check(value)


def _is_uuid(text: str) -> bool:
    """As ``oslo_utils.uuidutils.is_uuid_like``."""
    bare = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    try:
        return UUID(text).hex == bare.lower()
    except ValueError:
        return False


def _is_printable(text: str) -> bool:
    """As the pattern of ``parameter_types.py``, whose $ admits a line's end."""
    kinds = ((unicodedata.category(c), c) for c in text.removesuffix("\n"))
    return all(
        c < "\uffff" and kind[0] != "C" and (kind[0] != "Z" or kind == "Zs")
        for kind, c in kinds
    )


# --- sentences

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a structure with attributes",
    "array": "a list",
    "null": "null",
}
_FORMATS = {
    "uuid": "must be a UUID",
    "ipv4": "must be an IPv4 address",
    "ipv6": "must be an IPv6 address",
    "mac_address": "must be a MAC address",
    "mac_address_or_none": "must be a MAC address",
    PRINTABLE: "must have printable characters only",
}


def _listed(names: Iterable[Any]) -> str:
    return " or ".join(map(str, names))


def _types(wanted: str | list[str]) -> str:
    names = [wanted] if isinstance(wanted, str) else wanted
    return f"must be {_listed(_TYPES[name] for name in names)}"


def _at_least(number: int, what: str) -> str:
    return "must not be empty" if number == 1 else f"must have {number} {what} or more"


_SENTENCES: Mapping[str, Callable[[Any], str]] = {
    "type": _types,
    "format": lambda name: _FORMATS[name],
    "enum": lambda values: f"must be {_listed(values)}",
    "pattern": lambda pattern: f"must match {pattern}",
    "minLength": lambda number: _at_least(number, "characters"),
    "maxLength": lambda number: f"must have at most {number} characters",
    "minItems": lambda number: _at_least(number, "entries"),
    "maxItems": lambda number: f"must have no more entries than {number}",
    "minProperties": lambda number: _at_least(number, "attributes"),
    "minimum": lambda number: f"must be at least {number}",
}


def _described(error: Any) -> Iterator[tuple[Place, str]]:
    """An error by its keyword; its own message has the value."""
    place, value = tuple(map(str, error.absolute_path)), error.validator_value
    if error.validator == "required":
        for name in value:
            if name not in error.instance:
                yield (*place, name), "is missing"
    elif error.validator == "additionalProperties":
        patterns = error.schema.get("patternProperties", {})
        for name in error.instance:
            if not any(re.search(pattern, name) for pattern in patterns):
                yield (*place, name), f"its name must match {_listed(patterns)}"
    elif error.validator in ("anyOf", "oneOf"):
        yield from _unmatched(error, place)
    else:
        yield place, _SENTENCES[error.validator](value)


def _unmatched(error: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """An error of alternatives: of attributes, or of what a value may be."""
    branches = error.validator_value
    if all("required" in branch for branch in branches):
        number = "exactly one" if error.validator == "oneOf" else "one"
        names = ", ".join(name for branch in branches for name in branch["required"])
        yield place, f"must have {number} of {names}"
        return
    fitting = [inner for inner in error.context if inner.validator != "type"]
    for inner in fitting:  # Its branch has the type of the value.
        yield from _described(inner)
    if not fitting:
        yield place, _types([branch["type"] for branch in branches])
