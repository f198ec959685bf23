# SPDX-License-Identifier: Apache-2.0
"""The cluster's VMs in a Heat stack.

The parameters name Heat resources: a group of VMs (``aspect_id``) and the ports or
floating IPs of a VM (``*_cp_name``). The members of a group are stacks nested in it, at
any depth. So a VM of a role is a stack, nested or the top one, with resources of both
names.
"""

import ipaddress
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.model.nodes import Machine, Role, of_role
from tacker_k8s_mgmt.request.option_types import LABEL_VALUE
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import vm_checks
from tacker_k8s_mgmt.topology.vm_selectors import VmSelector, vm_selectors

PORT = "OS::Neutron::Port"
FLOATING_IP = "OS::Neutron::FloatingIP"
_SERVER = "OS::Nova::Server"
_GONE = "DELETE_COMPLETE"
# Nova returns the first where its policy os-extended-server-attributes allows it, to
# administrators mostly; the second, which is opaque, to all users.
_HOSTS = ("OS-EXT-SRV-ATTR:host", "hostId")
_GROUPS = frozenset({"OS::Heat::AutoScalingGroup", "OS::Heat::ResourceGroup"})


@dataclass(frozen=True)
class StackResource:
    """A resource of a stack or of a stack nested in it.

    :param stack_id: the stack of the resource.
    :param physical_id: id of the object in OpenStack, e.g. of the port.
    :param status: such as ``CREATE_COMPLETE``.
    :param nested_stack_id: id of the resource as a stack, if it is one.
    :param attributes: Neutron's, of ports and floating IPs; Nova's, of servers, where
        they are needed.
    """

    stack_id: str
    name: str
    type: str
    physical_id: str
    status: str
    nested_stack_id: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the resource exists and is not being deleted."""
        action, _, state = self.status.partition("_")
        return state == "COMPLETE" and action != "DELETE"


@dataclass(frozen=True)
class Unfinished:
    """A VM that is not complete, has failed or is being deleted in Heat.

    :param server_id: "" before Nova has the server.
    :param state: the resource that is not complete, with its status.
    """

    role: Role
    server_id: str
    state: str


@dataclass(frozen=True)
class Machines:
    """The VMs of a cluster.

    :param places: by physical id of every resource, complete or not: that id and those
        of the stacks around it, any of which Tacker may name it by. Servers that are
        not here do not exist.
    :param unnamed: names of the servers in the stack that no parameter selects.
    :param unfinished: VMs of a role that are not complete, and so not among the others.
    :param stack_id: of the top stack.
    """

    control_planes: tuple[Machine, ...]
    workers: tuple[Machine, ...]
    load_balancer: Machine | None
    places: Mapping[str, frozenset[str]] = field(
        default_factory=dict, compare=False, repr=False
    )
    unnamed: tuple[str, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()
    stack_id: str = field(default="", compare=False)


def find_machines(
    stack_id: str, resources: Sequence[StackResource], params: InstallParams
) -> Machines:
    """The VMs that the parameters select.

    VMs that are not complete, have failed or are being deleted are left out. A group of
    workers may have no members, after a scale-in.

    :param resources: of the stack and of all stacks nested in it.
    :raises DiscoveryError: with everything that does not match the parameters.
    """
    tree = _Tree(resources)
    problems: list[str] = []
    unfinished: list[Unfinished] = []
    machines: list[Machine] = []
    for selector in vm_selectors(params):
        machines += _find(selector, tree, problems, unfinished)
    known = {machine.server_id for machine in machines}
    known.update(vm.server_id for vm in unfinished)
    problems += vm_checks.problems(machines, params)
    if problems:
        raise DiscoveryError(stack_id, list(dict.fromkeys(problems)))
    return Machines(
        control_planes=of_role(machines, Role.CONTROL_PLANE),
        workers=of_role(machines, Role.WORKER),
        load_balancer=next(iter(of_role(machines, Role.LOAD_BALANCER)), None),
        places=tree.places(),
        unnamed=tuple(tree.servers(without=known)),
        unfinished=tuple(unfinished),
        stack_id=stack_id,
    )


class _Tree:
    """Resources by their stacks."""

    def __init__(self, resources: Sequence[StackResource]) -> None:
        self._stacks: dict[str, dict[str, StackResource]] = defaultdict(dict)
        for resource in resources:
            self._stacks[resource.stack_id][resource.name] = resource
        self._owners = {r.nested_stack_id: r for r in resources if r.nested_stack_id}
        self._ports = {r.physical_id: r for r in resources if r.type == PORT}

    def group(self, aspect_id: str | None) -> StackResource | None:
        """The nested stack of that name, as a resource."""
        named = (r for r in self._owners.values() if r.name == aspect_id)
        return next(named, None)

    def stacks(
        self, group: StackResource | None, besides: Container[str]
    ) -> Iterator[tuple[str, Mapping[str, StackResource]]]:
        """The stacks in a group, or all without one.

        :param besides: names of excluded groups.
        """
        for stack_id, resources in self._stacks.items():
            owners = tuple(self.owners(stack_id))
            if any(owner.name in besides for owner in owners):
                continue
            if group is None or any(owner is group for owner in owners):
                yield stack_id, resources

    def port(self, cp: StackResource) -> StackResource | None:
        """The port itself, or the port of a floating IP."""
        if cp.type != FLOATING_IP:
            return cp
        return self._ports.get(str(cp.attributes.get("port_id") or ""))

    def places(self) -> Mapping[str, frozenset[str]]:
        """By physical id of all existing resources: it and the stacks around it."""
        around = {
            stack_id: {stack_id, *(owner.stack_id for owner in self.owners(stack_id))}
            for stack_id in self._stacks
        }
        return {
            resource.physical_id: frozenset({resource.physical_id, *around[stack_id]})
            for stack_id, resources in self._stacks.items()
            for resource in resources.values()
            if resource.physical_id and resource.status != _GONE
        }

    def servers(self, without: Container[str]) -> Iterator[str]:
        """The names of all complete servers but these."""
        for resources in self._stacks.values():
            for r in resources.values():
                if r.type == _SERVER and r.complete and r.physical_id not in without:
                    yield r.name

    def owners(self, stack_id: str) -> Iterator[StackResource]:
        """The resources around a nested stack, the nearest first."""
        while stack_id in self._owners:
            owner = self._owners[stack_id]
            yield owner
            stack_id = owner.stack_id


def _find(
    selector: VmSelector,
    tree: _Tree,
    problems: list[str],
    unfinished: list[Unfinished],
) -> list[Machine]:
    group = tree.group(selector.aspect_id)
    if selector.own_labels and group is None:
        missing = f"there is no group {selector.aspect_id} in the stack"
        problems.append(f"{selector.attribute}.aspect_id: {missing}")
        return []
    stacks = dict(tree.stacks(group, selector.besides))
    vms = [stack_id for stack_id in stacks if selector.ssh_cp in stacks[stack_id]]
    machines: list[Machine] = []
    incomplete: list[Unfinished] = []
    for stack_id in vms:
        if vm := _unfinished(selector, stacks[stack_id], tree, stack_id):
            incomplete.append(vm)
            continue
        try:
            machines.append(_machine(selector, stacks[stack_id], tree))
        except _Mismatch as mismatch:
            problems.append(f"{selector.attribute}.{mismatch}")
    name = f"{selector.attribute}.ssh_cp_name"
    place = f"the group {group.name}" if group else "the stack"
    # The only VM may be the one that a rollback, a scale-in or a heal is to mend.
    may_be_empty = group and selector.role is Role.WORKER
    if not vms and not (may_be_empty and not stacks):
        problems.append(f"{name}: there is no {selector.ssh_cp} in {place}")
    elif vms and len(incomplete) == len(vms) and not may_be_empty:
        problems.append(f"{name}: no VM in {place} is complete, {incomplete[0].state}")
    unfinished += incomplete
    problems += [f"{name}: {text}" for text in _wrong_count(selector.role, len(vms))]
    return machines


def _wrong_count(role: Role, count: int) -> Iterator[str]:
    if role is Role.CONTROL_PLANE and count and count % 2 == 0:
        yield f"there are {count} VMs; etcd wants an odd number of them"
    if role is Role.LOAD_BALANCER and count > 1:
        yield f"there are {count} VMs; one load balancer is supported"


def _unfinished(
    selector: VmSelector, stack: Mapping[str, StackResource], tree: _Tree, stack_id: str
) -> Unfinished | None:
    """The VM, if a resource of it is not complete.

    A group around it does not count: when it failed to grow, its other members are
    intact.
    """
    cps = [stack[name] for name in (selector.ssh_cp, selector.nic_cp) if name in stack]
    ports = [*cps, *(port for port in map(tree.port, cps) if port)]
    servers = {str(port.attributes.get("device_id") or "") for port in ports} - {""}
    parts = [
        *ports,
        *(resource for resource in stack.values() if resource.physical_id in servers),
        *(owner for owner in tree.owners(stack_id) if owner.type not in _GROUPS),
    ]
    bad = next((part for part in parts if not part.complete), None)
    if bad is None:
        return None
    state = f"{bad.name} is {bad.status}"
    return Unfinished(selector.role, min(servers, default=""), state)


class _Mismatch(Exception):
    """A VM does not match the parameters; the text begins with the attribute's name."""


