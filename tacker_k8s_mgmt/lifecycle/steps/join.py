"""VMs become workers of a cluster that is there.

Specification, "Scale-out" steps 1 to 4: inventory, ``scale.yml``, then the routes in
the load balancer. ``scale.yml`` touches the new hosts only; the facts of all others,
which kubespray then takes from its cache, are gathered anew first (kubespray's
docs/operations/nodes.md, "Adding nodes").
"""

import abc
import logging
from collections.abc import Mapping, Sequence

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.operation import Operation
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies, names_of
from tacker_k8s_mgmt.lifecycle.steps.records import JOINED_FILE
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Machine, Node
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class Join(Operation, abc.ABC):
    """What scale-out and the heal of workers have in common.

    Whoever has a VM in the Heat stack and is no whole member of the cluster joins: the
    workers that this operation is about, and any that an earlier one left behind.
    """

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps)
        self._joining: tuple[Node, ...] = ()
        self._stale: tuple[Node, ...] = ()
        self._vanished: tuple[Node, ...] = ()
        self._unreachable: tuple[str, ...] = ()

    def join_steps(self) -> tuple[Step, ...]:
        """The steps after it is clear who joins."""
        return (
            Step("remove what VMs that are gone left behind", self._clear),
            Step("wait until the new VMs accept SSH logins", self._reach_new),
            Step("write inventory and variables", self._write_all),
            Step("gather the facts of all hosts", self._gather, probe=self._has_begun),
            Step(
                f"run {kubespray_releases.SCALE}",
                self._run_scale,
                probe=self._scale_done,
            ),
            Step("wait until the new workers are Ready", self._see_ready),
            Step("add the new workers to the load balancer", self._route),
        )

    @abc.abstractmethod
    def _is_target(self, node: Node) -> bool:
        """Whether this operation is about the node.

        A target that cannot be reached fails the operation, any other node that cannot
        is left out.
        """

    @abc.abstractmethod
    def _unlisted(self, names: str) -> errors.K8sMgmtError:
        """What is wrong with VMs of the control plane that no inventory has."""

    def _choose(self) -> None:
        found, _ = self._compare()
        if found.added:
            raise self._unlisted(names_of(found.added))
        # The Ready ones, too: a kubelet that reports says nothing of the SSH server,
        # and the facts of all hosts are gathered over SSH.
        asked = [
            node
            for node in found.nodes
            if node.name not in self._lost and not self._is_target(node)
        ]
        self._unreachable = (*self._site.unreachable(asked), *sorted(self._lost))
        before = {node.name for node in self._previous()}
        dead = frozenset(self._unreachable)
        self._joining = tuple(node for node in found.joining if node.name not in dead)
        self._nodes = tuple(
            node for node in found.nodes if node.name not in dead or node.name in before
        )
        self._vanished = found.vanished
        self._stale = (*found.vanished, *found.rebuilt)
        if self._joining:
            LOG.info("These workers join the cluster: %s", names_of(self._joining))
        if dead:
            LOG.warning(
                "These nodes do not accept SSH logins and are left out: %s",
                ", ".join(self._unreachable),
            )

    def _clear(self) -> None:
        """Node objects and routes whose VM is gone: nobody would take them away."""
        if not self._stale:
            return
        LOG.info("The VMs of these workers are gone: %s", names_of(self._stale))
        balancing = self._balancing()
        if balancing is not None:
            balancing.remove(self._stale)
        names = [node.name for node in self._stale]
        self._cluster().evict_dead(names)
        self._cluster().remove_nodes(names)
        self._forget_members(self._vanished)

    def _reach_new(self) -> None:
        nodes = self._newcomers()
        if nodes:
            machines = [_machine(node) for node in nodes]
            self._forget_new(machines, nodes)
            self._wait_reachable(machines)
            self._see_mtu(nodes)

    def _see_mtu(self, nodes: Sequence[Node]) -> None:
        """See that what pods send fits through the new VMs' interfaces.

        :raises ClusterError: naming those with a smaller MTU than the cluster has.
        """
        least = min(self._nic_mtus(), default=0)
        if not least:
            return
        mtus = {node.name: self._site.identity(node).nic_mtu for node in nodes}
        small = [f"{name} ({mtu})" for name, mtu in mtus.items() if 0 < mtu < least]
        if small:
            raise errors.ClusterError(
                detail="The network interfaces of these VMs have a smaller MTU than "
                f"those of the cluster had when it was made, {least} bytes: "
                f"{', '.join(small)}. Large packets of pods would be lost there.",
                hint="Put the VMs of all workers on networks of the same MTU.",
            )

    def _newcomers(self) -> tuple[Node, ...]:
        return self._joining

    def _write_all(self) -> None:
        self._write_inputs(self._nodes)

    def _has_begun(self) -> bool:
        """Whether facts are not needed: nobody joins, or an earlier try is that far."""
        if not self._joining:
            return True
        return self._site.playbooks.live(self._scale_request()) or self._scale_done()

    def _gather(self) -> None:
        listed = {node.name for node in self._nodes}
        args = kubespray_releases.limit_without(
            n for n in self._unreachable if n in listed
        )
        request = PlaybookRequest(
            kubespray_releases.FACTS, args=args, inputs=self._inputs
        )
        self._run(request, len(self._nodes))

    def _scale_request(self) -> PlaybookRequest:
        limit = ",".join(node.name for node in self._joining)
        return PlaybookRequest(
            kubespray_releases.SCALE, args=("--limit", limit), inputs=self._inputs
        )

    def _scale_done(self) -> bool:
        if not self._joining:
            return True
        # The run alone proves nothing: the node may have been removed since.
        return self._site.playbooks.done(self._scale_request()) and not (
            {node.name for node in self._joining} - self._seen().keys()
        )

    def _run_scale(self) -> None:
        self._run(self._scale_request(), len(self._joining))

    def _see_ready(self) -> None:
        if not self._joining:
            return
        self._expect_balancer()
        self._verify_identity(self._wait_ready(self._joining), self._joining)

    def _verify_identity(
        self, seen: Mapping[str, ports.ClusterNode], nodes: Sequence[Node]
    ) -> None:
        """See that each Node object is of this VM and not of a former one.

        :raises ClusterError: naming the nodes that are of another machine.
        """
        others = []
        for node in nodes:
            own, told = self._site.identity(node), seen[node.name]
            if (own.machine_id, own.boot_id) != (told.machine_id, told.boot_id):
                others.append(node.name)
        if others:
            raise errors.ClusterError(
                detail=f"The Node objects {', '.join(others)} are Ready, but another "
                "machine reports for them than the VM of that address.",
                hint="Look which host runs a kubelet with that name, stop it, and "
                "delete the Node object.",
            )

    def _route(self) -> None:
        balancing = self._balancing()
        if balancing is not None and self._joining:
            balancing.status()
            balancing.add(self._joining)
        kept = {node.server_id for node in self._nodes} & self._members
        self._write_json(
            JOINED_FILE, sorted(kept | {node.server_id for node in self._joining})
        )


def _machine(node: Node) -> Machine:
    return Machine(node.role, node.server_id, node.ssh_address, node.address)
