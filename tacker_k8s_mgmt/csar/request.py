# SPDX-License-Identifier: Apache-2.0
"""Request bodies of Tacker's APIs: the operation of a body, and its shape.

:mod:`tacker_k8s_mgmt.request.params` checks the contents of ``additionalParams``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tacker_k8s_mgmt.csar import request_schemas
from tacker_k8s_mgmt.csar.api import V1, V2, Api
from tacker_k8s_mgmt.model import node_settings
from tacker_k8s_mgmt.model.tree import dig, mapping, sequence
from tacker_k8s_mgmt.request import blanks, key_aliases, metadata_lists, params

CREATE = request_schemas.CREATE
INSTANTIATE = request_schemas.INSTANTIATE
#: The driver's own attribute, in both spellings.
ATTRIBUTES = (params.ATTRIBUTE, key_aliases.camel(params.ATTRIBUTE))
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
        return self.operation == request_schemas.CHANGE_VNFPKG

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
    if operation in request_schemas.tackers()[name]:
        problems = (*_problems(name, operation, document), *_settings(document))
        long = () if api else tuple(_sentences(_long(document)))
        return Request(operation, document, problems, long)
    if operation:
        return Request("", document, (f"the package's API has no {operation}",))
    if "additionalParams" in document:
        problems = _problems(name, request_schemas.HEAL, document)
        return Request("", document, problems)
    if names.intersection(ATTRIBUTES):
        return Request("", {"additionalParams": document})
    known = key_aliases.border_names(params.InstallParams)
    if names.intersection((*known, *map(key_aliases.camel, known))):
        return Request("", {"additionalParams": {params.ATTRIBUTE: document}})
    raise ValueError(f"there is neither a request nor {params.ATTRIBUTE} in it")


def _operation(document: Mapping[str, Any]) -> str:
    """The operation of a body; "" if nothing in it identifies one."""
    if "upgrade_type" in mapping(document.get("additionalParams")):
        return request_schemas.CHANGE_VNFPKG
    return request_schemas.operation_of(document)


def _api_of(document: Mapping[str, Any]) -> Api:
    """The API that has a body of this shape."""
    is_map = isinstance(document.get("vimConnectionInfo"), Mapping) or any(
        isinstance(dig(cp, "cpConfig"), Mapping) for cp in external_cps(document)
    )
    ids = sequence(document.get("vnfcInstanceId"))
    package = _operation(document) == request_schemas.CHANGE_VNFPKG
    return V2 if is_map or package or not all(map(_is_uuid, ids)) else V1


def _is_uuid(value: Any) -> bool:
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
    refused = request_schemas.problems(api, operation, body)
    others = ((place, text) for place, text in refused if place not in known)
    return tuple(dict.fromkeys(_sentences((*known.items(), *others))))


def _sentences(
    found: Iterable[tuple[key_aliases.Location, str]],
) -> Iterator[str]:
    for place, text in found:
        yield f"{'.'.join(place)}: {text}"


def _blanks(body: Mapping[str, Any]) -> Iterator[tuple[key_aliases.Location, str]]:
    """Blanks outside the driver's attribute, which reports its own."""
    for place, text in blanks.places(body):
        if place[:1] != ("additionalParams",) or place[1:2] not in _OURS:
            yield place, text


def _settings(body: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with the metadata: settings of nodes, and lists."""
    metadata = node_settings.merged({}, mapping(body.get("metadata")))
    _, problems = node_settings.parse(metadata)
    return (*problems, *metadata_lists.problems(metadata))


def _long(body: Mapping[str, Any]) -> Iterator[tuple[key_aliases.Location, str]]:
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
