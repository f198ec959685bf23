# SPDX-License-Identifier: Apache-2.0
"""Begins an operation: Heat, inventory and cluster compared, records restored.

Damaged or lost files of the cluster's directory are rebuilt while the operation has the
cluster's lock. The content comes from Heat, the cluster and the inventory; of the
inventory there is a copy.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray.inventory import FILE_NAME
from tacker_k8s_mgmt.model.nodes import Node, Role, names_of, of_role, without_planes
from tacker_k8s_mgmt.model.plan import REBUILT, NodeChange
from tacker_k8s_mgmt.operations import balancing, upgrade_plan
from tacker_k8s_mgmt.operations.records import (
    HEALING_FILE,
    JOINED_FILE,
    KEPT_INVENTORY,
    MTU_FILE,
    SERVICES_FILE,
    Healing,
    read_or_none,
)
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects, OperationContext
from tacker_k8s_mgmt.remote.vms import MACHINES_FILE
from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.membership import Membership

LOG = logging.getLogger(__name__)


def records(state: ClusterState, nodes: Sequence[Node], seen: NodeObjects) -> None:
    """Rebuild everything but the inventory.

    :param nodes: of the inventory.
    :raises DamagedFile: a file's content cannot be had from elsewhere.
    """
    machines(state, nodes)
    how = "It is rebuilt from the inventory and the cluster."
    if read_or_none(state.records.joined, how) is None:
        state.write_json(JOINED_FILE, sorted(state.members))
    if state.params.cluster.network.mtu == fields.NODES:
        how = "It is rebuilt from the interfaces of the nodes that are Ready."
        if read_or_none(state.records.nic_mtus, how) is None:
            ready = [n for n in nodes if n.name in seen and seen[n.name].ready]
            write_nic_mtu(state, ready)
    _upgrade(state, seen)
    _services(state)


def inventory(state: ClusterState) -> None:
    """Restore an inventory that is lost or damaged from its copy.

    :raises DamagedFile: it is damaged, and there is no copy.
    """
    how = f"It is restored from {KEPT_INVENTORY}."
    if read_or_none(state.records.inventory, how) is None:
        text = state.records.last_inventory()
        if text is not None and state.site.workdir.write(FILE_NAME, text):
            LOG.warning("%s was restored", FILE_NAME)


def clear_previous_cluster(state: ClusterState) -> None:
    """Empty what a former cluster has left, whose directory could not be removed.

    Its upgrades are among it: the new cluster gets the version of its own request.
    """
    for name, text in (
        (SERVICES_FILE, "[]\n"),
        (HEALING_FILE, Healing().text()),
        (upgrade_plan.FILE_NAME, upgrade_plan.ClusterVersion().text()),
    ):
        try:
            is_there = state.site.workdir.read(name) is not None
        except errors.DamagedFile:
            is_there = True
        if is_there and state.site.workdir.write(name, text):
            LOG.warning("%s of a former cluster was emptied", name)


def machines(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Rebuild the record of seen VMs from the nodes whose host key is known."""
    how = "It is rebuilt from the inventory and the host keys."
    if read_or_none(state.records.machines, how) is None:
        known = {
            node.server_id: node.ssh_address
            for node in nodes
            if state.site.host_keys(node.ssh_address)
        }
        state.write_json(MACHINES_FILE, known)


