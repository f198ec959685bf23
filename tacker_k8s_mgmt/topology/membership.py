"""Heat, the inventory and the cluster side by side: who is a member, who should be.

Tacker has cases in which a new VM never gets its hook (the retry of a failed scale-out)
and in which VMs go without one (the rollback of a scale-out). So no operation trusts
its arguments alone: each compares by exact identity, and mends what an earlier one has
left behind.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, name_nodes
from tacker_k8s_mgmt.topology.heat_stack import Machines


@dataclass(frozen=True)
class Membership:
    """What the comparison found.

    :param nodes: every node whose VM exists, in the inventory's order; also those that
        Heat has not finished changing, and control planes, which are never given up.
    :param joining: workers whose VM is complete and is not in the cluster yet.
    :param rebuilt: of these, the ones whose name a Node object of another VM has.
    :param vanished: workers of the inventory whose VM is gone.
    :param lost: control planes of the inventory whose VM is gone, or was replaced and
        has not joined.
    :param added: control planes that are not in the inventory, and not among the nodes:
        only a new cluster gets control planes.
    :param returning: control planes that a heal has taken out and whose VM is complete,
        with their names of before; not among the nodes until they have joined again.
    """

    nodes: tuple[Node, ...]
    joining: tuple[Node, ...]
    rebuilt: tuple[Node, ...]
    vanished: tuple[Node, ...]
    lost: tuple[Node, ...]
    added: tuple[Node, ...]
    returning: tuple[Node, ...] = ()

    def without(self, leaving: Iterable[Node]) -> tuple[Node, ...]:
        """The nodes that stay, in their order."""
        names = {node.name for node in leaving}
        return tuple(node for node in self.nodes if node.name not in names)


def whole_members(
    recorded: Collection[str] | None, previous: Sequence[Node], seen: Collection[str]
) -> frozenset[str]:
    """Ids of the servers whose join was seen to its end.

    :param recorded: None for a cluster whose instantiation was given up just before
        that was recorded; whoever of its inventory is in the cluster is a member then.
    """
    if recorded is not None:
        return frozenset(recorded)
    return frozenset(node.server_id for node in previous if node.name in seen)


def compare(
    found: Machines,
    previous: Sequence[Node],
    joined: Collection[str],
    seen: Collection[str],
    out: Sequence[Node] = (),
) -> Membership:
    """Compare the three.

    :param found: the VMs of the Heat stack.
    :param previous: the nodes of the inventory.
    :param joined: ids of the servers whose join was seen to its end.
    :param seen: names of the Node objects in the cluster.
    :param out: control planes that a heal has begun to take out.
    :raises ClusterError: if two VMs have one address.
    """
    complete = (*found.control_planes, *found.workers)
    away = {node.name for node in out}
    ready = {machine.server_id for machine in complete}
    # Whoever is still listed has not left wholly, although a heal has begun with it.
    kept = _kept(found, previous, complete)
    former = {node.name for node in previous}
    listed = (*previous, *(node for node in out if node.name not in former))
    every = name_nodes((*complete, *kept), listed)
    returning = tuple(
        node
        for node in every
        if node.name in away
        and node.server_id in ready
        and (node.server_id not in joined or node.name not in seen)
    )
    added = tuple(
        node
        for node in every
        if node.role is Role.CONTROL_PLANE and node.name not in former | away
    )
    nodes = tuple(node for node in every if node not in (*added, *returning))
    joining = tuple(
        node
        for node in nodes
        if node.role is Role.WORKER
        and node.server_id in ready
        and (node.server_id not in joined or node.name not in seen)
    )
    names = {node.name for node in nodes}
    own = {node.name: node.server_id for node in previous}
    replaced = {node.name for node in nodes if own.get(node.name) != node.server_id}
    return Membership(
        nodes=nodes,
        joining=joining,
        rebuilt=tuple(
            node for node in joining if node.name in replaced and node.name in seen
        ),
        vanished=tuple(
            node
            for node in previous
            if node.role is Role.WORKER and node.name not in names
        ),
        lost=tuple(
            node
            for node in previous
            if node.role is Role.CONTROL_PLANE
            and node.name in names
            and (
                node.name in replaced
                or node.server_id not in found.places
                or node.server_id not in joined
            )
        ),
        added=added,
        returning=returning,
    )


def _kept(
    found: Machines, previous: Sequence[Node], complete: Sequence[Machine]
) -> tuple[Machine, ...]:
    """VMs of the inventory that are not complete and yet not to be given up."""
    taken = {machine.server_id for machine in complete}
    addresses = {(machine.role, machine.address) for machine in complete}
    return tuple(
        node.machine
        for node in previous
        if node.server_id not in taken
        and (node.role, node.address) not in addresses
        and (node.server_id in found.places or node.role is Role.CONTROL_PLANE)
    )


def leaving(
    nodes: Sequence[Node], found: Machines, stacks: Collection[str]
) -> tuple[Node, ...]:
    """The nodes whose VM is in one of these stacks, matched whole."""
    wanted = frozenset(stacks)
    nowhere: frozenset[str] = frozenset()
    return tuple(
        node for node in nodes if found.places.get(node.server_id, nowhere) & wanted
    )
