"""VMs become workers of a cluster that is there.

Specification, "Scale-out" steps 1 to 4: inventory, ``scale.yml``, then the routes in
the load balancer. ``scale.yml`` touches the new hosts only; the facts of all others,
which kubespray then takes from its cache, are gathered anew first (kubespray's
docs/operations/nodes.md, "Adding nodes").
"""

import logging
from collections.abc import Callable, Sequence

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps import inventory, playbooks, readiness, removal
from tacker_k8s_mgmt.lifecycle.steps.records import JOINED_FILE
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Node, names_of
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.topology.membership import Membership

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class Join:
    """The nodes that join, and the steps of it that scale-out and heal share.

    Every worker that has a VM in the Heat stack and is no full member of the cluster
    joins: those that the operation is about, and any that an earlier one left behind.

    :ivar nodes: the workers that join.
    :ivar plane: the control plane that joins again, for heal.
    :ivar unreachable: names of the nodes that do not accept SSH logins.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.nodes: tuple[Node, ...] = ()
        self.plane: Node | None = None
        self.unreachable: tuple[str, ...] = ()
        self._stale: tuple[Node, ...] = ()
        self._vanished: tuple[Node, ...] = ()

    @property
    def newcomers(self) -> tuple[Node, ...]:
        """Every node that joins, the control plane first."""
        return (*((self.plane,) if self.plane else ()), *self.nodes)

    def choose(self, found: Membership, is_target: Callable[[Node], bool]) -> None:
        """Choose the workers that join.

        :param is_target: whether the operation is about the node. A target that cannot
            be reached fails the operation, any other node that cannot is left out.
        """
        state = self._state
        # The Ready ones, too: a kubelet that reports says nothing of the SSH server,
        # and the facts of all hosts are gathered over SSH.
        asked = [
            node
            for node in found.nodes
            if node.name not in state.lost and not is_target(node)
        ]
        self.unreachable = (*state.site.unreachable(asked), *sorted(state.lost))
        before = {node.name for node in state.previous()}
        dead = frozenset(self.unreachable)
        self.nodes = tuple(node for node in found.joining if node.name not in dead)
        state.nodes = tuple(
            node for node in found.nodes if node.name not in dead or node.name in before
        )
        self._vanished = found.vanished
        self._stale = (*found.vanished, *found.rebuilt)
        if self.nodes:
            LOG.info("These workers join the cluster: %s", names_of(self.nodes))
        if dead:
            LOG.warning(
                "These nodes do not accept SSH logins and are left out: %s",
                ", ".join(self.unreachable),
            )

    def clear(self) -> None:
        """Node objects and routes whose VM is gone: nobody would take them away."""
        if not self._stale:
            return
        LOG.info("The VMs of these workers are gone: %s", names_of(self._stale))
        removal.remove_routes(self._state, self._stale)
        removal.delete_nodes(self._state, self._stale)
        inventory.forget_members(self._state, self._vanished)

    def reach_new(self) -> None:
        """Wait until the new VMs accept SSH logins.

        :raises RemoteError: naming the VMs that do not.
        :raises ClusterError: the interfaces of some have a smaller MTU.
        """
        if nodes := self.newcomers:
            machines = [node.machine for node in nodes]
            inventory.forget_new(self._state, machines, nodes)
            inventory.wait_reachable(self._state, machines)
            self._see_mtu(nodes)

    def _see_mtu(self, nodes: Sequence[Node]) -> None:
        """See that what pods send fits through the new VMs' interfaces.

        :raises ClusterError: naming those with a smaller MTU than the cluster has.
        """
        least = min(self._state.nic_mtus(), default=0)
        if not least:
            return
        mtus = {node.name: self._state.site.identity(node).nic_mtu for node in nodes}
        small = [f"{name} ({mtu})" for name, mtu in mtus.items() if 0 < mtu < least]
        if small:
            raise errors.ClusterError(
                detail="The network interfaces of these VMs have a smaller MTU than "
                f"those of the cluster had when it was made, {least} bytes: "
                f"{', '.join(small)}. Large packets of pods would be lost there.",
                hint="Put the VMs of all workers on networks of the same MTU.",
            )

    def write(self) -> None:
        """Write the inventory with them."""
        inventory.write_inputs(self._state, self._state.nodes)

    def has_begun(self) -> bool:
        """Whether facts are not needed: nobody joins, or an earlier try is that far."""
        if not self.nodes:
            return True
        is_live = self._state.site.playbooks.live(self._scale_request())
        return is_live or self.scale_done()

    def gather(self) -> None:
        """Gather the facts of all hosts that answer."""
        listed = {node.name for node in self._state.nodes}
        silent = [name for name in self.unreachable if name in listed]
        playbooks.gather_facts(self._state, without=silent)

    def _scale_request(self) -> PlaybookRequest:
        limit = ",".join(node.name for node in self.nodes)
        return PlaybookRequest(
            kubespray_releases.SCALE, args=("--limit", limit), inputs=self._state.inputs
        )

    def scale_done(self) -> bool:
        """Whether ``scale.yml`` has run for these workers, and they are there."""
        if not self.nodes:
            return True
        # The run alone proves nothing: the node may have been removed since.
        return self._state.site.playbooks.done(self._scale_request()) and not (
            {node.name for node in self.nodes} - self._state.seen().keys()
        )

    def run_scale(self) -> None:
        """Run kubespray's ``scale.yml`` for these workers."""
        playbooks.run(self._state, self._scale_request(), len(self.nodes))

    def see_ready(self) -> None:
        """See that the workers are Ready, and the VMs that they are to be.

        :raises ClusterError: naming those that are not after ``ready_timeout``.
        """
        if self.nodes:
            self._state.expect_balancer()
            seen = readiness.wait_ready(self._state, self.nodes)
            readiness.verify_identity(self._state, seen, self.nodes)

    def route(self) -> None:
        """Give the workers their routes, and record them as full members."""
        state = self._state
        balancing = state.balancing()
        if balancing is not None and self.nodes:
            balancing.status()
            balancing.add(self.nodes)
        kept = {node.server_id for node in state.nodes} & state.members
        joined = {node.server_id for node in self.nodes}
        state.write_json(JOINED_FILE, sorted(kept | joined))
