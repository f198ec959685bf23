# SPDX-License-Identifier: Apache-2.0
"""Comparison of Heat, the inventory and the cluster: the members, present and due.

In some cases Tacker calls no hook for a new VM (the retry of a failed scale-out) or for
a deleted one (the rollback of a scale-out). So each operation compares by exact
identity, instead of trusting its arguments, and fixes what an earlier one left.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tacker_k8s_mgmt.model.nodes import (
    Machine,
    Node,
    Role,
    name_nodes,
    of_role,
    without_planes,
)
from tacker_k8s_mgmt.topology.heat_stack import Machines


@dataclass(frozen=True)
class Membership:
    """The result of a comparison.

    :param nodes: all nodes whose VM exists, in the inventory's order, including those
        that Heat has not finished changing, and all control planes of the inventory.
    :param joining: workers whose VM is complete and not yet in the cluster.
    :param rebuilt: those of them whose name a Node object of another VM has.
    :param vm_gone: workers of the inventory whose VM is gone.
    :param lost: control planes of the inventory whose VM is gone, or was replaced and
        has not joined.
    :param added: control planes that are not in the inventory and not among the nodes,
        because only a new cluster gets control planes.
    :param returning: control planes that a heal has taken out and whose VM is complete,
        by their former names; among the nodes only when they have joined again.
    """

    nodes: tuple[Node, ...]
    joining: tuple[Node, ...]
    rebuilt: tuple[Node, ...]
    vm_gone: tuple[Node, ...]
    lost: tuple[Node, ...]
    added: tuple[Node, ...]
    returning: tuple[Node, ...] = ()

    def without(self, leaving: Iterable[Node]) -> tuple[Node, ...]:
        """The nodes that stay, in their order."""
        names = {node.name for node in leaving}
        return tuple(node for node in self.nodes if node.name not in names)


def full_members(
    recorded: Collection[str] | None, previous: Sequence[Node], seen: Collection[str]
) -> frozenset[str]:
    """Ids of the servers that have joined completely.

    :param recorded: None if the instantiation was abandoned just before it recorded
        them; then the inventory's nodes that are in the cluster are members.
    """
    if recorded is not None:
        return frozenset(recorded)
    return frozenset(node.server_id for node in previous if node.name in seen)


def compare(
    machines: Machines,
    previous: Sequence[Node],
    joined: Collection[str],
    seen: Collection[str],
    out: Sequence[Node] = (),
) -> Membership:
    """Compare VMs, inventory and cluster.

    :param machines: the VMs of the Heat stack.
    :param previous: the nodes of the inventory.
    :param joined: ids of the servers that have joined completely.
    :param seen: names of the Node objects in the cluster.
    :param out: control planes that a heal has begun to take out.
    :raises ClusterError: two VMs have the same address.
    """
    complete = machines.nodes
    ready = {machine.server_id for machine in complete}
    former = {node.name: node.server_id for node in previous}
    away = {node.name for node in out}

    def is_due(node: Node) -> bool:
        is_member = node.server_id in joined and node.name in seen
        return node.server_id in ready and not is_member

    # A control plane of `out` that is in the inventory has not left completely.
    listed = (*previous, *(node for node in out if node.name not in former))
    every = name_nodes((*complete, *_kept(machines, previous, complete)), listed)
    returning = tuple(node for node in every if node.name in away and is_due(node))
    added = tuple(
        node
        for node in of_role(every, Role.CONTROL_PLANE)
        if node.name not in former.keys() | away
    )
    nodes = tuple(node for node in every if node not in (*added, *returning))
    joining = tuple(node for node in without_planes(nodes) if is_due(node))
    servers = {node.name: node.server_id for node in nodes}
    replaced = {n for n, server in servers.items() if former.get(n) != server}
    return Membership(
        nodes=nodes,
        joining=joining,
        rebuilt=tuple(n for n in joining if n.name in replaced and n.name in seen),
        vm_gone=tuple(
            node for node in without_planes(previous) if node.name not in servers
        ),
        lost=tuple(
            node
            for node in of_role(previous, Role.CONTROL_PLANE)
            if node.name in servers
            and (
                node.name in replaced
                or node.server_id not in machines.places
                or node.server_id not in joined
            )
        ),
        added=added,
        returning=returning,
    )


def _kept(
    machines: Machines, previous: Sequence[Node], complete: Sequence[Machine]
) -> tuple[Node, ...]:
    """The incomplete VMs of the inventory that remain nodes."""
    taken = {machine.server_id for machine in complete}
    addresses = {(machine.role, machine.address) for machine in complete}
    return tuple(
        node
        for node in previous
        if node.server_id not in taken
        and (node.role, node.address) not in addresses
        and (node.server_id in machines.places or node.is_control_plane)
    )


def at_recorded_addresses(
    machines: Machines,
    previous: Sequence[Node],
    balancer: Machine | None = None,
    rebuilt: Collection[str] = (),
) -> Machines:
    """The VMs at the recorded ones of the addresses that their ports have.

    A port may get more addresses than the VM is known by, and Neutron lists them
    ordered as text.

    :param previous: the nodes of the inventory, and those that a heal has taken out.
    :param balancer: the load balancer as recorded.
    :param rebuilt: recorded addresses of VMs that Heat rebuilds.
    """
    known = {(node.role, node.server_id): node for node in previous}
    others = {(node.role, node.address) for node in previous}

    def settled(vm: Machine, former: Machine | None) -> Machine:
        if former is None:
            free = (a for a in vm.addresses if a in rebuilt or (vm.role, a) in others)
            return replace(vm, address=next(free, vm.address))
        if former.address in vm.addresses:
            vm = replace(vm, address=former.address)
        if former.ssh_address in vm.ssh_addresses:
            vm = replace(vm, ssh_address=former.ssh_address)
        return vm

    def recorded(vm: Machine) -> Machine | None:
        if vm.role is Role.LOAD_BALANCER:
            return balancer
        return known.get((vm.role, vm.server_id))

    return replace(
        machines, vms=tuple(settled(vm, recorded(vm)) for vm in machines.vms)
    )


def moved(
    machines: Machines, previous: Sequence[Node], balancer: Machine | None = None
) -> Mapping[str, str]:
    """By server id, which VM has another address in the cluster than is recorded.

    :param balancer: the load balancer as recorded.
    """
    lb = machines.load_balancer
    recorded = {node.server_id: (node.name, node.address) for node in previous}
    if lb and balancer:
        recorded[lb.server_id] = ("the load balancer", balancer.address)
    return {
        vm.server_id: f"{name} from {address} to {vm.address}"
        for vm in machines.vms
        for name, address in (recorded.get(vm.server_id, ("", vm.address)),)
        if address != vm.address
    }


def leaving(
    nodes: Sequence[Node], machines: Machines, stacks: Collection[str]
) -> tuple[Node, ...]:
    """The nodes whose VM is in one of these stacks, by exact ids."""
    return tuple(
        node
        for node in nodes
        if not machines.places.get(node.server_id, frozenset()).isdisjoint(stacks)
    )
