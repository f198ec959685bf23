# SPDX-License-Identifier: Apache-2.0
"""Nodes leave the cluster, so that their VMs can be deleted or rebuilt.

Specification, "Scale-in" steps 1 to 4: routes out of the load balancer first, then the
drain, then ``remove-node.yml``. The inventory is written last, because kubespray needs
the leaving node in it. A failed drain ends the operation before a node is deleted.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.model.nodes import ROLES, Node, names_of, without_planes
from tacker_k8s_mgmt.model.plan import REMOVED, NodeChange, PodMove
from tacker_k8s_mgmt.operations import balancing, playbook_inputs, preconditions
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.topology.membership import Membership

LOG = logging.getLogger(__name__)


def delete_nodes(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Delete these nodes from the cluster, their pods first."""
    if names := [node.name for node in nodes]:
        state.cluster().force_evict(names)
        state.cluster().remove_nodes(names)


@dataclass(frozen=True)
class LeavingPlane:
    """The control plane that leaves.

    :param is_healthy: its etcd member is.
    :param voters: the control planes that are etcd members when the operation begins.
    """

    node: Node
    is_healthy: bool
    voters: tuple[Node, ...]


@dataclass(frozen=True)
class Leaving:
    """The nodes that leave the cluster, and those that stay.

    :param alive: leaving nodes in the cluster that answer.
    :param dead: leaving nodes in the cluster that do not.
    :param vm_gone: leaving nodes whose VM is already gone.
    :param nodes: all nodes that are removed from the inventory.
    :param listed: names in the inventory.
    :param unreachable: names of all nodes that playbooks cannot use.
    :param plane: the control plane among the leaving nodes, for heal.
    :param without_balancer: the load balancer, through which kubespray reaches the
        API, does not answer.
    """

    alive: tuple[Node, ...] = ()
    dead: tuple[Node, ...] = ()
    vm_gone: tuple[Node, ...] = ()
    nodes: tuple[Node, ...] = ()
    staying: tuple[Node, ...] = ()
    listed: frozenset[str] = frozenset()
    unreachable: tuple[str, ...] = ()
    plane: LeavingPlane | None = None
    without_balancer: bool = False

    @property
    def present(self) -> tuple[Node, ...]:
        """Those in the cluster."""
        return (*self.alive, *self.dead)


