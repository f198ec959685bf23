"""Workers leave the cluster, so that their VMs can be deleted or built anew.

Specification, "Scale-in" steps 1 to 4: routes out of the load balancer first, then the
drain, then ``remove-node.yml``. The inventory changes last, since kubespray needs the
leaving node in it. A drain that fails stops everything before a node is deleted.
"""

import logging
from collections.abc import Collection, Mapping

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.operation import Operation
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies, names_of
from tacker_k8s_mgmt.lifecycle.steps.load_balancer import Balancing
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.topology.membership import Membership

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class Leave(Operation):
    """What scale-in and the heal of workers have in common.

    A subclass decides who leaves, and calls :meth:`_sort` with them.
    """

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps)
        #: Nodes that leave and are in the cluster, alive or dead.
        self._alive: tuple[Node, ...] = ()
        self._dead: tuple[Node, ...] = ()
        #: Everything that goes out of the inventory.
        self._leaving: tuple[Node, ...] = ()
        self._vanished: tuple[Node, ...] = ()
        self._staying: tuple[Node, ...] = ()
        self._in_inventory: frozenset[str] = frozenset()
        #: Names in the inventory of nodes that do not answer: of those that leave the
        #: dead ones, and any that stay.
        self._silent: list[str] = []
        self._cordoned: tuple[str, ...] = ()
        self._undrained = False
        self._told: list[str] = []

    def leave_steps(self) -> tuple[Step, ...]:
        """The steps after it is clear who leaves."""
        return (
            Step("take the leaving nodes out of the load balancer", self._unroute),
            Step("cordon the leaving nodes", self._cordon),
            Step("drain the leaving nodes", self._drain),
            Step(f"run {kubespray_releases.REMOVE_NODE}", self._run_remove),
            Step("delete what is left of them in the cluster", self._delete_objects),
            Step("write the inventory without them", self._write_staying),
        )

    def left(self) -> str:
        """What stays behind when a step fails."""
        return " ".join(self._told)

    def _meanwhile(self) -> None:
        self._expect_balancer()

    def _sort(
        self,
        leaving: tuple[Node, ...],
        found: Membership,
        seen: Mapping[str, ports.ClusterNode],
        doubted: Collection[str] = (),
    ) -> None:
        """Tell the living from the dead; VMs that vanished leave with them.

        Dead is a node that is not Ready and does not accept an SSH login: only the
        two together mean that nobody can stop its pods in an orderly way.

        :param doubted: names of nodes that are looked at although they are Ready.
        """
        self._in_inventory = frozenset(node.name for node in self._previous())
        well = {name for name in seen if seen[name].ready} - set(doubted)
        # The Ready ones, too: playbooks reach all that stay over SSH.
        asked = [
            node
            for node in (*found.nodes, *found.returning)
            if node.name not in self._lost and node.name in self._in_inventory
        ]
        mute = set(self._site.unreachable(asked))
        gone = {
            *(mute - well),
            *(node.name for node in found.vanished),
            *self._lost,
        }
        self._silent = sorted(gone | (mute - {node.name for node in leaving}))
        self._vanished = found.vanished
        self._leaving = (*leaving, *found.vanished)
        present = [node for node in self._leaving if node.name in seen]
        self._dead = tuple(node for node in present if node.name in gone)
        self._alive = tuple(node for node in present if node.name not in gone)
        # Pods on a node whose kubelet is silent stay, though it was drained.
        self._undrained = any(node.name not in well for node in self._alive)
        self._staying = found.without(self._leaving)
        for what, nodes in (
            ("leave the cluster", leaving),
            ("are dead and leave without a drain", self._dead),
            ("are in the inventory, and their VMs are gone", found.vanished),
        ):
            if nodes:
                LOG.info("These nodes %s: %s", what, names_of(nodes))

    def _unroute(self) -> None:
        balancing = self._balancing()
        if balancing is not None and self._leaving:
            balancing.status()
            balancing.remove(self._leaving)

    def _cordon(self) -> None:
        if self._alive:
            names = [node.name for node in self._alive]
            self._cordoned = self._cluster().cordon(names)

    def _drain(self) -> None:
        if not self._alive:
            return
        names = [node.name for node in self._alive]
        try:
            self._cluster().drain(names, self._params.drain)
        except errors.K8sMgmtError as error:
            if self._may_go_on(error):
                LOG.warning("The nodes leave although not every pod could: %s", error)
                self._undrained = True
                return
            self._take_back()
            raise

    def _may_go_on(self, error: errors.K8sMgmtError) -> bool:
        """Whether the operation goes on after a drain that failed."""
        return False

    def _take_back(self) -> None:
        """No node was removed yet: make them full members again."""
        try:
            self._cluster().uncordon(self._cordoned)
            balancing = self._balancing()
            if balancing is not None:
                self._route_back(balancing)
        except errors.K8sMgmtError as error:
            self._told.append(
                f"The nodes {names_of(self._alive)} are still cordoned or without "
                f"their routes, for taking that back failed too: {error}"
            )
            return
        self._told.append(
            f"No node was removed: {names_of(self._alive)} can be scheduled again and "
            "have their routes. Pods that have left do not come back by themselves."
        )

    def _route_back(self, balancing: Balancing) -> None:
        balancing.add(self._alive)

    def _run_remove(self) -> None:
        if self._params.changed_logins:
            self._write_inputs(self._previous())
        if self._dead:
            self._cluster().evict_dead([node.name for node in self._dead])
        # One run for all of a kind: kubespray takes a list of nodes.
        for nodes, variables, args in (
            (
                self._alive,
                kubespray_releases.removal_variables(undrained=self._undrained),
                kubespray_releases.limit_without(self._silent),
            ),
            (self._dead, kubespray_releases.removal_variables(dead=True), ()),
        ):
            names = [
                node.name
                for node in nodes
                if node.role is Role.WORKER and node.name in self._in_inventory
            ]
            if names:
                request = PlaybookRequest(
                    kubespray_releases.REMOVE_NODE,
                    extra_vars={"node": ",".join(names), **variables},
                    args=args,
                )
                self._told = [self._unfinished()]
                self._run(request, len(names))

    def _unfinished(self) -> str:
        # Without Node objects there is still what an earlier try has not ended.
        nodes = (*self._alive, *self._dead) or self._leaving
        return (
            f"Left as they are: {names_of(nodes)}, out of the load balancer and "
            "drained."
        )

    def _delete_objects(self) -> None:
        present = (*self._alive, *self._dead)
        if present:
            self._cluster().remove_nodes([node.name for node in present])

    def _write_staying(self) -> None:
        self._write_inputs(self._staying)
        self._site.forget(
            hosts=[node.ssh_address for node in self._leaving],
            facts=[node.name for node in self._leaving],
        )
        self._site.save_host_keys()
        self._forget_members(self._leaving)
        self._told = []
