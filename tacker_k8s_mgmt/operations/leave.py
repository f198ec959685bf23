# SPDX-License-Identifier: Apache-2.0
"""Nodes leave the cluster, so that their VMs can be deleted or rebuilt.

Specification, "Scale-in" steps 1 to 4: routes out of the load balancer first, then the
drain, then ``remove-node.yml``. The inventory is written last, because kubespray needs
the leaving node in it. A failed drain ends the operation before a node is deleted.
"""

from collections.abc import Collection, Mapping, Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.model.nodes import Node, names_of, without_planes
from tacker_k8s_mgmt.operations import balancing, playbook_inputs, preconditions
from tacker_k8s_mgmt.operations.control_plane_guard import LeavingPlane
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.topology.membership import Membership

LOG = logging.getLogger(__name__)


def delete_nodes(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Delete these nodes from the cluster, their pods first."""
    if names := [node.name for node in nodes]:
        state.cluster().evict_dead(names)
        state.cluster().remove_nodes(names)


class Leave:
    """The nodes that leave, and the steps for them that scale-in and heal share.

    :param renews_logins: a login that the request changes is that of the VMs that stay.
    :param tries_to_drain: pods that no other node accepts do not keep them. For a heal
        the specification asks to *try* evacuating.
    :ivar plane: the control plane among them, for heal.
    :ivar balancer_is_gone: the load balancer, through which kubespray reaches the API,
        does not answer.
    :ivar alive: leaving nodes in the cluster that answer.
    :ivar dead: leaving nodes in the cluster that do not.
    :ivar nodes: all nodes that are removed from the inventory.
    :ivar vanished: those of them whose VM is already gone.
    :ivar listed: names in the inventory.
    :ivar silent: names of the nodes, leaving or staying, that playbooks cannot use.
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
        self.plane: LeavingPlane | None = None
        self._tries_to_drain = tries_to_drain
        self.balancer_is_gone = False
        self.alive: tuple[Node, ...] = ()
        self.dead: tuple[Node, ...] = ()
        self.nodes: tuple[Node, ...] = ()
        self.vanished: tuple[Node, ...] = ()
        self.staying: tuple[Node, ...] = ()
        self.listed: frozenset[str] = frozenset()
        self.silent: list[str] = []
        self.undrained = False
        self._cordoned: tuple[str, ...] = ()
        self._left = ""

    def left(self) -> str:
        """What stays behind when a step fails."""
        return self._left

    def sort(
        self, leaving: tuple[Node, ...], members: Membership, seen: NodeObjects
    ) -> None:
        """Tell nodes that answer from dead ones; nodes whose VM is gone leave, too.

        A dead node is not Ready and cannot be used over SSH. Only both together mean
        that its pods cannot be stopped in an orderly way. One that is Ready is drained,
        and leaves without a playbook working on it.

        :raises ClusterError: the login of a leaving node is refused, and by all others.
        """
        state = self._state
        previous = state.previous()
        self.listed = frozenset(node.name for node in previous)
        well = {name for name in seen if seen[name].ready}
        if self.plane and not self.plane.is_well:
            # Its Node object may be out of date.
            well.discard(self.plane.node.name)
        # Ready nodes are tried, too: playbooks reach all that stay over SSH.
        tried = [
            node
            for node in (*members.nodes, *members.returning)
            if node.name not in state.lost and node.name in self.listed
        ]
        unusable = state.site.unusable(tried, self._renewed(tried))
        _refuse_wrong_login(leaving, tried, unusable)
        mute = unusable.keys()
        replaced, names = _replaced(previous, members), {n.name for n in leaving}
        others = (node for node in replaced if node.name not in names)
        self.vanished = (*members.vanished, *others)
        without_vm = {node.name for node in (*members.vanished, *replaced)}
        gone = {*(mute - well), *without_vm, *state.lost}
        self.silent = sorted(gone | mute)
        state.unusable = frozenset(self.silent)
        self.nodes = (*leaving, *self.vanished)
        present = [node for node in self.nodes if node.name in seen]
        self.dead = tuple(node for node in present if node.name in gone)
        self.alive = tuple(node for node in present if node.name not in gone)
        # The pods of a node whose kubelet is silent stay, although it was drained.
        self.undrained = any(node.name not in well for node in self.alive)
        self.staying = members.without(self.nodes)
        preconditions.see(state, [n for n in self.staying if n.name not in self.silent])
        for what, nodes in (
            ("leave the cluster", leaving),
            ("are dead and leave without a drain", self.dead),
            ("are in the inventory, and their VMs are gone", self.vanished),
        ):
            if nodes:
                LOG.info("These nodes %s: %s", what, names_of(nodes))
        for name, error in unusable.items():
            LOG.warning("Playbooks leave %s out: %s", name, error)

    def unroute(self) -> None:
        """Remove their routes from the load balancer."""
        state = self._state
        # A load balancer that is gone is rebuilt, and gets its routes then.
        if self.balancer_is_gone or not balancing.exists(state):
            return
        if self.nodes:
            balancing.status(state)
            self._note("without their routes")
            balancing.remove(state, self.nodes)
        if self.plane is not None:
            balancing.set_control_planes(state, self.staying)

    def cordon(self) -> None:
        """Cordon those that answer."""
        if self.alive:
            names = [node.name for node in self.alive]
            self._note(f"cordoned{self._unrouted()}")
            self._cordoned = self._state.cluster().cordon(names)

    def drain(self) -> None:
        """Drain those that answer.

        :raises DrainError: pods did not leave, and another node accepts one of them;
            the nodes are full members again.
        """
        if not self.alive:
            return
        names = [node.name for node in self.alive]
        try:
            self._state.cluster().drain(names, self._state.params.drain)
        except errors.K8sMgmtError as error:
            stranded = isinstance(error, errors.DrainError) and error.nowhere_to_go
            if not (stranded and self._tries_to_drain):
                self._take_back()
                raise
            LOG.warning(
                "The nodes leave, although pods are left that no other node accepts: "
                "%s",
                error,
            )
            self.undrained = True
        self._note(f"drained{self._unrouted()}")

    def _take_back(self) -> None:
        """Make the nodes full members again; none was removed yet."""
        try:
            self._state.cluster().uncordon(self._cordoned)
            balancing.add(self._state, self.alive)
            if self.plane is not None:
                balancing.set_control_planes(self._state, (*self.staying, *self.alive))
        except errors.K8sMgmtError as error:
            self._left = (
                f"The nodes {names_of(self.alive)} are still cordoned or without "
                f"their routes, for taking that back failed too: {error}"
            )
        else:
            self._left = (
                f"No node was removed: {names_of(self.alive)} can be scheduled again "
                "and have their routes. Pods that have left do not come back by "
                "themselves."
            )

    def run_remove(self) -> None:
        """Run kubespray's ``remove-node.yml`` for the workers among them."""
        state = self._state
        if state.params.changed_logins:
            nodes = state.previous()
            playbook_inputs.write_inputs(state, nodes, renewed=self._renewed(nodes))
        if self.dead:
            state.cluster().evict_dead([node.name for node in self.dead])
        leaving = [
            node.name
            for node in (*self.alive, *self.dead)
            if not node.is_control_plane and node.name in self.listed
        ]
        if leaving:
            playbook_inputs.put_leader_first(state)
        # One run for all of a kind: kubespray takes a list of nodes.
        for dead in (False, True):
            names = [name for name in leaving if (name in self.silent) is dead]
            if names:
                request = runs.remove(
                    names,
                    state.params.drain,
                    dead=dead,
                    undrained=self.undrained,
                    without=self.silent,
                )
                self.note_unfinished()
                playbook_inputs.run(state, request, len(names))

    def note_unfinished(self) -> None:
        """Note what stays behind if ``remove-node.yml`` fails."""
        self._note(f"drained{self._unrouted()}")
        if self.plane is not None:
            name = self.plane.node.name
            self._left += (
                f" If this heal is given up, heal {name} again; as long as it has a "
                f"Node object, `kubectl uncordon {name}` lets pods onto it meanwhile. "
                "It stays out of the load balancer until it is healed."
            )

    def _note(self, how: str) -> None:
        """Note how the nodes are if a step fails, and how to undo that."""
        # Without Node objects, they are what an earlier try has not finished.
        nodes = (*self.alive, *self.dead) or self.nodes
        self._left = f"Left as they are: {names_of(nodes)}, {how}."
        if without_planes(self.alive):
            self._left += (
                " If this operation is given up, `tacker-k8s-mgmt cluster check "
                f"{self._state.deps.vnf_id}` prints the commands that give workers "
                "back."
            )

    def _unrouted(self) -> str:
        is_balanced = balancing.exists(self._state)
        return " and out of the load balancer" if is_balanced else ""

    def delete_objects(self) -> None:
        """Delete their Node objects."""
        if present := (*self.alive, *self.dead):
            self._state.cluster().remove_nodes([node.name for node in present])

    def write_staying(self) -> None:
        """Write inventory and records without them."""
        renewed = self._renewed(self.staying)
        playbook_inputs.write_without(self._state, self.staying, self.nodes, renewed)
        self._left = ""

    def _renewed(self, nodes: Sequence[Node]) -> Collection[str]:
        """All names, if the request changes the login of workers that stay."""
        changed = "worker_node" in self._state.params.changed_logins
        return [n.name for n in nodes] if self._renews_logins and changed else ()


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
