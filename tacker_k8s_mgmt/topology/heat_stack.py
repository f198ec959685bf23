"""Which VMs of a Heat stack are the cluster's.

The parameters name Heat resources: a group of VMs (``aspect_id``) and the ports or
floating IPs of a VM (``*_cp_name``). Heat describes a group's members as stacks nested
in the group, at any depth, so a VM of a role is a stack that has resources of both
names; a single VM is the same thing in the top stack.
"""

import ipaddress
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.request.option_types import LABEL_VALUE
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import vm_checks
from tacker_k8s_mgmt.topology.vm_selectors import Wanted, wanted_vms

PORT = "OS::Neutron::Port"
FLOATING_IP = "OS::Neutron::FloatingIP"
_SERVER = "OS::Nova::Server"
_GONE = "DELETE_COMPLETE"
# Nova shows the first to those whom its policy os-extended-server-attributes allows,
# mostly administrators; the second, which is opaque, to everybody.
_HOSTS = ("OS-EXT-SRV-ATTR:host", "hostId")
_GROUPS = frozenset({"OS::Heat::AutoScalingGroup", "OS::Heat::ResourceGroup"})


@dataclass(frozen=True)
class StackResource:
    """One resource of a stack or of a stack nested in it.

    :param stack_id: the stack that the resource is in.
    :param physical_id: id of what the resource made, e.g. of the port.
    :param status: such as ``CREATE_COMPLETE``.
    :param nested_stack_id: the stack that the resource is, if it is one.
    :param attributes: Neutron's, of ports and floating IPs; of servers Nova's, where
        they were asked for.
    """

    stack_id: str
    name: str
    type: str
    physical_id: str
    status: str
    nested_stack_id: str = ""
    attributes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def complete(self) -> bool:
        """Whether the resource exists and is not on its way out."""
        action, _, state = self.status.partition("_")
        return state == "COMPLETE" and action != "DELETE"


@dataclass(frozen=True)
class Unfinished:
    """A VM that Heat has not finished, failed at or is deleting.

    :param server_id: "" before Nova has a server of it.
    :param state: the part of it that is not complete, and what it is.
    """

    role: Role
    server_id: str
    state: str


