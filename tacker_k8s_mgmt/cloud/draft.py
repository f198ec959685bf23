# SPDX-License-Identifier: Apache-2.0
"""An instantiate request out of answers, with marked blanks for what is not known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.cloud import layout
from tacker_k8s_mgmt.cloud.demand import Package
from tacker_k8s_mgmt.cloud.layout import Vms
from tacker_k8s_mgmt.csar.api import V2
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request import blanks, user_data
from tacker_k8s_mgmt.request.params import ATTRIBUTE

Values = dict[str, Any]
_STRUCTURES: Mapping[Role, tuple[str, str]] = {
    Role.CONTROL_PLANE: ("master_node", ""),
    Role.WORKER: ("worker_node", ""),
    Role.LOAD_BALANCER: ("external_lb_param", "ssh_"),
}
_NEEDED = (Role.CONTROL_PLANE, Role.WORKER)


@dataclass
class Answers:
    """What is known about a site; blanks are marked texts.

    :param level: instantiation level; "" for the VNFD's default.
    :param networks: id or name by external connection point.
    :param ansible: the structure of the same name; empty for the operator's server.
    :param login: user and references to secrets of the VMs, by the specification's
        names without a prefix.
    :param hot: parameters of the Base HOT.
    :param more: further parameters of the driver, by dotted name.
    """

    level: str = ""
    vim_name: str = ""
    networks: Mapping[str, str] = field(default_factory=dict)
    ansible: Values = field(default_factory=dict)
    login: Values = field(default_factory=dict)
    hot: Values = field(default_factory=dict)
    more: Values = field(default_factory=dict)


def body(package: Package, files: Mapping[str, bytes], answers: Answers) -> Values:
    """The request.

    :param files: of the package.
    """
    path, name = layout.user_data(files)
    script = {
        user_data.PATH: path,
        user_data.CLASS: name,
    }
    return {
        "flavourId": package.flavour.id,
        **({"instantiationLevelId": answers.level} if answers.level else {}),
        "additionalParams": {
            **(script if path else {}),
            **answers.hot,
            ATTRIBUTE: _installation(package, files, answers),
        },
        "extVirtualLinks": [
            _link(package, cp, answers.networks[cp], answers.more)
            for cp in layout.external_points(package)
        ],
    }


def _installation(
    package: Package, files: Mapping[str, bytes], answers: Answers
) -> Values:
    found = layout.roles(package)
    made: Values = {}
    if answers.vim_name:
        made["vim_name"] = answers.vim_name
    if answers.ansible:
        made["ansible"] = dict(answers.ansible)
    for role, (structure, prefix) in _STRUCTURES.items():
        if role not in found and role not in _NEEDED:
            continue
        made[structure] = _selection(role, found.get(role), package)
        login = {f"{prefix}{name}": value for name, value in answers.login.items()}
        made[structure] |= login
    if Role.LOAD_BALANCER in found:
        script = layout.balancer_script(files)
        made["external_lb_param"]["script_path"] = script or blanks.mark(
            "path of the load balancer's script in the package"
        )
    for name, value in answers.more.items():
        _set(made, name, value)
    return made


def _selection(role: Role, vms: Vms | None, package: Package) -> Values:
    if vms is None or not vms.ssh_cp:
        known = ", ".join(layout.external_points(package)) or "none is external"
        meaning = f"connection point for SSH to the {role.value} VMs ({known})"
        return {"ssh_cp_name": blanks.mark(meaning)}
    has_group = vms.group and role is not Role.LOAD_BALANCER
    return {
        **({"aspect_id": vms.group} if has_group else {}),
        "ssh_cp_name": vms.ssh_cp,
        **({"nic_cp_name": vms.nic_cp} if vms.nic_cp else {}),
    }


def _set(made: Values, dotted: str, value: Any) -> None:
    *above, last = dotted.split(".")
    for name in above:
        inner = made.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{dotted}: {name} is no structure")
        made = inner
    made[last] = value


def _link(package: Package, cp: str, network: str, more: Values) -> Values:
    data: Values = {"layerProtocol": "IP_OVER_ETHERNET"}
    config: Any = [{"cpProtocolData": [data]}]
    if package.api is V2:
        family = str(more.get("address_family", "ipv4")).upper()
        addresses = [{"type": family, "numDynamicAddresses": 1}]
        data["ipOverEthernet"] = {"ipAddresses": addresses}
        config = {cp: {"cpProtocolData": [data]}}
    return {
        "id": f"net_{cp}",
        "resourceId": network,
        "extCps": [{"cpdId": cp, "cpConfig": config}],
    }
