# SPDX-License-Identifier: Apache-2.0
"""VNF instances and operations as Tacker's two APIs show them.

Only what the verbs need is read. An id becomes part of a path, so it is checked; what
is missing or of another type is an error or empty, never a crash.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, sequence
from tacker_k8s_mgmt.text import in_line

_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LONGEST = 1000  # characters of a name
SCALE = "SCALE"
INSTANTIATED = "INSTANTIATED"
ROLLED_BACK = "ROLLED_BACK"
FAILED = "FAILED"


@dataclass(frozen=True)
class Api:
    """One of Tacker's APIs for the life of a VNF.

    :param version: the header ``Version``. Tacker's v2 API refuses a request without
        it, and v1 does not look at it.
    :param patch: ``Content-Type`` of a modification. SOL003 has another one, which v1
        does not take.
    :param vnfcs: the list in ``instantiatedVnfInfo`` with the ids that a heal takes.
    """

    name: str
    root: str
    version: str
    vnfcs: str
    patch: str

    @property
    def instances(self) -> str:
        """The path of the VNF instances."""
        return f"{self.root}/vnf_instances"

    @property
    def operations(self) -> str:
        """The path of the LCM operation occurrences."""
        return f"{self.root}/vnf_lcm_op_occs"


_JSON = "application/json"
_PATCH = "application/merge-patch+json"
V1 = Api("v1", "/vnflcm/v1", "1.3.0", "vnfcResourceInfo", _JSON)
V2 = Api("v2", "/vnflcm/v2", "2.0.0", "vnfcInfo", _PATCH)
APIS = (V1, V2)


def is_id(text: str) -> bool:
    """Whether it has the form of Tacker's ids."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True)
class Vnfc:
    """A VM of a VNF instance.

    :param id: as a heal takes it.
    :param vdu: name of its VDU.
    :param server: id of its server in Nova.
    """

    id: str
    vdu: str
    server: str


@dataclass(frozen=True)
class Instance:
    """A VNF instance.

    :param levels: the scale level of each aspect.
    :param highest: the highest level of each; empty in the v1 API, where only the VNFD
        has it.
    """

    api: Api
    id: str
    name: str = ""
    state: str = ""
    vnfd_id: str = ""
    flavour: str = ""
    vnfcs: tuple[Vnfc, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    highest: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"{self.api.instances}/{self.id}"

    @property
    def title(self) -> str:
        """What it is called in texts."""
        return f"{self.name or self.id} ({self.api.name})"


def instance(api: Api, row: Mapping[str, Any]) -> Instance:
    """A VNF instance as Tacker shows it.

    :raises TackerError: it has no id.
    """
    info = mapping(row.get("instantiatedVnfInfo"))
    return Instance(
        api,
        _id(row, "VNF instance"),
        _text(row, "vnfInstanceName"),
        _text(row, "instantiationState"),
        _text(row, "vnfdId"),
        _text(info, "flavourId"),
        tuple(_vnfcs(api, info)),
        _levels(info, "scaleStatus"),
        _levels(info, "maxScaleLevels"),
    )


def _vnfcs(api: Api, info: Mapping[str, Any]) -> Iterator[Vnfc]:
    resources = list(map(mapping, sequence(info.get("vnfcResourceInfo"))))
    by_id = {_text(one, "id"): one for one in resources}
    for one in map(mapping, sequence(info.get(api.vnfcs))):
        resource = one if api is V1 else by_id.get(_text(one, "vnfcResourceInfoId"), {})
        server = dig(resource, "computeResource", "resourceId")
        vnfc = Vnfc(
            _text(one, "id"),
            _text(resource, "vduId"),
            server if isinstance(server, str) else "",
        )
        if vnfc.id:
            yield vnfc


def _levels(info: Mapping[str, Any], key: str) -> dict[str, int]:
    found = {}
    for row in map(mapping, sequence(info.get(key))):
        with suppress(ValueError):
            found[_text(row, "aspectId")] = int(untrusted.number(row.get("scaleLevel")))
    found.pop("", None)
    return found


@dataclass(frozen=True)
class Occurrence:
    """An operation: an LCM operation occurrence.

    :param kind: ``operation``; for a scale its ``type``, where that is shown.
    :param mark: state and since when: another one after each change.
    :param error: Tacker's text; "" without.
    """

    api: Api
    id: str
    instance: str
    kind: str
    state: str
    started: str
    mark: tuple[str, str]
    error: str

    @property
    def path(self) -> str:
        return f"{self.api.operations}/{self.id}"


def occurrence(api: Api, row: Mapping[str, Any]) -> Occurrence:
    """An operation as Tacker lists or shows it.

    :raises TackerError: it has no id.
    """
    kind, state = _text(row, "operation"), _text(row, "operationState")
    parameters = mapping(row.get("operationParams"))
    if kind == SCALE:
        kind = _text(parameters, "type") or kind
    detail = dig(row, "error", "detail")
    return Occurrence(
        api,
        _id(row, "record of an operation"),
        _text(row, "vnfInstanceId"),
        kind,
        state,
        _text(row, "startTime"),
        (state, _text(row, "stateEnteredTime")),
        detail if isinstance(detail, str) else "",
    )


def location_id(location: str) -> str:
    """The id of the operation that an answer's ``Location`` leads to; "" for none."""
    last = location.rstrip("/").rpartition("/")[2]
    return last if is_id(last) else ""


def listed(occurrences: Iterable[Occurrence]) -> str:
    """Operations in a sentence."""
    return ", ".join(f"{one.kind} {one.id} is {one.state}" for one in occurrences)


def _id(row: Mapping[str, Any], what: str) -> str:
    found = _text(row, "id")
    if not is_id(found):
        raise TackerError(detail=f"Tacker's answer has a {what} without a valid id.")
    return found


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or len(value) > _LONGEST:
        return ""
    return in_line(value)
