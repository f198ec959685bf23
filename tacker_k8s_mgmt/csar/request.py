"""Request bodies of Tacker's v1 API: which operation one is for, and its shape.

The shape is what ``tacker/api/schemas/vnf_lcm.py`` refuses with 400: the contract tests
hold both against each other. What stands in ``additionalParams`` is the matter of
:mod:`tacker_k8s_mgmt.cluster.params`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from tacker_k8s_mgmt.cluster import params, spelling
from tacker_k8s_mgmt.csar.tree import mapping

INSTANTIATE = "instantiate"

_OURS = (params.ATTRIBUTE, spelling.camel(params.ATTRIBUTE))

_Text = Annotated[StrictStr, Field(max_length=255)]
_Uuid = Annotated[UUID, Field(strict=False)]


class _Body(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)


class _Protocol(_Body):
    layerProtocol: Literal["IP_OVER_ETHERNET"]


class _CpConfig(_Body):
    linkPortId: StrictStr | None = None
    cpProtocolData: list[_Protocol] = []


class _ExtCp(_Body):
    cpdId: StrictStr
    cpConfig: list[_CpConfig] = Field(min_length=1, max_length=1)


class _ExtLink(_Body):
    id: StrictStr
    resourceId: StrictStr
    extCps: list[_ExtCp] = Field(min_length=1)


class _Vim(_Body):
    id: StrictStr
    vimType: _Text


class _Create(_Body):
    vnfdId: _Uuid
    vnfInstanceName: _Text | None = None


class _Instantiate(_Body):
    flavourId: _Text
    instantiationLevelId: _Text = ""
    extVirtualLinks: list[_ExtLink] = []
    vimConnectionInfo: list[_Vim] = Field(default=[], max_length=1)
    additionalParams: dict[str, Any] = {}


class _Scale(_Body):
    type: Literal["SCALE_OUT", "SCALE_IN"]
    aspectId: StrictStr
    numberOfSteps: StrictInt = 1
    additionalParams: dict[str, Any] = {}


class _Heal(_Body):
    cause: _Text = ""
    vnfcInstanceId: list[_Uuid] = []
    additionalParams: dict[str, Any] = {}


class _Terminate(_Body):
    terminationType: Literal["FORCEFUL", "GRACEFUL"]
    gracefulTerminationTimeout: Annotated[StrictInt, Field(ge=0)] = 0
    additionalParams: dict[str, Any] = {}


_MODELS: Mapping[str, type[_Body]] = {
    "create": _Create,
    INSTANTIATE: _Instantiate,
    "scale": _Scale,
    "heal": _Heal,
    "terminate": _Terminate,
}
#: Attributes that only one operation has.
_MARKS: Mapping[str, tuple[str, ...]] = {
    "create": ("vnfdId", "vnfInstanceName"),
    INSTANTIATE: ("flavourId", "instantiationLevelId", "extVirtualLinks"),
    "scale": ("aspectId", "numberOfSteps", "type"),
    "heal": ("vnfcInstanceId", "cause"),
    "terminate": ("terminationType", "gracefulTerminationTimeout"),
}


@dataclass(frozen=True)
class Request:
    """A request body.

    :param operation: what it is for; "" where nothing in it tells.
    :param problems: what Tacker's API would refuse, one sentence each.
    """

    operation: str
    body: Mapping[str, Any]
    problems: tuple[str, ...] = ()

    @property
    def additional_params(self) -> Mapping[str, Any]:
        return mapping(self.body.get("additionalParams"))

    @property
    def concerns_us(self) -> bool:
        """Whether the driver's own attribute is in it."""
        return any(self.additional_params.get(name) is not None for name in _OURS)

    @property
    def installation(self) -> Mapping[str, Any]:
        """The driver's own attribute as it was given, empty where it is none."""
        given = (mapping(self.additional_params.get(name)) for name in _OURS)
        return next((one for one in given if one), {})


def read(document: Any) -> Request:
    """A whole body, ``additionalParams`` alone, or the driver's structure alone.

    :raises ValueError: it is none of these.
    """
    if not isinstance(document, Mapping):
        raise ValueError("it is no JSON object")
    names = set(document)
    for operation, marks in _MARKS.items():
        if names.intersection(marks):
            return Request(operation, document, _problems(operation, document))
    if "additionalParams" in document:
        return Request("", document, _problems("heal", document))
    if names.intersection(_OURS):
        return Request("", {"additionalParams": document})
    known = spelling.border_names(params.InstallParams)
    if names.intersection((*known, *map(spelling.camel, known))):
        return Request("", {"additionalParams": {params.ATTRIBUTE: document}})
    raise ValueError(f"there is neither a request nor {params.ATTRIBUTE} in it")


def _problems(operation: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        _MODELS[operation].model_validate(body)
    except ValidationError as error:
        # Neither the values nor the chained exception leave this block.
        details = error.errors(include_url=False, include_input=False)
    else:
        return ()
    return tuple(
        f"{'.'.join(map(str, detail['loc']))}: {_sentence(detail)}"
        for detail in details
    )


def _sentence(detail: Any) -> str:
    text = str(detail["msg"])
    return "is missing" if detail["type"] == "missing" else text[0].lower() + text[1:]