@dataclass(frozen=True)
class Machines:
    """The VMs of a cluster.

    :param places: for everything in the stack, complete or not, by its physical id:
        that id and the stacks that it is in, nested ones included: whatever Tacker
        names it by. A server that is not here is gone.
    :param unnamed: names of the servers in the stack that no parameter leads to.
    :param unfinished: VMs that are of a role and not complete, and so in none of those.
    :param stack_id: of the top stack.
    """

    control_planes: tuple[Machine, ...]
    workers: tuple[Machine, ...]
    load_balancer: Machine | None
    places: Mapping[str, frozenset[str]] = field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )
    unnamed: tuple[str, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()
    stack_id: str = field(default="", compare=False)


def find_machines(
    stack_id: str, resources: Sequence[StackResource], params: InstallParams
) -> Machines:
    """The VMs that the parameters describe.

    VMs that Heat has not finished, failed at or is deleting are left out. A group
    without members has no VMs, which is right for workers that were all scaled in.

    :param resources: of the stack and of every stack nested in it.
    :raises DiscoveryError: naming everything that does not fit.
    """
    tree = _Tree(resources)
    problems: list[str] = []
    unfinished: list[Unfinished] = []
    found: dict[Role, list[Machine]] = {role: [] for role in Role}
    for one in wanted_vms(params):
        found[one.role] += _find(one, tree, problems, unfinished)
    balancers = found[Role.LOAD_BALANCER]
    everything = [machine for machines in found.values() for machine in machines]
    known = {one.server_id for one in everything}
    known.update(one.server_id for one in unfinished)
    problems += vm_checks.problems(everything, params)
    if problems:
        raise DiscoveryError(stack_id, list(dict.fromkeys(problems)))
    return Machines(
        control_planes=tuple(found[Role.CONTROL_PLANE]),
        workers=tuple(found[Role.WORKER]),
        load_balancer=balancers[0] if balancers else None,
        places=tree.places(),
        unnamed=tuple(tree.servers(without=known)),
        unfinished=tuple(unfinished),
        stack_id=stack_id,
    )


class _Tree:
    """A stack's resources by the stacks that they are in."""

    def __init__(self, resources: Sequence[StackResource]) -> None:
        self._stacks: dict[str, dict[str, StackResource]] = defaultdict(dict)
        for resource in resources:
            self._stacks[resource.stack_id][resource.name] = resource
        self._owners = {r.nested_stack_id: r for r in resources if r.nested_stack_id}
        self._ports = {r.physical_id: r for r in resources if r.type == PORT}

    def group(self, aspect_id: str | None) -> StackResource | None:
        """The resource of that name that is a stack of its own."""
        named = (r for r in self._owners.values() if r.name == aspect_id)
        return next(named, None)

    def stacks(
        self, group: StackResource | None, besides: Container[str]
    ) -> Iterator[tuple[str, Mapping[str, StackResource]]]:
        """The stacks in a group, or all where there is none.

        :param besides: names of groups that are left out.
        """
        for stack_id, resources in self._stacks.items():
            owners = tuple(self.owners(stack_id))
            if any(owner.name in besides for owner in owners):
                continue
            if group is None or any(owner is group for owner in owners):
                yield stack_id, resources

    def port(self, cp: StackResource) -> StackResource | None:
        """The port whose address is on the VM: of a floating IP, the one behind it."""
        if cp.type != FLOATING_IP:
            return cp
        return self._ports.get(str(cp.attributes.get("port_id") or ""))

    def places(self) -> Mapping[str, frozenset[str]]:
        """Everything that exists and the stacks around it, by physical id."""
        return {
            resource.physical_id: frozenset(
                (
                    resource.physical_id,
                    stack_id,
                    *(owner.stack_id for owner in self.owners(stack_id)),
                )
            )
            for stack_id, resources in self._stacks.items()
            for resource in resources.values()
            if resource.physical_id and resource.status != _GONE
        }

    def servers(self, without: Container[str]) -> Iterator[str]:
        """The names of all complete servers but these."""
        for resources in self._stacks.values():
            for resource in resources.values():
                if resource.type != _SERVER or resource.physical_id in without:
                    continue
                if resource.complete:
                    yield resource.name

    def owners(self, stack_id: str) -> Iterator[StackResource]:
        """The resources that a stack is nested in, the nearest first."""
        while stack_id in self._owners:
            owner = self._owners[stack_id]
            yield owner
            stack_id = owner.stack_id


def _find(
    wanted: Wanted, tree: _Tree, problems: list[str], unfinished: list[Unfinished]
) -> list[Machine]:
    group = tree.group(wanted.aspect_id)
    if wanted.own_labels and group is None:
        missing = f"there is no group {wanted.aspect_id} in the stack"
        problems.append(f"{wanted.attribute}.aspect_id: {missing}")
        return []
    stacks = dict(tree.stacks(group, wanted.besides))
    there = [stack_id for stack_id in stacks if wanted.ssh_cp in stacks[stack_id]]
    found: list[Machine] = []
    kept: list[Unfinished] = []
    for stack_id in there:
        one = _unfinished(wanted, stacks[stack_id], tree, stack_id)
        if one:
            kept.append(one)
            continue
        try:
            found.append(_machine(wanted, stacks[stack_id], tree))
        except _Mismatch as mismatch:
            problems.append(f"{wanted.attribute}.{mismatch}")
    name = f"{wanted.attribute}.ssh_cp_name"
    place = f"the group {group.name}" if group else "the stack"
    # Its only VM may be the one that a rollback, a scale-in or a heal is to mend.
    may_be_empty = group and wanted.role is Role.WORKER
    if not there and not (may_be_empty and not stacks):
        problems.append(f"{name}: there is no {wanted.ssh_cp} in {place}")
    elif there and len(kept) == len(there) and not may_be_empty:
        problems.append(f"{name}: no VM in {place} is complete, {kept[0].state}")
    unfinished += kept
    problems += [f"{name}: {text}" for text in _wrong_count(wanted.role, len(there))]
    return found


def _wrong_count(role: Role, count: int) -> Iterator[str]:
    if role is Role.CONTROL_PLANE and count and count % 2 == 0:
        yield f"there are {count} VMs; etcd wants an odd number of them"
    if role is Role.LOAD_BALANCER and count > 1:
        yield f"there are {count} VMs; one load balancer is supported"


def _unfinished(
    wanted: Wanted, stack: Mapping[str, StackResource], tree: _Tree, stack_id: str
) -> Unfinished | None:
    """The VM, if a part of it is not complete.

    A group that failed to grow is not such a part: its other members are well.
    """
    cps = [stack[name] for name in (wanted.ssh_cp, wanted.nic_cp) if name in stack]
    ports = [*cps, *(port for port in map(tree.port, cps) if port)]
    servers = {str(port.attributes.get("device_id") or "") for port in ports} - {""}
    parts = [
        *ports,
        *(resource for resource in stack.values() if resource.physical_id in servers),
        *(one for one in tree.owners(stack_id) if one.type not in _GROUPS),
    ]
    bad = next((part for part in parts if not part.complete), None)
    if bad is None:
        return None
    state = f"{bad.name} is {bad.status}"
    return Unfinished(wanted.role, min(servers, default=""), state)


class _Mismatch(Exception):
    """A VM is not as the parameters say; begins with the attribute's name."""


def _machine(
    wanted: Wanted, stack: Mapping[str, StackResource], tree: _Tree
) -> Machine:
    ssh = stack[wanted.ssh_cp]
    attribute = "ssh_cp_name" if wanted.nic_cp == wanted.ssh_cp else "nic_cp_name"
    named = stack.get(wanted.nic_cp)
    if named is None:
        raise _Mismatch(
            f"nic_cp_name: there is no {wanted.nic_cp} beside {wanted.ssh_cp}"
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
        ssh_address = addresses.get(wanted.family) or next(iter(addresses.values()), "")
    if not ssh_address:
        raise _Mismatch(f"ssh_cp_name: {ssh.name} has no address")
    addresses = _fixed_addresses(nic)
    if wanted.family not in addresses:
        other = f", only {next(iter(addresses))}" if addresses else ""
        raise _Mismatch(
            f"{attribute}: {nic.name} has no {wanted.family} address{other}; "
            f"address_family is {wanted.family}"
        )
    return Machine(
        role=wanted.role,
        server_id=server_id,
        ssh_address=ssh_address,
        address=addresses[wanted.family],
        aspect_id=wanted.aspect_id or "" if wanted.own_labels else "",
        compute_host=_compute_host(stack, server_id) if wanted.compute_host else "",
    )


def _compute_host(stack: Mapping[str, StackResource], server_id: str) -> str:
    """What a label may say of where a VM runs, in Nova's words; "" for nothing."""
    told = (
        str(resource.attributes.get(name) or "")
        for resource in stack.values()
        if resource.type == _SERVER and resource.physical_id == server_id
        for name in _HOSTS
    )
    return next((text for text in told if LABEL_VALUE.fullmatch(text)), "")


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

    Neutron lists a dual-stack port's addresses in no useful order.
    """
    addresses: dict[str, str] = {}
    for fixed in port.attributes.get("fixed_ips") or ():
        address = ipaddress.ip_address(fixed["ip_address"])
        addresses.setdefault(f"ipv{address.version}", str(address))
    return addresses
