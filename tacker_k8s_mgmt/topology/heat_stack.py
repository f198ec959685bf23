# SPDX-License-Identifier: Apache-2.0
"""The cluster's VMs in a Heat stack: how the parameters select them, and checks.

The parameters name Heat resources: a group of VMs (``aspect_id``) and the ports or
floating IPs of a VM (``*_cp_name``). The members of a group are stacks nested in it, at
any depth. So a VM of a role is a stack, nested or the top one, with resources of both
names. No VM may have two roles, or an address of pods or services.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.nodes import ROLES, Machine, Role, of_role
from tacker_k8s_mgmt.request.fields import LABEL_VALUE
from tacker_k8s_mgmt.request.installation import (
    SPECIFIED_BALANCER,
    LoadBalancer,
    NodeGroup,
    WorkerGroup,
)
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.topology.scaling_groups import UNHEALTHY, Group
from tacker_k8s_mgmt.topology.stack_resources import (
    FLOATING_IP,
    PORT,
    SERVER,
    StackResource,
    StackTree,
)


@dataclass(frozen=True)
class VmSelector:
    """The VMs of one role, or of one scaling aspect of it.

    :param attribute: the structure of the request that selects them.
    :param ssh_cp: the resource with the address for SSH.
    :param nic_cp: the resource with the address in the cluster.
    :param family: ``ipv4`` or ``ipv6``, of the address in the cluster.
    :param aspect_id: the group of the VMs; None to search the whole stack.
    :param own_labels: whether the aspect has labels of its own; its group must exist.
    :param besides: groups of other aspects, whose VMs are excluded.
    :param compute_host: whether the compute host of the VMs is needed.
    """

    role: Role
    attribute: str
    ssh_cp: str
    nic_cp: str
    family: str
    aspect_id: str | None = None
    own_labels: bool = False
    besides: frozenset[str] = frozenset()
    compute_host: bool = False


def as_named(params: ClusterRequest, names: Container[str]) -> ClusterRequest:
    """The parameters with the load balancer's port by the name that the stack has.

    :param names: of the resources in the stack.
    """
    balancer, (specified, port) = params.load_balancer, SPECIFIED_BALANCER
    if balancer is None or specified in names or port not in names:
        return params
    names_of = {"ssh_cp": balancer.ssh_cp, "nic_cp": balancer.nic_cp}
    update = {key: port for key, name in names_of.items() if name == specified}
    balancer = balancer.model_copy(update=update)
    return params.model_copy(update={"load_balancer": balancer})


def vm_selectors(params: ClusterRequest) -> Iterator[VmSelector]:
    """The selectors of all roles."""
    for role, group in params.vms.items():
        yield from _selectors(role, group, params)


def _selectors(
    role: Role, group: NodeGroup | LoadBalancer, params: ClusterRequest
) -> Iterator[VmSelector]:
    nodes = group if isinstance(group, NodeGroup) else None
    selector = VmSelector(
        role=role,
        attribute=ROLES[role].parameter,
        ssh_cp=group.ssh_cp,
        nic_cp=group.nic_cp or group.ssh_cp,
        family=params.address_family,
        aspect_id=nodes.aspect_id if nodes else None,
        compute_host=bool(nodes and nodes.compute_host_label),
    )
    aspects = group.aspects if isinstance(group, WorkerGroup) else ()
    own = frozenset(aspect.aspect_id for aspect in aspects)
    if not own or (selector.aspect_id and selector.aspect_id not in own):
        yield replace(selector, besides=own)
    for number, aspect in enumerate(aspects):
        ssh_cp = aspect.ssh_cp or group.ssh_cp
        yield replace(
            selector,
            attribute=f"{selector.attribute}.aspects.{number}",
            ssh_cp=ssh_cp,
            nic_cp=aspect.nic_cp or group.nic_cp or ssh_cp,
            aspect_id=aspect.aspect_id,
            own_labels=True,
        )


def roles(machines: Sequence[Machine]) -> Iterator[str]:
    """A sentence for each VM with two roles."""
    for server_id, times in Counter(m.server_id for m in machines).items():
        if times > 1:
            yield f"the VM {server_id} was found for {times} roles; name its ports once"


# Nova returns the first where its policy os-extended-server-attributes allows it, to
# administrators mostly; the second, which is opaque, to all users.
_HOSTS = ("OS-EXT-SRV-ATTR:host", "hostId")
_GROUPS = frozenset({"OS::Heat::AutoScalingGroup", "OS::Heat::ResourceGroup"})


@dataclass(frozen=True)
class Unfinished:
    """A VM that cannot be used as it is.

    It is not complete, has failed or is being deleted in Heat; or Heat calls it
    complete, and Nova or Neutron have changed it: its server was deleted, a floating IP
    was taken away, its port has no fitting address.

    :param server_id: "" before Nova has the server, or where Heat does not say which.
    :param state: the resource that is not complete, with its status, or what it lacks.
    :param lacks: whether Heat calls it complete.
    :param stacks: ids of the stacks around it.
    """

    role: Role
    server_id: str
    state: str
    lacks: bool = False
    stacks: frozenset[str] = field(default=frozenset(), compare=False, repr=False)


@dataclass(frozen=True)
class Machines:
    """The VMs of a cluster.

    :param vms: those that can be used, role by role.
    :param places: by physical id of every resource, complete or not: that id and those
        of the stacks around it, any of which Tacker may name it by. Servers that are
        not here do not exist.
    :param unnamed: names of the servers in the stack that no parameter selects.
    :param unfinished: VMs of a role that cannot be used, and so not among the others.
    :param stack_id: of the top stack.
    :param problems: why no cluster can be built of the VMs as they are now. An existing
        cluster has worked with the parameters, so they are the VMs' condition.
    :param groups: the AutoScalingGroups of the stack.
    :param unhealthy_stacks: nested stacks that any update of the stack has Heat build
        again, with all that is in them.
    """

    vms: tuple[Machine, ...] = ()
    places: Mapping[str, frozenset[str]] = field(
        default_factory=dict, compare=False, repr=False
    )
    unnamed: tuple[str, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()
    stack_id: str = field(default="", compare=False)
    problems: tuple[str, ...] = field(default=(), compare=False)
    groups: tuple[Group, ...] = field(default=(), compare=False, repr=False)
    unhealthy_stacks: tuple[StackResource, ...] = field(default=(), compare=False)

    @property
    def nodes(self) -> tuple[Machine, ...]:
        """Those of nodes."""
        return tuple(vm for vm in self.vms if ROLES[vm.role].groups)

    @property
    def control_planes(self) -> tuple[Machine, ...]:
        """Those of the control plane."""
        return of_role(self.vms, Role.CONTROL_PLANE)

    @property
    def load_balancer(self) -> Machine | None:
        """That of the load balancer, if there is one."""
        return next(iter(of_role(self.vms, Role.LOAD_BALANCER)), None)

    def require_whole(self) -> None:
        """Check that a cluster can be built of the VMs.

        :raises DiscoveryError: with everything that does not match the parameters.
        """
        if self.problems:
            raise DiscoveryError(self.stack_id, self.problems)

    def rebuilt_by_update(self) -> frozenset[str]:
        """Ids of what any update of the stack has Heat build again.

        Of servers, and of the stacks of groups' members.
        """
        members = [
            one.ids
            for group in self.groups
            for one in group.resized(len(group.members)).rebuilt
        ]
        marked = (vm for vm in self.unfinished if vm.state.endswith(UNHEALTHY))
        return frozenset().union(*members, (vm.server_id for vm in marked)) - {""}

    def incomplete_balancer(self) -> Unfinished | None:
        """The load balancer's VM, if it cannot be used."""
        found = (vm for vm in self.unfinished if vm.role is Role.LOAD_BALANCER)
        return None if self.load_balancer else next(found, None)