class Leave:
    """The steps with which nodes leave, in scale-in and heal.

    :param renews_logins: a login that the request changes is that of the VMs that stay.
    :param tries_to_drain: pods that no other node accepts do not keep them. For a heal
        the specification asks to *try* evacuating.
    :ivar leaving: the nodes, once they are classified.
    :ivar undrained: some pods could not leave.
    """

    def __init__(
        self,
        state: ClusterState,
        *,
        renews_logins: bool = False,
        tries_to_drain: bool = False,
    ) -> None:
        self._state = state
        self._renews_logins = renews_logins
        self._tries_to_drain = tries_to_drain
        self.leaving = Leaving()
        self.undrained = False
        self._cordoned: tuple[str, ...] = ()
        self._left = ""

    def left(self) -> str:
        """What stays behind when a step fails."""
        return self._left

    def classify(
        self,
        leaving: tuple[Node, ...],
        members: Membership,
        seen: NodeObjects,
        *,
        plane: LeavingPlane | None = None,
        without_balancer: bool = False,
    ) -> None:
        """Tell nodes that answer from dead ones; nodes whose VM is gone leave, too.

        A dead node is not Ready and cannot be used over SSH. Only both together mean
        that its pods cannot be stopped in an orderly way. One that is Ready is drained,
        and leaves without a playbook working on it.

        :raises ClusterError: the login of a leaving node is refused, and by all others.
        """
        state = self._state
        previous = state.inventory_nodes()
        listed = frozenset(node.name for node in previous)
        ready = {name for name in seen if seen[name].ready}
        if plane and not plane.is_healthy:
            # Its Node object may be out of date.
            ready.discard(plane.node.name)
        # Ready nodes are tried, too: playbooks reach all that stay over SSH.
        tried = [
            node
            for node in (*members.nodes, *members.returning)
            if node.name not in state.lost and node.name in listed
        ]
        unusable = state.site.unusable(tried, self._renewed(tried))
        _refuse_wrong_login(leaving, tried, unusable)
        replaced, names = _replaced(previous, members), {n.name for n in leaving}
        others = (node for node in replaced if node.name not in names)
        vm_gone = (*members.vm_gone, *others)
        without_vm = {node.name for node in (*members.vm_gone, *replaced)}
        gone = {*(unusable.keys() - ready), *without_vm, *state.lost}
        state.unusable = frozenset(gone | unusable.keys())
        nodes = (*leaving, *vm_gone)
        present = [node for node in nodes if node.name in seen]
        self.leaving = found = Leaving(
            alive=tuple(node for node in present if node.name not in gone),
            dead=tuple(node for node in present if node.name in gone),
            vm_gone=vm_gone,
            nodes=nodes,
            staying=members.without(nodes),
            listed=listed,
            unreachable=tuple(sorted(state.unusable)),
            plane=plane,
            without_balancer=without_balancer,
        )
        # The pods of a node whose kubelet is silent stay, although it was drained.
        self.undrained = any(node.name not in ready for node in found.alive)
        preconditions.see(
            state, [n for n in found.staying if n.name not in state.unusable]
        )
        self._log(leaving, unusable)

    def _log(
        self, leaving: Sequence[Node], unusable: Mapping[str, errors.RemoteError]
    ) -> None:
        for what, nodes in (
            ("leave the cluster", leaving),
            ("are dead and leave without a drain", self.leaving.dead),
            ("are in the inventory, and their VMs are gone", self.leaving.vm_gone),
        ):
            if nodes:
                LOG.info("These nodes %s: %s", what, names_of(nodes))
        for name, error in unusable.items():
            LOG.warning("Playbooks leave %s out: %s", name, error)

    def departures(self, change: str) -> Iterator[NodeChange]:
        """What becomes of the nodes, for a plan.

        :param change: of those whose VM is there.
        """
        found = self.leaving
        gone, dead = set(found.vm_gone), set(found.dead)
        for node in found.nodes:
            if node in gone:
                yield NodeChange(node.name, REMOVED, "its VM is gone, or was replaced")
                continue
            why = ("no drain: it does not answer",) if node in dead else ()
            yield NodeChange(node.name, change, *why)

    def emptying(self) -> tuple[Step, ...]:
        """The steps that take the leaving nodes out of service."""
        name = "remove routes to the leaving nodes"
        return (
            Step("remove-routes", name, self.unroute, effects=self.see_balancer),
            Step("cordon", "cordon the leaving nodes", self.cordon),
            Step("drain", "drain the leaving nodes", self.drain, effects=self.pods),
        )

    def pods(self) -> tuple[PodMove, ...]:
        """The pods that :meth:`drain` would move, for a plan."""
        names = [node.name for node in self.leaving.alive]
        if not names:
            return ()
        state = self._state
        pods = state.cluster().drain_outlook(names, state.params.drain)
        if self._tries_to_drain and all(pod.stranded for pod in pods if pod.blocks):
            pods = tuple(replace(pod, blocks=False) for pod in pods)
        return pods

    def see_balancer(self) -> tuple[()]:
        """Check that :meth:`unroute` reaches the load balancer, for a plan.

        :raises RemoteError: it does not answer.
        """
        if self._is_routed() and self.leaving.nodes:
            balancing.report(self._state)
        return ()

    def _is_routed(self) -> bool:
        # A load balancer that is gone is rebuilt, and gets its routes then.
        return balancing.exists(self._state) and not self.leaving.without_balancer

    def unroute(self) -> None:
        """Remove their routes from the load balancer."""
        state, leaving = self._state, self.leaving
        if not self._is_routed():
            return
        if leaving.nodes:
            balancing.status(state)
            self._note("without their routes")
            balancing.remove(state, leaving.nodes)
        if leaving.plane is not None:
            balancing.set_control_planes(state, leaving.staying)

    def cordon(self) -> None:
        """Cordon those that answer."""
        if names := [node.name for node in self.leaving.alive]:
            self._note(f"cordoned{self._unrouted()}")
            self._cordoned = self._state.cluster().cordon(names)

    def drain(self) -> None:
        """Drain those that answer.

        :raises DrainError: pods did not leave, and another node accepts one of them;
            the nodes are full members again.
        """
        if not (names := [node.name for node in self.leaving.alive]):
            return
        try:
            self._state.cluster().drain(names, self._state.params.drain)
        except errors.K8sMgmtError as error:
            stranded = isinstance(error, errors.DrainError) and error.no_other_node
            if not (stranded and self._tries_to_drain):
                self._return_to_service()
                raise
            LOG.warning(
                "The nodes leave, although pods are left that no other node accepts: "
                "%s",
                error,
            )
            self.undrained = True
        self._note(f"drained{self._unrouted()}")

    def _return_to_service(self) -> None:
        """Make the nodes full members again; none was removed yet."""
        state, leaving = self._state, self.leaving
        try:
            state.cluster().uncordon(self._cordoned)
            balancing.add(state, leaving.alive)
            if leaving.plane is not None:
                staying = (*leaving.staying, *leaving.alive)
                balancing.set_control_planes(state, staying)
        except errors.K8sMgmtError as error:
            self._left = (
                f"The nodes {names_of(leaving.alive)} are still cordoned or without "
                f"their routes, for taking that back failed too: {error}"
            )
        else:
            self._left = (
                f"No node was removed: {names_of(leaving.alive)} can be scheduled "
                "again and have their routes. Pods that have left do not come back by "
                "themselves."
            )

    def run_remove(self) -> None:
        """Run kubespray's ``remove-node.yml`` for those that are no control planes."""
        state, found = self._state, self.leaving
        if state.params.changed_logins:
            nodes = state.inventory_nodes()
            playbook_inputs.write_inputs(state, nodes, renewed=self._renewed(nodes))
        if found.dead:
            state.cluster().force_evict([node.name for node in found.dead])
        leaving = [
            node.name
            for node in without_planes(found.present)
            if node.name in found.listed
        ]
        if leaving:
            playbook_inputs.put_leader_first(state)
        # One run for all of a kind: kubespray takes a list of nodes.
        for dead in (False, True):
            names = [name for name in leaving if (name in found.unreachable) is dead]
            if names:
                request = runs.remove(
                    names,
                    state.params.drain,
                    dead=dead,
                    undrained=self.undrained,
                    without=found.unreachable,
                )
                self.note_unfinished()
                playbook_inputs.run(state, request, len(names))

    def note_unfinished(self) -> None:
        """Note what stays behind if ``remove-node.yml`` fails."""
        self._note(f"drained{self._unrouted()}")
        if (plane := self.leaving.plane) is not None:
            name = plane.node.name
            self._left += (
                f" If this heal is abandoned, heal {name} again; as long as it has a "
                f"Node object, `kubectl uncordon {name}` lets pods onto it meanwhile. "
                "It stays out of the load balancer until it is healed."
            )

    def _note(self, how: str) -> None:
        """Note how the nodes are if a step fails, and how to undo that."""
        # Without Node objects, they are what an earlier try has not finished.
        nodes = self.leaving.present or self.leaving.nodes
        self._left = f"Left as they are: {names_of(nodes)}, {how}."
        if without_planes(self.leaving.alive):
            self._left += (
                " If this operation is abandoned, `tacker-k8s-mgmt cluster check "
                f"{self._state.deps.vnf_id}` prints the commands that give workers "
                "back."
            )

    def _unrouted(self) -> str:
        is_balanced = balancing.exists(self._state)
        return " and out of the load balancer" if is_balanced else ""

    def delete_objects(self) -> None:
        """Delete their Node objects."""
        if names := [node.name for node in self.leaving.present]:
            self._state.cluster().remove_nodes(names)

    def write_staying(self) -> None:
        """Write inventory and records without them."""
        staying, nodes = self.leaving.staying, self.leaving.nodes
        renewed = self._renewed(staying)
        playbook_inputs.write_without(self._state, staying, nodes, renewed)
        self._left = ""

    def _renewed(self, nodes: Sequence[Node]) -> Collection[str]:
        """The names of those that stay and whose login the request changes."""
        changed = self._state.params.changed_logins if self._renews_logins else ()
        return [n.name for n in nodes if ROLES[n.role].parameter in changed]