def _machine(
    selector: VmSelector, stack: Mapping[str, StackResource], tree: _Tree
) -> Machine:
    ssh = stack[selector.ssh_cp]
    attribute = "ssh_cp_name" if selector.nic_cp == selector.ssh_cp else "nic_cp_name"
    named = stack.get(selector.nic_cp)
    if named is None:
        raise _Mismatch(
            f"nic_cp_name: there is no {selector.nic_cp} beside {selector.ssh_cp}"
        )
    nic = tree.port(named)
    if nic is None:
        raise _Mismatch(
            f"{attribute}: the floating IP {named.name} belongs to no port of the "
            "stack; name the VM's port in nic_cp_name"
        )
    server_id = _server_id(attribute, nic)
    if ssh.type == FLOATING_IP:
        ssh_address = str(ssh.attributes.get("floating_ip_address") or "")
    else:
        if _server_id("ssh_cp_name", ssh) != server_id:
            raise _Mismatch(
                f"nic_cp_name: {nic.name} belongs to another VM than {ssh.name}"
            )
        addresses = _fixed_addresses(ssh)
        ssh_address = addresses.get(selector.family) or next(
            iter(addresses.values()), ""
        )
    if not ssh_address:
        raise _Mismatch(f"ssh_cp_name: {ssh.name} has no address")
    addresses = _fixed_addresses(nic)
    if selector.family not in addresses:
        other = f", only {next(iter(addresses))}" if addresses else ""
        raise _Mismatch(
            f"{attribute}: {nic.name} has no {selector.family} address{other}; "
            f"address_family is {selector.family}"
        )
    return Machine(
        role=selector.role,
        server_id=server_id,
        ssh_address=ssh_address,
        address=addresses[selector.family],
        aspect_id=selector.aspect_id or "" if selector.own_labels else "",
        compute_host=_compute_host(stack, server_id) if selector.compute_host else "",
    )


def _compute_host(stack: Mapping[str, StackResource], server_id: str) -> str:
    """The VM's compute host in Nova, if it can be the value of a label; else ""."""
    hosts = (
        str(resource.attributes.get(name) or "")
        for resource in stack.values()
        if resource.type == _SERVER and resource.physical_id == server_id
        for name in _HOSTS
    )
    return next((host for host in hosts if LABEL_VALUE.fullmatch(host)), "")


def _server_id(attribute: str, port: StackResource) -> str:
    if port.type != PORT:
        raise _Mismatch(
            f"{attribute}: {port.name} is an {port.type}, not a port or floating IP"
        )
    server_id = port.attributes.get("device_id")
    if not server_id:
        raise _Mismatch(f"{attribute}: the port {port.name} is not attached to a VM")
    return str(server_id)


def _fixed_addresses(port: StackResource) -> dict[str, str]:
    """The first address of each family: ``{"ipv4": ..., "ipv6": ...}``.

    Neutron lists the addresses of a dual-stack port in no particular order.
    """
    addresses: dict[str, str] = {}
    for fixed in port.attributes.get("fixed_ips") or ():
        address = ipaddress.ip_address(fixed["ip_address"])
        addresses.setdefault(f"ipv{address.version}", str(address))
    return addresses
