# SPDX-License-Identifier: Apache-2.0
"""Tacker's two APIs, and what each of them requires of a VNF package.

v1 calls a driver that is installed, and compares its file with the package's copy. v2
runs the package's script, whose path it takes relative to ``Definitions``
(``tacker/sol_refactored/conductor/vnflcm_driver_v2.py``, ``_exec_mgmt_driver_script``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

_CAPACITY = "desired_capacity"
_ZONE = "locationConstraints"


@dataclass(frozen=True)
class Api:
    """One of the APIs.

    :param driver_file: path of the driver's file in the package.
    :param artifact: the same file as the VNFD names it.
    :param hooks: those that a VNFD has to name.
    :param samples: the directory in ``samples/`` with its VNFD, HOT and requests.
    :param flavor: key in ``nfv.VDU.<name>`` of a VDU's flavour.
    :param image: likewise, of its image.
    :param scaling_policies: whether Tacker signals Heat's scaling policies; else it
        updates the stack with another number.
    """

    name: str
    driver_file: str
    artifact: str
    hooks: tuple[str, ...]
    samples: str
    flavor: str
    image: str
    scaling_policies: bool

    @property
    def vdu_keys(self) -> tuple[str, ...]:
        """The keys of ``nfv.VDU.<name>`` that are filled."""
        more = () if self.scaling_policies else (_CAPACITY, _ZONE)
        return (self.flavor, self.image, *more)

    def capacity(self, group: str, vdu: str) -> Mapping[str, object]:
        """The value that the Base HOT must have as a group's number of members."""
        if self.scaling_policies:
            return {"get_param": f"{group}_desired_capacity"}
        return {"get_param": ["nfv", "VDU", vdu, _CAPACITY]}


_HOOKS = (
    "instantiate_end",
    "terminate_end",
    "scale_start",
    "scale_end",
    "heal_start",
    "heal_end",
)
V1 = Api(
    name="v1",
    driver_file="Scripts/kubespray_mgmt.py",
    artifact="Scripts/kubespray_mgmt.py",
    hooks=_HOOKS,
    samples="",
    flavor="flavor",
    image="image",
    scaling_policies=True,
)
V2 = Api(
    name="v2",
    driver_file="Scripts/kubespray_mgmt_v2.py",
    artifact="../Scripts/kubespray_mgmt_v2.py",
    hooks=(
        *_HOOKS,
        "instantiate_start",
        "terminate_start",
        "instantiate_rollback_start",
        "scale_rollback_start",
    ),
    samples="v2",
    flavor="computeFlavourId",
    image="vcImageId",
    scaling_policies=False,
)
APIS: Mapping[str, Api] = {api.name: api for api in (V1, V2)}


def of_package(files: Mapping[str, bytes]) -> Api:
    """The API that a package is for, by the script in its VNFD or among its files.

    :param files: contents by path in the package.
    """
    named = any(
        V2.artifact.encode() in content
        for name, content in files.items()
        if name.startswith("Definitions/")
    )
    return V2 if named or V2.driver_file in files else V1