def find_machines(
    stack_id: str, resources: Sequence[StackResource], params: ClusterRequest
) -> Machines:
    """The VMs that the parameters select.

    VMs that cannot be used are left out: their condition is not a fault of the request,
    and the operations on all others need not wait for their heal. A group of workers
    may have no members, after a scale-in.

    :param resources: of the stack and of all stacks nested in it.
    :raises DiscoveryError: no VM of a role matches the parameters; with everything that
        does not match.
    """
    tree = StackTree(resources)
    params = as_named(params, {resource.name for resource in resources})
    search = _Search(tree, params)
    for selector in vm_selectors(params):
        search.find(selector)
    machines = search.machines
    search.refuse(roles(machines))
    problems = tuple(dict.fromkeys(search.problems))
    if search.is_refused:
        raise DiscoveryError(stack_id, problems)
    known = {machine.server_id for machine in machines}
    known.update(vm.server_id for vm in search.unfinished)
    return Machines(
        vms=tuple(machines),
        places=tree.places(),
        unnamed=tuple(tree.servers(without=known)),
        unfinished=tuple(search.unfinished),
        stack_id=stack_id,
        problems=problems,
        groups=tuple(tree.scaling_groups()),
        unhealthy_stacks=tuple(tree.unhealthy_stacks()),
    )


