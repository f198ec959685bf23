# SPDX-License-Identifier: Apache-2.0
"""Which VMs of a package are which, by its VNFD and its Base HOT."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tacker_k8s_mgmt.cloud.demand import Package
from tacker_k8s_mgmt.csar import request_check, vnfd, vnfd_rules
from tacker_k8s_mgmt.csar.sources import SCRIPTS
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.topology import base_hot

# Names of VDUs, the first one that fits counts.
_NAMES: tuple[tuple[Role, str], ...] = (
    (Role.LOAD_BALANCER, r"lb|balanc"),
    (Role.CONTROL_PLANE, r"master|control"),
    (Role.WORKER, r"work|node"),
)


@dataclass(frozen=True)
class Vms:
    """The VMs of a role, by names in the VNFD and in the Base HOT.

    :param ssh_cp: connection point for SSH; "" if the VDU has none.
    :param nic_cp: connection point on a network inside the VNF; "" likewise.
    :param group: the Heat group that they are members of; "" for a single VM.
    """

    vdu: str
    ssh_cp: str = ""
    nic_cp: str = ""
    group: str = ""


def roles(package: Package) -> dict[Role, Vms]:
    """The VMs of each role that a VDU's name tells."""
    found: dict[Role, Vms] = {}
    groups = {
        r.vdu: r.name
        for r in package.base.resources()
        if r.type in base_hot.GROUPS and r.vdu
    }
    external = external_points(package)
    for vdu in package.flavour.of_type(vnfd.VDU):
        role = next((r for r, n in _NAMES if re.search(n, vdu, re.IGNORECASE)), None)
        if role is None or role in found:
            continue
        points = list(_points(package.flavour, vdu))
        outer = [cp for cp in points if cp in external]
        inner = [cp for cp in points if cp not in external]
        found[role] = Vms(
            vdu,
            next(iter(outer or inner), ""),
            next(iter(inner), ""),
            groups.get(vdu, ""),
        )
    return found


def external_points(package: Package) -> list[str]:
    """The connection points that a request connects, in the VNFD's order."""
    external = vnfd_rules.external_cps(package.flavour)
    return [cp for cp in package.flavour.of_type(vnfd.CP) if cp in external]


def _points(flavour: vnfd.Flavour, vdu: str) -> Iterator[str]:
    for cp in flavour.of_type(vnfd.CP):
        if flavour.requirement(cp, "virtual_binding") == vdu:
            yield cp


def user_data(files: Mapping[str, bytes]) -> tuple[str, str]:
    """File and class of a package's user data; empty without any."""
    for name, content in sorted(files.items()):
        path = PurePosixPath(name)
        if path.suffix == ".py" and path.parts[0] not in ("Definitions", "Scripts"):
            for found in sorted(request_check.classes(content)):
                return f"./{name}", found
    return "", ""


def balancer_script(files: Mapping[str, bytes]) -> str:
    """The load balancer's script of a package; "" without any."""
    return next((f"./{name}" for name in SCRIPTS if name in files), "")