def _refuse_wrong_login(
    leaving: Sequence[Node],
    tried: Sequence[Node],
    unusable: Mapping[str, errors.RemoteError],
) -> None:
    """Check that a login which a leaving node refuses is right for another VM.

    :raises ClusterError: it is not, so that it proves nothing about the node.
    """
    found = {node.name: unusable.get(node.name) for node in tried}
    let_in = {
        node.role
        for node in tried
        if isinstance(found[node.name], errors.UnusableError | None)
    }
    doubtful = [
        node
        for node in leaving
        if node.role not in let_in
        and not isinstance(found.get(node.name), errors.ConnectError | None)
    ]
    if doubtful:
        reasons = " ".join(str(unusable[node.name]) for node in doubtful)
        raise errors.ClusterError(
            detail=f"{names_of(doubtful)} cannot be logged in to, nor can another VM "
            f"of its kind with the same login: {reasons} Nothing was changed.",
            hint="Correct the login; or, if the VM is lost, stop it with `openstack "
            "server stop`, so that it is taken for dead.",
        )


def _replaced(previous: Sequence[Node], members: Membership) -> tuple[Node, ...]:
    """The former nodes whose address a VM has taken over that has not joined.

    Playbooks do not reach it: they expect the host key of the former VM.
    """
    due = {node.name: node.server_id for node in members.joining}
    return tuple(n for n in previous if due.get(n.name, n.server_id) != n.server_id)
