# SPDX-License-Identifier: Apache-2.0
"""VMs for a preview: from a file, or assumed at addresses for documentation.

The driver's own search finds them in a stack as Heat would describe it.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
)

from tacker_k8s_mgmt.cli import documents
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar.stack_simulation import SERVER, complete, port
from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import base_hot
from tacker_k8s_mgmt.topology.heat_stack import Machines, StackResource, find_machines
from tacker_k8s_mgmt.topology.vm_selectors import VmSelector, vm_selectors

#: For SSH and in the cluster: RFC 5737 and RFC 3849.
_EXAMPLES = {
    "ipv4": (networks.network("192.0.2.0/24"), networks.network("198.51.100.0/24")),
    "ipv6": (networks.network("2001:db8::/64"), networks.network("2001:db8:1::/64")),
}
_FIRST = 11
_MOST = 240


def _address(value: Any) -> str:
    return str(networks.address(value))


class _Vm(BaseModel):
    """One VM of a file; the id and a second address are optional."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["control-plane", "worker", "load-balancer"]
    aspect_id: str = ""
    ssh_address: Annotated[str, BeforeValidator(_address)]
    address: Annotated[str, BeforeValidator(_address)] | None = None
    server_id: str = ""


def _read(path: str) -> tuple[str, list[Machine]]:
    document = documents.load(path)
    try:
        vms = TypeAdapter(list[_Vm]).validate_python(document.value)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, detail['loc'])) or 'the whole'}: {detail['msg']}"
            for detail in error.errors(include_url=False)
        )
        raise UsageError(
            f"{document.name} does not list machines: {problems}"
        ) from error
    return document.name, [
        Machine(
            Role(vm.role),
            vm.server_id or _server_id(number),
            vm.ssh_address,
            vm.address or vm.ssh_address,
            vm.aspect_id,
        )
        for number, vm in enumerate(vms, 1)
    ]


def listed(path: str, params: InstallParams) -> list[Machine]:
    """The VMs of a JSON file, for a cluster with these parameters.

    :raises UsageError: it cannot be read, or its VMs do not fit the parameters.
    """
    name, machines = _read(path)
    if not params.load_balancer and any(m.role is Role.LOAD_BALANCER for m in machines):
        raise UsageError(
            f"{name} has a load-balancer, and the request no external_lb_param"
        )
    known = _worker_aspects(params)
    for number, machine in enumerate(machines):
        if machine.role is not Role.WORKER or machine.aspect_id in known:
            continue
        if machine.aspect_id:
            raise UsageError(
                f"{name} has the aspect_id {machine.aspect_id}, and the "
                "request no such aspect in worker_node.aspects"
            )
        machines[number] = replace(machine, aspect_id=known[0])
    return machines


def assumed(params: InstallParams, control_planes: int, workers: int) -> list[Machine]:
    """Example VMs, with a load balancer if the parameters have one.

    :raises UsageError: there are more VMs than example addresses.
    """
    roles = [Role.CONTROL_PLANE] * control_planes + [Role.WORKER] * workers
    if params.load_balancer:
        roles.append(Role.LOAD_BALANCER)
    if len(roles) > _MOST:
        raise UsageError(f"there are addresses for {_MOST} VMs; give --machines FILE")
    outside, inside = _EXAMPLES[params.address_family]
    aspects = itertools.cycle(_worker_aspects(params))
    selectors = {_place_of(selector): selector for selector in vm_selectors(params)}
    machines = []
    for number, role in enumerate(roles):
        aspect_id = next(aspects) if role is Role.WORKER else ""
        selector = selectors[role, aspect_id]
        network = outside if selector.ssh_cp == selector.nic_cp else inside
        addresses = str(outside[_FIRST + number]), str(network[_FIRST + number])
        machines.append(Machine(role, _server_id(number + 1), *addresses, aspect_id))
    return machines


def _worker_aspects(params: InstallParams) -> list[str]:
    """The possible ``aspect_id`` of workers; "" stands for worker_node's own."""
    places = map(_place_of, vm_selectors(params))
    return [aspect_id for role, aspect_id in places if role is Role.WORKER]


def _place_of(selector: VmSelector) -> tuple[Role, str]:
    own = selector.aspect_id if selector.own_labels else None
    return selector.role, own or ""


def _server_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def search(params: InstallParams, machines: Sequence[Machine]) -> Machines:
    """The VMs as the driver finds them.

    :raises DiscoveryError: they do not fit the parameters.
    """
    found = find_machines("of these VMs", list(_stack(params, machines)), params)
    found.require_whole()
    return found


def _stack(
    params: InstallParams, machines: Sequence[Machine]
) -> Iterator[StackResource]:
    for selector in vm_selectors(params):
        role, aspect_id = place = _place_of(selector)
        group, name = f"{role.value}{aspect_id}", selector.aspect_id or role.value
        yield complete("stack", name, base_hot.GROUP, group, is_stack=True)
        members = [m for m in machines if (m.role, m.aspect_id) == place]
        for number, machine in enumerate(members):
            stack, server_id = f"{group}/{number}", machine.server_id
            yield complete(group, str(number), "vm", stack, is_stack=True)
            yield complete(stack, "server", base_hot.SERVER, server_id, SERVER)
            cps = {
                selector.nic_cp: machine.address,
                selector.ssh_cp: machine.ssh_address,
            }
            for cp, address in cps.items():
                attributes = port(server_id, [address])
                yield complete(stack, cp, base_hot.PORT, f"{stack}/{cp}", attributes)
