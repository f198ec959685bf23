# SPDX-License-Identifier: Apache-2.0
"""Request bodies of Tacker's APIs: the operation of a body, and its shape.

Bodies are checked against the JSON schemas of Tacker's APIs. ``request_schemas.json``
has those of the installed Tacker, by API and operation;
``tests/contract/request_schemas.py`` writes it. What Tacker's code demands beyond them
is here. :mod:`tacker_k8s_mgmt.request.reader` checks the contents of
``additionalParams``.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from uuid import UUID

import jsonschema
import netaddr

from tacker_k8s_mgmt.features.node_settings import settings
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, sequence
from tacker_k8s_mgmt.request import reader, structure
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2, Api

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
    path = resources.files("tacker_k8s_mgmt.tools.csar") / "request_schemas.json"
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


#: The driver's own attribute, in both spellings.
ATTRIBUTES = (reader.ATTRIBUTE, structure.camel(reader.ATTRIBUTE))
#: Of a text of the metadata, in Tacker's v2 API.
LONGEST_TEXT = 1024
_OURS = tuple((name,) for name in ATTRIBUTES)


@dataclass(frozen=True)
class Request:
    """A request body.

    :param operation: "" if nothing in the body identifies it.
    :param problems: what Tacker's API would refuse, one sentence each.
    :param warnings: what one of Tacker's APIs would refuse, where either may be meant.
    """

    operation: str
    body: Mapping[str, Any]
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def additional_params(self) -> Mapping[str, Any]:
        return mapping(self.body.get("additionalParams"))

    @property
    def may_upgrade(self) -> bool:
        """Whether it may ask for another Kubernetes version."""
        return self.operation == CHANGE_VNFPKG

    @property
    def is_later(self) -> bool:
        """Whether it comes after an instantiation, whose parameters it may change."""
        return self.operation not in ("", CREATE, INSTANTIATE)

    @property
    def concerns_us(self) -> bool:
        """Whether it has the driver's own attribute."""
        return any(self.additional_params.get(name) is not None for name in ATTRIBUTES)

    @property
    def installation(self) -> Mapping[str, Any]:
        """The driver's own attribute as written in the body; may be empty."""
        values = (mapping(self.additional_params.get(name)) for name in ATTRIBUTES)
        return next(filter(None, values), {})


def read(document: Any, api: Api | None = None) -> Request:
    """A whole body, ``additionalParams`` alone, or the driver's structure alone.

    :param api: None: the one whose shape it has, v1 where both have it.
    :raises ValueError: it is none of these.
    """
    if not isinstance(document, Mapping):
        raise ValueError("it is no JSON object")
    names = set(document)
    name = (api or _api_of(document)).name
    operation = _operation(document)
    if operation in tackers()[name]:
        problems = (*_problems(name, operation, document), *_settings(document))
        long = () if api else tuple(_sentences(_long(document)))
        return Request(operation, document, problems, long)
    if operation:
        return Request("", document, (f"the package's API has no {operation}",))
    if "additionalParams" in document:
        problems = _problems(name, HEAL, document)
        return Request("", document, problems)
    if names.intersection(ATTRIBUTES):
        return Request("", {"additionalParams": document})
    known = structure.border_names(reader.ClusterRequest)
    if names.intersection((*known, *map(structure.camel, known))):
        return Request("", {"additionalParams": {reader.ATTRIBUTE: document}})
    raise ValueError(f"there is neither a request nor {reader.ATTRIBUTE} in it")


def _operation(document: Mapping[str, Any]) -> str:
    """The operation of a body; "" if nothing in it identifies one."""
    if "upgrade_type" in mapping(document.get("additionalParams")):
        return CHANGE_VNFPKG
    return operation_of(document)


def _api_of(document: Mapping[str, Any]) -> Api:
    """The API that has a body of this shape."""
    is_map = isinstance(document.get("vimConnectionInfo"), Mapping) or any(
        isinstance(dig(cp, "cpConfig"), Mapping) for cp in external_cps(document)
    )
    ids = sequence(document.get("vnfcInstanceId"))
    package = _operation(document) == CHANGE_VNFPKG
    return V2 if is_map or package or not all(map(_is_uuid_text, ids)) else V1


def _is_uuid_text(value: Any) -> bool:
    try:
        UUID(value)
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def external_cps(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The external connection points in ``extVirtualLinks``."""
    for link in sequence(document.get("extVirtualLinks")):
        yield from map(mapping, sequence(mapping(link).get("extCps")))


def _problems(api: str, operation: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    blanks_in = dict(_blanks(body))
    known = blanks_in if api == V1.name else {**dict(_long(body)), **blanks_in}
    refused = problems(api, operation, body)
    others = ((place, text) for place, text in refused if place not in known)
    return tuple(dict.fromkeys(_sentences((*known.items(), *others))))


def _sentences(found: Iterable[tuple[structure.Location, str]]) -> Iterator[str]:
    for place, text in found:
        yield f"{'.'.join(place)}: {text}"


def _blanks(body: Mapping[str, Any]) -> Iterator[tuple[structure.Location, str]]:
    """Blanks outside the driver's attribute, which reports its own."""
    for place, text in structure.places(body):
        if place[:1] != ("additionalParams",) or place[1:2] not in _OURS:
            yield place, text


def _settings(body: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with the metadata: settings of nodes, and lists."""
    metadata = reader.merged_metadata({}, mapping(body.get("metadata")))
    _, problems = settings.parse(metadata)
    return (*problems, *reader.problems(metadata))


def _long(body: Mapping[str, Any]) -> Iterator[tuple[structure.Location, str]]:
    """Texts of the metadata that Tacker's v2 API refuses."""
    for name, value in mapping(body.get("metadata")).items():
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            is_json = value.lstrip().startswith(("[", "{"))
            way_out = "; it takes the JSON itself, not as text" if is_json else ""
            yield (
                ("metadata", name),
                f"its text has {len(value)} characters, and Tacker's v2 API refuses "
                f"more than {LONGEST_TEXT}{way_out}",
            )
