# SPDX-License-Identifier: Apache-2.0
"""The shapes of request bodies, as Tacker's APIs check them.

v1: ``tacker/api/schemas/vnf_lcm.py``. v2: ``tacker/sol_refactored/api/schemas/
vnflcm_v2.py``, and what ``controller/vnflcm_v2.py`` and the objects demand beyond it.
The contract tests hold them against Tacker's.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

CREATE = "create"
INSTANTIATE = "instantiate"
SCALE = "scale"
HEAL = "heal"
TERMINATE = "terminate"
CHANGE_EXT_CONN = "change_ext_conn"
CHANGE_VNFPKG = "change_vnfpkg"
MODIFY = "modify"

_Text = Annotated[StrictStr, Field(max_length=255)]
_Name = Annotated[StrictStr, Field(min_length=1, max_length=255)]
_Uuid = Annotated[UUID, Field(strict=False)]
_Key = Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9-_:. /]{1,1024}$")]


class Body(BaseModel):
    """Base of all bodies: unknown attributes pass, and errors show no values."""

    model_config = ConfigDict(hide_input_in_errors=True)


class _Protocol(Body):
    layerProtocol: Literal["IP_OVER_ETHERNET"]


class _CpConfig(Body):
    linkPortId: StrictStr | None = None
    cpProtocolData: list[_Protocol] = []


class _ExtCp(Body):
    cpdId: StrictStr
    cpConfig: list[_CpConfig] = Field(min_length=1, max_length=1)


class _ExtLink(Body):
    id: StrictStr
    resourceId: StrictStr
    extCps: list[_ExtCp] = Field(min_length=1)


class _Vim(Body):
    id: StrictStr
    vimType: _Text


class _Create(Body):
    vnfdId: _Uuid
    vnfInstanceName: _Text | None = None


class _Instantiate(Body):
    flavourId: _Text
    instantiationLevelId: _Text = ""
    extVirtualLinks: list[_ExtLink] = []
    vimConnectionInfo: list[_Vim] = Field(default=[], max_length=1)
    additionalParams: dict[str, Any] = {}


class _Scale(Body):
    type: Literal["SCALE_OUT", "SCALE_IN"]
    aspectId: StrictStr
    numberOfSteps: StrictInt = 1
    additionalParams: dict[str, Any] = {}


class _Heal(Body):
    cause: _Text = ""
    vnfcInstanceId: list[_Uuid] = []
    additionalParams: dict[str, Any] = {}


class _Terminate(Body):
    terminationType: Literal["FORCEFUL", "GRACEFUL"]
    gracefulTerminationTimeout: Annotated[StrictInt, Field(ge=0)] = 0
    additionalParams: dict[str, Any] = {}


class _ChangeExtConn(Body):
    extVirtualLinks: list[_ExtLink]
    vimConnectionInfo: list[_Vim] = Field(default=[], max_length=1)
    additionalParams: dict[str, Any] = {}


class _Modify(Body):
    metadata: dict[_Key, Any] = {}
    vnfInstanceName: _Text | None = None


class _AddressesV2(Body):
    type: Literal["IPV4", "IPV6"]


class _EthernetV2(Body):
    ipAddresses: list[_AddressesV2] = []


class _ProtocolV2(_Protocol):
    # Optional in the schema; without it openstack.py cannot make extCpInfo.
    ipOverEthernet: _EthernetV2


class _CpConfigV2(Body):
    linkPortId: _Name | None = None
    cpProtocolData: list[_ProtocolV2] = []


class _ExtCpV2(Body):
    cpdId: _Name
    cpConfig: dict[str, _CpConfigV2] = Field(min_length=1)


class _ExtLinkV2(Body):
    id: _Name
    resourceId: _Name
    extCps: list[_ExtCpV2] = Field(min_length=1)


class _VimV2(Body):
    vimId: _Text | None = None
    vimType: _Name
    interfaceInfo: dict[str, Any] | None = None
    accessInfo: dict[str, Any] | None = None


class _CreateV2(_Create):
    vnfdId: _Name  # type: ignore[assignment]


class _InstantiateV2(Body):
    flavourId: _Name
    instantiationLevelId: _Name | None = None
    extVirtualLinks: list[_ExtLinkV2] = []
    vimConnectionInfo: dict[str, _VimV2] = {}
    additionalParams: dict[str, Any] = {}


class _ScaleV2(_Scale):
    aspectId: _Name
    numberOfSteps: Annotated[StrictInt, Field(ge=1)] = 1


class _HealParamsV2(Body):
    all: StrictBool = False


class _HealV2(Body):
    cause: _Text = ""
    vnfcInstanceId: list[_Name] = []
    additionalParams: _HealParamsV2 = _HealParamsV2()


class _TerminateV2(_Terminate):
    gracefulTerminationTimeout: Annotated[StrictInt, Field(ge=1)] = 1


class _ChangeExtConnV2(Body):
    extVirtualLinks: list[_ExtLinkV2]
    vimConnectionInfo: dict[str, _VimV2] = {}
    additionalParams: dict[str, Any] = {}


class _PackageParamsV2(Body):
    upgrade_type: Literal["RollingUpdate"]
    vdu_params: list[dict[str, Any]]


class _ChangeVnfPkgV2(Body):
    vnfdId: _Name
    additionalParams: _PackageParamsV2


MODELS: Mapping[str, Mapping[str, type[Body]]] = {
    "v1": {
        CREATE: _Create,
        INSTANTIATE: _Instantiate,
        SCALE: _Scale,
        HEAL: _Heal,
        TERMINATE: _Terminate,
        CHANGE_EXT_CONN: _ChangeExtConn,
        MODIFY: _Modify,
    },
    "v2": {
        CREATE: _CreateV2,
        INSTANTIATE: _InstantiateV2,
        SCALE: _ScaleV2,
        HEAL: _HealV2,
        TERMINATE: _TerminateV2,
        CHANGE_EXT_CONN: _ChangeExtConnV2,
        CHANGE_VNFPKG: _ChangeVnfPkgV2,
        MODIFY: _Modify,
    },
}
"""The body of each operation, by the name of the API."""