class _Search:
    """The search for the VMs of all roles.

    :ivar problems: why no cluster can be built of them.
    :ivar is_refused: one of these is no VM's condition: the parameters are wrong.
    """

    def __init__(self, tree: StackTree, params: ClusterRequest) -> None:
        self._tree = tree
        self._params = params
        self.machines: list[Machine] = []
        self.unfinished: list[Unfinished] = []
        self.problems: list[str] = []
        self.is_refused = False

    def refuse(self, problems: Iterable[str]) -> None:
        """Note what is wrong in the parameters, if anything is."""
        found = [*problems]
        self.problems += found
        self.is_refused = self.is_refused or bool(found)

    def find(self, selector: VmSelector) -> None:
        """Find the VMs of a selector."""
        tree, place = self._tree, "the stack"
        name = f"{selector.attribute}.ssh_cp_name"
        group = tree.group(selector.aspect_id)
        if selector.own_labels and group is None:
            missing = f"there is no group {selector.aspect_id} in the stack"
            self.refuse([f"{selector.attribute}.aspect_id: {missing}"])
            return
        stacks = dict(tree.stacks(group, selector.besides))
        vms = {i: stacks[i] for i in stacks if selector.ssh_cp in stacks[i]}
        before = len(self.unfinished)
        if group is not None:
            place = f"the group {group.name}"
            members = [*tree.members(group)]
            begun = any(stacks for _, stacks in members)
        else:
            members = [] if vms else [*tree.unbuilt()]
            begun = not members
        self._note_empty(selector, members, vms)
        found = self._machines(selector, vms)
        if not vms and begun:
            self.refuse([f"{name}: there is no {selector.ssh_cp} in {place}"])
        elif not ROLES[selector.role].scales:
            late = [vm for vm in self.unfinished[before:] if not vm.lacks]
            what = "not every VM" if found else "no VM"
            state = f", {late[0].state}" if late else ""
            if late or not vms:
                self.problems.append(f"{name}: {what} in {place} is complete{state}")
        if ROLES[selector.role].has_etcd and vms and len(vms) % 2 == 0:
            text = f"there are {len(vms)} VMs; etcd wants an odd number of them"
            self.problems.append(f"{name}: {text}")
        if selector.role is Role.LOAD_BALANCER and len(found) > 1:
            text = f"there are {len(found)} VMs; one load balancer is supported"
            self.refuse([f"{name}: {text}"])
        self.machines += found

    def _note_empty(
        self,
        selector: VmSelector,
        members: Sequence[tuple[StackResource, set[str]]],
        vms: Collection[str],
    ) -> None:
        """Note the members that Heat has not begun to build."""
        for member, stacks in members:
            if not stacks or not (member.complete or stacks.intersection(vms)):
                state = f"is {member.status}"
                if member.complete:
                    state = "has no resources"
                around = frozenset({member.nested_stack_id, *stacks} - {""})
                vm = Unfinished(
                    selector.role, "", f"{member.name} {state}", stacks=around
                )
                self.unfinished.append(vm)

    def _machines(
        self, selector: VmSelector, vms: Mapping[str, Mapping[str, StackResource]]
    ) -> list[Machine]:
        """The VMs that can be used; the others are noted."""
        found: list[Machine] = []
        misfits: list[_Mismatch] = []
        for stack_id, stack in vms.items():
            if vm := _unfinished(selector, stack, self._tree, stack_id):
                self.unfinished.append(vm)
                continue
            try:
                found.append(_machine(selector, stack, self._tree, self._params))
            except _Mismatch as misfit:
                misfits.append(misfit)
                server_id = _attached_to(selector, stack, self._tree)
                self.unfinished.append(
                    Unfinished(
                        selector.role,
                        server_id or self._tree.detached_server(stack_id),
                        misfit.state,
                        lacks=True,
                        stacks=frozenset(self._tree.around(stack_id)),
                    )
                )
        texts = [str(misfit) for misfit in misfits]
        if not found and texts and all(misfit.of_names for misfit in misfits):
            self.refuse(texts)
        else:
            self.problems += texts
        return found


