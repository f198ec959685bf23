# SPDX-License-Identifier: Apache-2.0
"""VMs join an existing cluster as workers.

Specification, "Scale-out" steps 1 to 4: inventory, ``scale.yml``, then the routes in
the load balancer. ``scale.yml`` runs on the new hosts only; the facts of all others,
which kubespray then reads from its cache, are gathered first (kubespray's
docs/operations/nodes.md, "Adding nodes").
"""

from collections.abc import Callable, Iterator, Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.model.nodes import Node, names_of
from tacker_k8s_mgmt.model.plan import JOINS, REMOVED, NodeChange
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.operations import (
    balancing,
    playbook_inputs,
    preconditions,
    readiness,
)
from tacker_k8s_mgmt.operations.leave import delete_nodes
from tacker_k8s_mgmt.operations.records import JOINED_FILE
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.topology.membership import Membership

LOG = logging.getLogger(__name__)


class Join:
    """The nodes that join, and the steps for them that scale-out and heal share.

    Every worker VM of the Heat stack that is no full member of the cluster joins: the
    targets of the operation, and any that an earlier one left behind.

    :ivar nodes: the workers that join.
    :ivar plane: the control plane that joins again, for heal.
    :ivar unreachable: names of the nodes that playbooks cannot use.
    :ivar is_written: the inventory has the workers, or may have.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.nodes: tuple[Node, ...] = ()
        self.plane: Node | None = None
        self.unreachable: tuple[str, ...] = ()
        self.is_written = False
        self._stale: tuple[Node, ...] = ()
        self._vm_gone: tuple[Node, ...] = ()
        self._unregistered: tuple[Node, ...] = ()

    @property
    def newcomers(self) -> tuple[Node, ...]:
        """All nodes that join, the control plane first."""
        return (self.plane, *self.nodes) if self.plane else self.nodes

    def prepare(self, has_begun: Callable[[], bool]) -> tuple[Step, ...]:
        """The steps before the playbooks that join the new nodes.

        :param has_begun: whether such a run has begun, so that no facts are needed.
        """
        return (
            Step(
                "clean-up",
                "clean up after deleted VMs",
                self._clear,
                effects=self._departures,
            ),
            Step("wait-for-logins", "wait for SSH on the new VMs", self.reach_new),
            Step(
                "write-inventory",
                "write inventory and variables",
                self._write,
                rehearsed=True,
            ),
            # A kubelet makes its Node object when it starts, and never again; kubespray
            # does not restart one whose settings are as they should be.
            Step(
                "restart-kubelets",
                "restart kubelets without a Node object",
                lambda: self._state.site.restart_kubelets(self._missing()),
                probe=lambda: not self._missing(),
            ),
            Step(
                "gather-facts",
                "gather the facts of all hosts",
                self._gather,
                probe=has_begun,
            ),
        )

    def steps(self) -> tuple[Step, ...]:
        """The steps that make the workers full members."""
        return (
            Step(
                "join-workers",
                f"run {runs.JOIN}",
                self._run,
                probe=self._has_run,
                effects=self.arrivals,
            ),
            Step(
                "wait-for-nodes",
                "wait for the new workers to be Ready",
                self._wait_ready,
            ),
            *self._state.joined(
                lambda: self.nodes, "the new workers", without=lambda: self.unreachable
            ),
            Step("add-routes", "add routes to the new workers", self._route),
        )

    def choose(self, members: Membership, is_target: Callable[[Node], bool]) -> None:
        """Choose the workers that join.

        :param is_target: whether the operation is about the node. An unreachable target
            fails the operation later; any other unreachable node is left out.
        """
        state = self._state
        # Ready nodes are tried, too: facts are gathered over SSH, and a kubelet that
        # reports says nothing of the SSH server.
        tried = [
            node
            for node in members.nodes
            if node.name not in state.lost and not is_target(node)
        ]
        unusable = state.site.unusable(tried)
        self.unreachable = (*unusable, *sorted(state.lost))
        state.unusable = frozenset(self.unreachable)
        preconditions.see(state, [n for n in tried if n.name not in unusable])
        previous = {node.name for node in state.inventory_nodes()}
        dead = frozenset(self.unreachable)
        self.nodes = tuple(node for node in members.joining if node.name not in dead)
        state.nodes = tuple(
            n for n in members.nodes if n.name not in dead or n.name in previous
        )
        self._unregistered = tuple(
            node
            for node in self.nodes
            if node.name in previous and node not in members.rebuilt
        )
        self._vm_gone = members.vm_gone
        self._stale = (*members.vm_gone, *members.rebuilt)
        if self.nodes:
            LOG.info("These workers join the cluster: %s", names_of(self.nodes))
        if dead:
            reasons = {name: f"{name} ({error})" for name, error in unusable.items()}
            listed = (reasons.get(name, name) for name in self.unreachable)
            LOG.warning("Playbooks leave these nodes out: %s", ", ".join(listed))

    def arrivals(self) -> Iterator[NodeChange]:
        """The workers that join, for a plan."""
        for node in self.nodes:
            yield NodeChange(node.name, JOINS, "its VM is there")

    def _departures(self) -> Iterator[NodeChange]:
        for node in self._vm_gone:
            yield NodeChange(node.name, REMOVED, "its VM is gone already")

    def _clear(self) -> None:
        """Remove routes, Node objects and records of VMs that are gone."""
        if self._stale:
            LOG.info("The VMs of these workers are gone: %s", names_of(self._stale))
            balancing.remove(self._state, self._stale)
            delete_nodes(self._state, self._stale)
            playbook_inputs.forget_members(self._state, self._vm_gone)

    def reach_new(self) -> None:
        """Wait until the new VMs accept SSH logins.

        :raises RemoteError: naming the VMs that do not.
        :raises ClusterError: naming those whose clock is wrong, or whose interface has
            a smaller MTU.
        """
        if nodes := self.newcomers:
            playbook_inputs.forget_new(self._state, nodes, nodes)
            playbook_inputs.wait_reachable(self._state, nodes)
            preconditions.see(self._state, nodes)
            self._check_mtu(nodes)

    def _check_mtu(self, nodes: Sequence[Node]) -> None:
        least = min(self._state.nic_mtus(), default=0)
        if not least:
            return
        mtus = {node.name: self._state.site.identity(node).nic_mtu for node in nodes}
        small = [f"{name} ({mtu})" for name, mtu in mtus.items() if 0 < mtu < least]
        if small:
            raise errors.ClusterError(
                detail="The network interfaces of these VMs have a smaller MTU than "
                f"those of the cluster had when it was created, {least} bytes: "
                f"{', '.join(small)}. Large packets of pods would be lost there.",
                hint="Put the VMs of all workers on networks of the same MTU.",
            )

    def _write(self) -> None:
        self.is_written = bool(self.nodes)
        playbook_inputs.write_inputs(self._state, self._state.nodes)

    def _missing(self) -> Sequence[Node]:
        if not self._unregistered:
            return ()
        seen = self._state.node_objects().keys()
        return [node for node in self._unregistered if node.name not in seen]

    def has_begun(self) -> bool:
        """Whether no facts are needed: no worker joins, or the run has begun."""
        if not self.nodes:
            return True
        is_live = self._state.site.playbooks.live(self._request())
        return is_live or self._has_run()

    def _gather(self) -> None:
        """Gather the facts of all hosts that answer."""
        listed = {node.name for node in self._state.nodes}
        silent = [name for name in self.unreachable if name in listed]
        playbook_inputs.gather_facts(self._state, without=silent)

    def _request(self) -> PlaybookRequest:
        return runs.join(self.nodes, self._state.inputs, self._state.etcd_leader())

    def _has_run(self) -> bool:
        """Whether the playbook has run for these workers, and they are nodes."""
        if not self.nodes:
            return True
        # A run alone proves nothing: the node may have been removed since.
        done = self._state.site.playbooks.done(self._request())
        return (
            done
            and {node.name for node in self.nodes} <= self._state.node_objects().keys()
        )

    def _run(self) -> None:
        playbook_inputs.run(self._state, self._request(), len(self.nodes))

    def _wait_ready(self) -> None:
        """Wait until the workers are Ready, and check that they are the new VMs.

        :raises ClusterError: naming those that are not after ``ready_timeout``.
        """
        if self.nodes:
            balancing.expect(self._state)
            seen = readiness.wait_ready(self._state, self.nodes)
            readiness.verify_identity(self._state.site, seen, self.nodes)

    def _route(self) -> None:
        """Add the workers' routes, and record the workers as full members."""
        state = self._state
        if self.nodes and balancing.exists(state):
            balancing.status(state)
            balancing.add(state, self.nodes)
        kept = {node.server_id for node in state.nodes} & state.members
        joined = {node.server_id for node in self.nodes}
        state.write_json(JOINED_FILE, sorted(kept | joined))
