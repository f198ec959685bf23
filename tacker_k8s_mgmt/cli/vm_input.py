"""VMs for a preview: given in a file, or assumed at addresses for documentation.

They are put into a stack as Heat would describe it, for the driver's own search to find
them by the names in the parameters.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import ip_address, ip_network
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
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.heat_stack import Machines, StackResource, find_machines
from tacker_k8s_mgmt.topology.vm_selectors import Wanted, wanted_vms

_COMPLETE = "CREATE_COMPLETE"
#: Stands for what Nova will say.
_COMPUTE_HOST = "compute-host"
_GROUP = "OS::Heat::AutoScalingGroup"
#: For SSH and in the cluster: RFC 5737 and RFC 3849.
_EXAMPLES = {
    "ipv4": (ip_network("192.0.2.0/24"), ip_network("198.51.100.0/24")),
    "ipv6": (ip_network("2001:db8::/64"), ip_network("2001:db8:1::/64")),
}
_FIRST = 11
_MOST = 240


def _address(value: Any) -> str:
    return str(ip_address(value))


class _Given(BaseModel):
    """One VM of a file; without more, one address and a made-up id."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["control-plane", "worker", "load-balancer"]
    aspect_id: str = ""
    ssh_address: Annotated[str, BeforeValidator(_address)]
    address: Annotated[str, BeforeValidator(_address)] | None = None
    server_id: str = ""


def given(name: str, document: Any) -> list[Machine]:
    """The VMs of a JSON document.

    :param name: what messages call it.
    :raises UsageError: it is none.
    """
    try:
        listed = TypeAdapter(list[_Given]).validate_python(document)
    except ValidationError as error:
        said = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}"
            for one in error.errors(include_url=False)
        )
        raise UsageError(f"{name} does not list machines: {said}") from error
    return [
        Machine(
            Role(one.role),
            one.server_id or _server_id(number),
            one.ssh_address,
            one.address or one.ssh_address,
            one.aspect_id,
        )
        for number, one in enumerate(listed, 1)
    ]


def listed(path: str, params: InstallParams) -> list[Machine]:
    """The VMs of a file, for a cluster with these parameters.

    :raises UsageError: it cannot be read, or lists none or others.
    """
    document = documents.load(path)
    found = given(document.name, document.value)
    if not params.load_balancer and any(m.role is Role.LOAD_BALANCER for m in found):
        raise UsageError(
            f"{document.name} has a load-balancer, and the request no external_lb_param"
        )
    known = _worker_aspects(params)
    for number, machine in enumerate(found):
        if machine.role is not Role.WORKER or machine.aspect_id in known:
            continue
        if machine.aspect_id:
            raise UsageError(
                f"{document.name} has the aspect_id {machine.aspect_id}, and the "
                "request no such aspect in worker_node.aspects"
            )
        found[number] = replace(machine, aspect_id=known[0])
    return found


def assumed(params: InstallParams, control_planes: int, workers: int) -> list[Machine]:
    """VMs as many as wanted, and a load balancer if the parameters name one.

    :raises UsageError: there are more than example addresses.
    """
    roles = [Role.CONTROL_PLANE] * control_planes + [Role.WORKER] * workers
    if params.load_balancer:
        roles.append(Role.LOAD_BALANCER)
    if len(roles) > _MOST:
        raise UsageError(f"there are addresses for {_MOST} VMs; give --machines FILE")
    outside, inside = _EXAMPLES[params.address_family]
    aspects = itertools.cycle(_worker_aspects(params))
    places = {_place_of(one): one for one in wanted_vms(params)}
    found = []
    for number, role in enumerate(roles):
        aspect_id = next(aspects) if role is Role.WORKER else ""
        wanted = places[role, aspect_id]
        network = outside if wanted.ssh_cp == wanted.nic_cp else inside
        ssh_address = str(outside[_FIRST + number])
        address = str(network[_FIRST + number])
        server_id = _server_id(number + 1)
        found.append(Machine(role, server_id, ssh_address, address, aspect_id))
    return found


def _worker_aspects(params: InstallParams) -> list[str]:
    """What ``aspect_id`` of a worker may be; "" stands for worker_node's own."""
    places = map(_place_of, wanted_vms(params))
    return [aspect_id for role, aspect_id in places if role is Role.WORKER]


def _place_of(wanted: Wanted) -> tuple[Role, str]:
    own = wanted.aspect_id if wanted.own_labels else None
    return wanted.role, own or ""


def _server_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def search(params: InstallParams, machines: Sequence[Machine]) -> Machines:
    """The VMs as the driver finds them.

    :raises DiscoveryError: what it would refuse.
    """
    return find_machines("of these VMs", list(_stack(params, machines)), params)


def _stack(
    params: InstallParams, machines: Sequence[Machine]
) -> Iterator[StackResource]:
    numbers = itertools.count()
    for wanted in wanted_vms(params):
        role, aspect_id = _place_of(wanted)
        group = f"{role.value}{aspect_id}"
        name = wanted.aspect_id or role.value
        yield StackResource(
            "stack", name, _GROUP, group, _COMPLETE, nested_stack_id=group
        )
        for machine in machines:
            if (machine.role, machine.aspect_id) == (role, aspect_id):
                member = f"{group}-{next(numbers)}"
                yield StackResource(
                    group, member, "vm", member, _COMPLETE, nested_stack_id=member
                )
                yield from _vm(member, wanted, machine)


def _vm(stack_id: str, wanted: Wanted, machine: Machine) -> Iterator[StackResource]:
    yield StackResource(
        *(stack_id, "server", "OS::Nova::Server", machine.server_id, _COMPLETE),
        attributes={"hostId": _COMPUTE_HOST},
    )
    yield _port(stack_id, wanted.ssh_cp, machine.server_id, machine.ssh_address)
    if wanted.nic_cp != wanted.ssh_cp:
        yield _port(stack_id, wanted.nic_cp, machine.server_id, machine.address)


def _port(stack_id: str, name: str, server_id: str, address: str) -> StackResource:
    attributes = {"device_id": server_id, "fixed_ips": [{"ip_address": address}]}
    return StackResource(
        stack_id,
        name,
        "OS::Neutron::Port",
        f"{stack_id}/{name}",
        _COMPLETE,
        attributes=attributes,
    )