def _unfinished(
    selector: VmSelector,
    stack: Mapping[str, StackResource],
    tree: StackTree,
    stack_id: str,
) -> Unfinished | None:
    """The VM, if a resource of it is not complete.

    A group around it does not count: when it failed to grow, its other members are
    intact.
    """
    ports = _points(selector, stack, tree)
    servers = {port.device_id for port in ports} - {""}
    parts = [
        *ports,
        *(resource for resource in stack.values() if resource.physical_id in servers),
        *(owner for owner in tree.owners(stack_id) if owner.type not in _GROUPS),
    ]
    bad = next((part for part in parts if not part.complete), None)
    if bad is None:
        return None
    state = f"{bad.name} is {bad.status}"
    around = frozenset(tree.around(stack_id))
    return Unfinished(selector.role, min(servers, default=""), state, stacks=around)


def _points(
    selector: VmSelector, stack: Mapping[str, StackResource], tree: StackTree
) -> list[StackResource]:
    """The connection points of a VM, and the ports of its floating IPs."""
    cps = [stack[name] for name in (selector.ssh_cp, selector.nic_cp) if name in stack]
    return [*cps, *(port for port in map(tree.port, cps) if port)]


def _attached_to(
    selector: VmSelector, stack: Mapping[str, StackResource], tree: StackTree
) -> str:
    """The server that a connection point of a VM is attached to; "" for none."""
    points = _points(selector, stack, tree)
    return min({point.device_id for point in points} - {""}, default="")


class _Mismatch(Exception):
    """A VM does not match the parameters.

    :param of_names: it is what the template says of the VM, and not its condition.
    """

    def __init__(self, attribute: str, state: str, of_names: bool = False) -> None:
        super().__init__(f"{attribute}: {state}")
        self.state = state
        self.of_names = of_names


def _misplaced(
    server_id: str, address: str, params: ClusterRequest
) -> _Mismatch | None:
    """Why a VM cannot have an address: pods or services have it."""
    family = params.address_family
    for attribute, network in (
        (
            "pod_cidr",
            params.pod_cidr or network_plugins.network(network_plugins.PODS[family]),
        ),
        (
            "cluster_cidr",
            params.service_cidr
            or network_plugins.network(network_plugins.SERVICES[family]),
        ),
    ):
        if network_plugins.address(address) in network:
            text = (
                f"the VM {server_id} has the address {address}, which is in {network}"
            )
            return _Mismatch(f"master_node.{attribute}", text)
    return None


