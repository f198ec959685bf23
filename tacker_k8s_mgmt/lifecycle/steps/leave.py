"""Workers leave the cluster, so that their VMs can be deleted or built anew.

Specification, "Scale-in" steps 1 to 4: routes out of the load balancer first, then the
drain, then ``remove-node.yml``. The inventory changes last, since kubespray needs the
leaving node in it. A drain that fails stops everything before a node is deleted.
"""

import logging
from collections.abc import Collection, Sequence

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.lifecycle.steps import inventory, playbooks
from tacker_k8s_mgmt.lifecycle.steps.control_plane_guard import LeavingPlane
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Node, Role, names_of
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.topology.membership import Membership

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class Leave:
    """The nodes that leave, and the steps of it that scale-in and heal share.

    :param renews_logins: logins of workers that the request changes are those of VMs
        that stay.
    :ivar plane: the control plane among them, for heal.
    :ivar nowhere_to_go: no other worker could take their pods. The specification asks
        to *try* evacuating; waiting would help nobody.
    :ivar balancer_is_gone: the load balancer, by which kubespray reaches the API, does
        not answer.
    :ivar alive: nodes that leave and are in the cluster and answer.
    :ivar dead: those that are in the cluster and do not.
    :ivar nodes: everything that goes out of the inventory.
    :ivar vanished: of these, the nodes whose VM is gone already.
    :ivar listed: names in the inventory.
    :ivar silent: of these, the names of nodes that do not answer: of those that leave
        the dead ones, and any that stay.
    :ivar undrained: some pods could not leave.
    """

    def __init__(self, state: ClusterState, *, renews_logins: bool = False) -> None:
        self._state = state
        self._renews_logins = renews_logins
        self.plane: LeavingPlane | None = None
        self.nowhere_to_go = False
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
        self._told: list[str] = []

    def left(self) -> str:
        """What stays behind when a step fails."""
        return " ".join(self._told)

    def sort(
        self, leaving: tuple[Node, ...], found: Membership, seen: NodeObjects
    ) -> None:
        """Tell the living from the dead; VMs that vanished leave with them.

        Dead is a node that is not Ready and does not accept an SSH login: only the
        two together mean that nobody can stop its pods in an orderly way.
        """
        state = self._state
        self.listed = frozenset(node.name for node in state.previous())
        well = {name for name in seen if seen[name].ready}
        if self.plane and not self.plane.is_well:
            # Its Node object may tell of a time that is over.
            well.discard(self.plane.node.name)
        # The Ready ones, too: playbooks reach all that stay over SSH.
        asked = [
            node
            for node in (*found.nodes, *found.returning)
            if node.name not in state.lost and node.name in self.listed
        ]
        mute = set(state.site.unreachable(asked))
        gone = {*(mute - well), *(node.name for node in found.vanished), *state.lost}
        self.silent = sorted(gone | (mute - {node.name for node in leaving}))
        self.vanished = found.vanished
        self.nodes = (*leaving, *found.vanished)
        present = [node for node in self.nodes if node.name in seen]
        self.dead = tuple(node for node in present if node.name in gone)
        self.alive = tuple(node for node in present if node.name not in gone)
        # Pods on a node whose kubelet is silent stay, though it was drained.
        self.undrained = any(node.name not in well for node in self.alive)
        self.staying = found.without(self.nodes)
        for what, nodes in (
            ("leave the cluster", leaving),
            ("are dead and leave without a drain", self.dead),
            ("are in the inventory, and their VMs are gone", found.vanished),
        ):
            if nodes:
                LOG.info("These nodes %s: %s", what, names_of(nodes))

    def unroute(self) -> None:
        """Take their routes out of the load balancer."""
        # One that is gone is built anew too, and gets its routes then.
        balancing = None if self.balancer_is_gone else self._state.balancing()
        if balancing is not None and self.nodes:
            balancing.status()
            balancing.remove(self.nodes)
        if balancing is not None and self.plane is not None:
            balancing.front(self.staying)

    def cordon(self) -> None:
        """Cordon those that answer."""
        if self.alive:
            names = [node.name for node in self.alive]
            self._cordoned = self._state.cluster().cordon(names)

    def drain(self) -> None:
        """Drain those that answer.

        :raises DrainError: pods did not leave, and could have; all are members again.
        """
        if not self.alive:
            return
        names = [node.name for node in self.alive]
        try:
            self._state.cluster().drain(names, self._state.params.drain)
        except errors.K8sMgmtError as error:
            if not (self.nowhere_to_go and isinstance(error, errors.DrainError)):
                self._take_back()
                raise
            LOG.warning("The nodes leave although not every pod could: %s", error)
            self.undrained = True

    def _take_back(self) -> None:
        """No node was removed yet: make them full members again."""
        try:
            self._state.cluster().uncordon(self._cordoned)
            balancing = self._state.balancing()
            if balancing is not None:
                balancing.add(self.alive)
            if balancing is not None and self.plane is not None:
                balancing.front((*self.staying, *self.alive))
        except errors.K8sMgmtError as error:
            self._told.append(
                f"The nodes {names_of(self.alive)} are still cordoned or without "
                f"their routes, for taking that back failed too: {error}"
            )
            return
        self._told.append(
            f"No node was removed: {names_of(self.alive)} can be scheduled again and "
            "have their routes. Pods that have left do not come back by themselves."
        )

    def run_remove(self) -> None:
        """Run kubespray's ``remove-node.yml`` for the workers among them."""
        state = self._state
        if state.params.changed_logins:
            nodes = state.previous()
            inventory.write_inputs(state, nodes, renewed=self._renewed(nodes))
        if self.dead:
            state.cluster().evict_dead([node.name for node in self.dead])
        # One run for all of a kind: kubespray takes a list of nodes.
        for nodes, variables, args in (
            (
                self.alive,
                kubespray_releases.removal_variables(undrained=self.undrained),
                kubespray_releases.limit_without(self.silent),
            ),
            (self.dead, kubespray_releases.removal_variables(dead=True), ()),
        ):
            names = [
                node.name
                for node in nodes
                if node.role is Role.WORKER and node.name in self.listed
            ]
            if names:
                request = PlaybookRequest(
                    kubespray_releases.REMOVE_NODE,
                    extra_vars={"node": ",".join(names), **variables},
                    args=args,
                )
                self.note_unfinished()
                playbooks.run(state, request, len(names))

    def note_unfinished(self) -> None:
        """Note what stays behind when ``remove-node.yml`` does not end well."""
        # Without Node objects there is still what an earlier try has not ended.
        nodes = (*self.alive, *self.dead) or self.nodes
        self._told = [
            f"Left as they are: {names_of(nodes)}, out of the load balancer and "
            "drained."
        ]
        if self.plane is not None:
            name = self.plane.node.name
            self._told.append(
                f"If this heal is given up, heal {name} again; as long as it has a "
                f"Node object, `kubectl uncordon {name}` lets pods onto it meanwhile. "
                "It stays out of the load balancer until it is healed."
            )

    def delete_objects(self) -> None:
        """Delete what is left of them in the cluster."""
        present = (*self.alive, *self.dead)
        if present:
            self._state.cluster().remove_nodes([node.name for node in present])

    def write_staying(self) -> None:
        """Write inventory and records without them."""
        renewed = self._renewed(self.staying)
        inventory.write_without(self._state, self.staying, self.nodes, renewed)
        self._told = []

    def _renewed(self, nodes: Sequence[Node]) -> Collection[str]:
        """All, if the request changes the login of workers that stay as they are."""
        changed = "worker_node" in self._state.params.changed_logins
        return [n.name for n in nodes] if self._renews_logins and changed else ()