def write_nic_mtu(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Record the smallest MTU of these nodes, if all are known."""
    mtus = [state.site.identity(node).nic_mtu for node in nodes]
    state.write_json(MTU_FILE, [min(mtus)] if mtus and all(mtus) else [])


def _upgrade(state: ClusterState, seen: NodeObjects) -> None:
    """Record the version of kubelets and API server, if they have the same."""
    try:
        state.records.upgrade()
    except errors.DamagedFile as error:
        kubelets = {node.kubelet_version for node in seen.values()}
        versions = {state.cluster().version()} | kubelets
        if len(versions) != 1:
            raise
        (version,) = versions
        LOG.warning("%s It is rebuilt: all have %s.", error.what, version)
        text = upgrade_plan.ClusterVersion(version=version.removeprefix("v")).text()
        state.site.workdir.write(upgrade_plan.FILE_NAME, text)


def _services(state: ClusterState) -> None:
    """Record the services that the load balancer exposes."""
    if not balancing.exists(state):
        return
    ask_balancer(state.records.services, lambda: balancing.status(state))
    for work in state.works:
        work.restore_records()


def ask_balancer(read: Callable[[], object], rebuild: Callable[[], object]) -> None:
    """Have a damaged record rebuilt by what the load balancer reports.

    :param read: reads it.
    :raises DamagedFile: it is, and the load balancer does not report.
    """
    try:
        read()
    except errors.DamagedFile as error:
        try:
            rebuild()
        except errors.K8sMgmtError as reason:
            LOG.warning("The load balancer does not report its services: %s", reason)
            raise error from None
        LOG.warning("%s It is rebuilt by the load balancer.", error.what)


_GIVE_BACK = (
    "Have the ports get these addresses back (`openstack port set --fixed-ip`). A "
    "worker may be healed instead; or heal the whole VNF, which builds the cluster "
    "again."
)


def compare(
    state: ClusterState,
    meanwhile: Callable[[], None] = lambda: None,
    leaves: Callable[[str], bool] = lambda server_id: False,
    *,
    checked: bool = True,
) -> tuple[Membership, NodeObjects]:
    """The membership of the cluster, and its Node objects by name.

    :param meanwhile: called before the cluster lists its nodes.
    :param leaves: whether the operation removes or rebuilds the VM with this server id.
    :param checked: whether features may refuse the operation.
    :raises ClusterError: there is no inventory to compare with, no control plane of it
        is there any more, or the load balancer has no VM that can be used.
    :raises UnsupportedOperation: an address in the cluster has changed.
    :raises ProblemList: entries of the metadata are wrong.
    """
    for work in state.works if checked else ():
        work.check_metadata()
    with ThreadPoolExecutor(2) as pool:
        # Heat takes longer than two logins.
        listing = pool.submit(state.site.machines)
        listed = state.nodes = state.require_inventory()
        state.site.lock()
        login = pool.submit(state.via_control_plane, state.site.cluster)
        state.machines = listing.result()
    inventory(state)
    state.healing = state.records.healing()
    out = (state.healing.plane,) if state.healing.plane else ()
    previous = state.inventory_nodes()
    recorded = read_or_none(
        state.records.joined, "It is rebuilt from the cluster's nodes."
    )
    there = state.machines.places.keys()
    # A server that did not join has no etcd and no API server.
    hosts = there if recorded is None else there & set(recorded)
    missing = {node.server_id for node in previous} - hosts
    _refuse_lost(previous, missing)
    settle(state, (*previous, *out))
    balancing.require(state, leaves)
    _refuse_moved(state, previous, leaves)
    away = {node.name for node in out}
    state.nodes = tuple(n for n in previous if n.name not in away) or previous
    state.unreachable_control_planes |= missing
    if state.nodes == listed and not missing:
        # No other control plane can be asked: a refused password is not tried again.
        login.result()
    meanwhile()
    seen = state.node_objects()
    state.members = membership.full_members(recorded, previous, seen)
    records(state, previous, seen)
    members = membership.compare(
        state.machines, previous, state.members, frozenset(seen), out
    )
    state.nodes, state.returning = members.nodes, members.returning
    for work in state.works:
        work.compared(seen)
    _note_absent(state, members)
    return members, seen


def refuse_unfinished(state: ClusterState) -> None:
    """Check that no heal of the whole VNF was abandoned before it registered a VIM.

    :raises UnsupportedOperation: one was; only such a heal continues.
    """
    how = "Whether a heal of the whole VNF was abandoned is not known."
    heal = read_or_none(state.records.whole_heal, how)
    if heal and heal.cleared and not state.site.vims.registered():
        raise errors.UnsupportedOperation(
            detail="A heal of the whole VNF was abandoned when the former cluster and "
            "its VIM were removed and the new one had none yet. No node was touched.",
            hint="Heal the whole VNF, which rebuilds the cluster.",
        )


def refuse_rebuilt(
    state: ClusterState, staying: Sequence[Node], seen: NodeObjects
) -> None:
    """Check that an update of the stack builds no node again that is to stay.

    Heat replaces with whatever update what is marked unhealthy, which an abandoned
    heal, or an operator, has done. One that is dead loses nothing, unless it is a
    control plane; one that is not Ready may run its pods, as all do without the load
    balancer.

    :raises UnsupportedOperation: it would.
    """
    machines = state.machines
    rebuilt = machines.rebuilt_by_update()
    others = [
        node
        for node in staying
        if node.server_id in rebuilt and (node.is_control_plane or node.name in seen)
    ]
    silent = [
        node
        for node in others
        if not node.is_control_plane and not seen[node.name].ready
    ]
    if silent:
        dead = state.site.unusable(silent)
        others = [node for node in others if node.name not in dead]
    if others:
        raise errors.UnsupportedOperation(
            detail=f"Heat would also build the VM of {names_of(others)} again, "
            "which is CHECK_FAILED there, or its group is. No VM and no node was "
            "touched.",
            hint="First heal these VNFCs, all in one request. If their VMs are "
            "healthy, `openstack stack resource mark unhealthy --reset` says so to "
            f"Heat; `openstack stack resource list -n 5 {machines.stack_id}` lists "
            "them.",
        )


def rebuilt_too(
    state: ClusterState, members: Membership, targets: Collection[str]
) -> Iterator[NodeChange]:
    """What an update of the stack builds again beside its targets, for a plan.

    :param targets: ids of servers.
    """
    rebuilt = state.machines.rebuilt_by_update()
    names = {node.server_id: node.name for node in (*members.nodes, *members.returning)}
    late = [vm.server_id for vm in state.machines.unfinished]
    for server in dict.fromkeys((*names, *late)):
        if server in rebuilt and server not in targets:
            why = "Heat replaces it with any update: it is CHECK_FAILED there"
            yield NodeChange(names.get(server, f"server {server}"), REBUILT, why)


def see_none_rebuilt(deps: OperationContext) -> None:
    """Check that an update of the stack, which heals nothing, builds no node again.

    :raises UnsupportedOperation: it would.
    """
    if deps.site.machines().rebuilt_by_update():
        state = ClusterState(deps)
        members, seen = compare(state)
        refuse_rebuilt(state, members.nodes, seen)


def _note_absent(state: ClusterState, members: Membership) -> None:
    """Note the control planes that are out of the cluster, or whose VM is."""
    if members.returning:
        LOG.warning(
            "%s was taken out to be rebuilt and has not joined again; the next heal "
            "joins it",
            names_of(members.returning),
        )
    if members.lost:
        state.lost = frozenset(node.name for node in members.lost)
        state.unreachable_control_planes |= {
            node.server_id for node in members.nodes if node.name in state.lost
        }
        LOG.warning(
            "Control planes of the inventory whose VM is gone or was replaced, and "
            "which stay in it: %s",
            names_of(members.lost),
        )


def settle(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Take the VMs at their recorded addresses, where their ports still have these.

    :param nodes: as recorded.
    """
    wanted = state.params.load_balancer
    state.balancer = state.records.balancer(state.machines) if wanted else None
    rebuilt_at = state.healing.addresses
    state.machines = membership.at_recorded_addresses(
        state.machines, nodes, state.balancer, rebuilt_at
    )


def _refuse_moved(
    state: ClusterState, previous: Sequence[Node], leaves: Callable[[str], bool]
) -> None:
    """Check that the addresses in the cluster are as recorded.

    Names, certificates, etcd members and every kubelet's connection depend on them. One
    that leaves may have lost its address, unless it is a control plane.
    """
    others = {vm.server_id for vm in without_planes(state.machines.nodes)}
    moved = membership.moved(state.machines, previous, state.balancer)
    stay = [
        text
        for server_id, text in moved.items()
        if not (server_id in others and leaves(server_id))
    ]
    if stay:
        raise errors.UnsupportedOperation(
            detail="Addresses inside the cluster have changed, which cannot while it "
            f"runs: {', '.join(stay)}. Nothing was changed.",
            hint=_GIVE_BACK,
        )


def _refuse_lost(previous: Sequence[Node], missing: Collection[str]) -> None:
    """Check that a VM is left of those that the cluster's API was on."""
    planes = of_role(previous, Role.CONTROL_PLANE)
    if planes and all(plane.server_id in missing for plane in planes):
        raise errors.ClusterError(
            detail="No VM of the cluster's control planes is there any more, or all "
            f"were replaced: {names_of(planes)}. With them the cluster is lost.",
            hint="Heal the whole VNF, which rebuilds the cluster.",
        )