def _machine(
    selector: VmSelector,
    stack: Mapping[str, StackResource],
    tree: StackTree,
    params: ClusterRequest,
) -> Machine:
    ssh = stack[selector.ssh_cp]
    ssh_cp, nic_cp = (f"{selector.attribute}.{n}_cp_name" for n in ("ssh", "nic"))
    attribute = ssh_cp if selector.nic_cp == selector.ssh_cp else nic_cp
    named = stack.get(selector.nic_cp)
    if named is None:
        text = f"there is no {selector.nic_cp} beside {selector.ssh_cp}"
        raise _Mismatch(nic_cp, text, of_names=True)
    nic = tree.port(named)
    if nic is None:
        raise _Mismatch(
            attribute,
            f"the floating IP {named.name} belongs to no port of the stack; name the "
            "VM's port in nic_cp_name",
        )
    server_id, family = _server_id(attribute, nic), selector.family
    if ssh.type == FLOATING_IP:
        floating = ssh.attributes.get("floating_ip_address")
        logins = [str(_address(ssh_cp, ssh, floating)) if floating else ""]
    else:
        if _server_id(ssh_cp, ssh) != server_id:
            text = f"{nic.name} belongs to another VM than {ssh.name}"
            raise _Mismatch(nic_cp, text, of_names=True)
        at_port = _fixed_addresses(ssh_cp, ssh)
        logins = at_port.get(family) or next(iter(at_port.values()), [""])
    if not logins[0]:
        raise _Mismatch(ssh_cp, f"{ssh.name} has no address")
    inner = _fixed_addresses(attribute, nic)
    if family not in inner:
        other = f", only {next(iter(inner))}" if inner else ""
        raise _Mismatch(
            attribute,
            f"{nic.name} has no {family} address{other}; address_family is {family}",
        )
    problems = {a: _misplaced(server_id, a, params) for a in inner[family]}
    addresses = [address for address, problem in problems.items() if not problem]
    if not addresses:
        raise next(filter(None, problems.values()))
    return Machine(
        role=selector.role,
        server_id=server_id,
        ssh_address=logins[0],
        address=addresses[0],
        aspect_id=selector.aspect_id or "" if selector.own_labels else "",
        compute_host=_compute_host(stack, server_id) if selector.compute_host else "",
        ssh_addresses=tuple(logins),
        addresses=tuple(addresses),
    )


def _compute_host(stack: Mapping[str, StackResource], server_id: str) -> str:
    """The VM's compute host in Nova, if it can be the value of a label; else ""."""
    hosts = (
        str(resource.attributes.get(name) or "")
        for resource in stack.values()
        if resource.type == SERVER and resource.physical_id == server_id
        for name in _HOSTS
    )
    return next((host for host in hosts if LABEL_VALUE.fullmatch(host)), "")


def _server_id(attribute: str, port: StackResource) -> str:
    if port.type != PORT:
        text = f"{port.name} is an {port.type}, not a port or floating IP"
        raise _Mismatch(attribute, text, of_names=True)
    if not (server_id := port.device_id):
        raise _Mismatch(attribute, f"the port {port.name} is not attached to a VM")
    return server_id


def _address(
    attribute: str, point: StackResource, value: Any
) -> network_plugins.Address:
    try:
        return network_plugins.address(value)
    except ValueError:
        text = f"Heat has an address of {point.name} that is not one"
        raise _Mismatch(attribute, text) from None


def _fixed_addresses(attribute: str, port: StackResource) -> dict[str, list[str]]:
    """The addresses of each family: ``{"ipv4": [...], "ipv6": [...]}``.

    Neutron lists them ordered as text, whichever the port had first.
    """
    addresses: dict[str, list[str]] = {}
    for fixed in port.attributes.get("fixed_ips") or ():
        address = _address(attribute, port, fixed["ip_address"])
        addresses.setdefault(f"ipv{address.version}", []).append(str(address))
    return addresses
