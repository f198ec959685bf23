# SPDX-License-Identifier: Apache-2.0
"""Heal of single VNFCs, before and after Heat rebuilds their VMs.

Specification, "Heal Worker nodes in Kubernetes cluster": ``heal_start`` is as scale-in
and ``heal_end`` as scale-out, for the named workers. The load balancer's VM can be
healed, too, and one of several control planes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.kubespray.inventory import FILE_NAME
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, names_of, of_role
from tacker_k8s_mgmt.model.plan import LOAD_BALANCER, REBUILT, NodeChange
from tacker_k8s_mgmt.model.quorum import Refusal
from tacker_k8s_mgmt.operations import (
    balancing,
    playbook_inputs,
    readiness,
    registration,
)
from tacker_k8s_mgmt.operations.compare import (
    compare,
    rebuilt_too,
    refuse_rebuilt,
    refuse_unfinished,
)
from tacker_k8s_mgmt.operations.control_plane import (
    ControlPlaneGuard,
    ControlPlaneJoin,
    ControlPlaneLeave,
)
from tacker_k8s_mgmt.operations.join import Join
from tacker_k8s_mgmt.operations.leave import Leave
from tacker_k8s_mgmt.operations.readiness import readiness_problem
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Step
from tacker_k8s_mgmt.topology.membership import Membership
from tacker_k8s_mgmt.topology.scaling_groups import UNHEALTHY

LOG = logging.getLogger(__name__)


class HealStart(Operation):
    """The steps of ``heal_start`` for single VNFCs.

    :param servers: ids of the VNFCs by those of the servers to rebuild; read late.
    """

    def __init__(self, deps: OperationContext, *, servers: Mapping[str, str]) -> None:
        self._state = ClusterState(deps)
        self._servers = servers
        self._guard = ControlPlaneGuard(self._state, servers)
        self._leave = Leave(self._state, tries_to_drain=True)
        self._plane = ControlPlaneLeave(self._state, self._leave)
        self._not_ready: list[str] = []
        self._members: Membership
        #: Whether the load balancer's VM is rebuilt.
        self._balancer = False

    def steps(self) -> tuple[Step, ...]:
        leave, plane = self._leave, self._plane
        return (
            Step(
                "compare",
                "compare Heat, inventory and cluster",
                self._choose,
                reads=True,
            ),
            *leave.emptying(),
            Step(
                "record-control-plane",
                "record which control plane leaves",
                plane.note,
                probe=plane.none_leaves,
                rehearsed=True,
            ),
            Step(
                "reorder-control-planes",
                "move another control plane to the front",
                plane.put_behind,
                probe=plane.is_behind,
            ),
            Step(
                "remove-nodes",
                f"run {runs.REMOVE}",
                self._run_remove,
                effects=self._changes,
            ),
            Step(
                "verify-etcd",
                "verify that etcd has removed the member",
                plane.leave_etcd,
                probe=plane.none_leaves,
                verify=plane.verify_removed,
            ),
            Step("delete-nodes", "delete their Node objects", leave.delete_objects),
            Step(
                "shrink-inventory",
                "remove them from the inventory",
                self._write_staying,
                effects=self._joining,
            ),
        )

    def left(self) -> str:
        return self._leave.left()

    def _changes(self) -> Iterator[NodeChange]:
        """What Heat rebuilds, for a plan."""
        yield from self._leave.departures(REBUILT)
        known = {node.server_id for node in self._leave.leaving.nodes}
        for vm in self._state.machines.unfinished:
            unknown = vm.server_id in self._servers and vm.server_id not in known
            if unknown and vm.role is not Role.LOAD_BALANCER:
                name = f"VNFC {self._servers[vm.server_id]}"
                yield NodeChange(name, REBUILT, f"it has no whole VM: {vm.state}")
        yield from rebuilt_too(self._state, self._members, self._servers)
        if self._balancer:
            why = "without it the nodes are not Ready meanwhile"
            yield NodeChange(LOAD_BALANCER, REBUILT, why)

    def _joining(self) -> Iterator[NodeChange]:
        """The workers that ``heal_end`` joins beside those that are rebuilt."""
        leaving = self._leave.leaving
        rebuilt = {n.name for n in leaving.nodes if n not in leaving.vm_gone}
        join = Join(self._state)
        join.choose(self._members, lambda node: node.name in rebuilt)
        yield from (one for one in join.arrivals() if one.node not in rebuilt)

    def _choose(self) -> None:
        state = self._state
        # The API is not reached through a server that is rebuilt.
        state.unreachable_control_planes |= self._servers.keys()
        refuse_unfinished(state)
        self._guard.require_quorum()
        members, seen = compare(state, self._expect_balancer, self._is_rebuilt)
        self._members = members
        _refuse_unlisted(state, members)
        _refuse_unhealthy_stacks(state, self._servers)
        nodes = (*members.nodes, *members.returning)
        leaving = tuple(node for node in nodes if node.server_id in self._servers)
        staying = [node for node in nodes if node not in leaving]
        refuse_rebuilt(state, staying, seen)
        planes = of_role(leaving, Role.CONTROL_PLANE)
        self._see_one_version(planes)
        plane = self._guard.check_removal(planes, members, seen)
        known = {node.server_id for node in leaving}
        without_balancer = False
        if balancer := _rebuilt_balancer(state, self._servers):
            known.add(balancer.server_id)
            without_balancer = not self._services_noted()
        elif vm := state.machines.incomplete_balancer():
            known.add(vm.server_id)
            without_balancer = True
        elif _incomplete_balancer(state):
            without_balancer = balancing.report(state).api_port is None
        self._balancer = bool(balancer or state.machines.incomplete_balancer())
        if others := self._servers.keys() - known:
            LOG.info("VNFCs that are none of the cluster's: %s", ", ".join(others))
        names = {node.name for node in leaving}
        if not without_balancer:
            # Without a load balancer no node would be Ready.
            self._not_ready = sorted(
                {n for n in seen if readiness_problem(seen[n])} - names
            )
        self._leave.classify(
            leaving, members, seen, plane=plane, without_balancer=without_balancer
        )

    def _is_rebuilt(self, server_id: str) -> bool:
        # Of a VM that Heat has not begun to build, Tacker has a former server's id.
        return server_id in self._servers or not server_id

    def _expect_balancer(self) -> None:
        if not _rebuilt_balancer(self._state, self._servers):
            balancing.expect(self._state)

    def _see_one_version(self, planes: Sequence[Node]) -> None:
        """Check, for control planes, that no upgrade has stopped between them."""
        record = self._state.records.upgrade()
        if planes and record.is_among_planes:
            self._guard.refuse(
                planes,
                Refusal(
                    f"an upgrade to Kubernetes {record.aim} has stopped between the "
                    "control planes, and kubespray would bring the former version back",
                    "Make the VM answer again and continue with the upgrade, or heal "
                    "without vnfcInstanceId to rebuild the whole cluster.",
                ),
            )

    def _services_noted(self) -> bool:
        """Record what the load balancer exposes.

        :returns: whether it has its routes, and answers.
        """
        try:
            seen = balancing.status(self._state)
            for work in self._state.works:
                work.balancer_leaves()
            # An earlier try of this heal may have recorded them, and not completed it.
            return balancing.is_complete(self._state, seen)
        except errors.K8sMgmtError as error:
            LOG.warning(
                "The load balancer cannot say which services it exposes; those that "
                "were seen last are exposed again: %s",
                error,
            )
            return False

    def _run_remove(self) -> None:
        leaving = self._leave.leaving
        if not leaving.without_balancer:
            self._leave.run_remove()
            self._plane.run_remove()
            return
        # kubespray's kubectl reaches the API through the load balancer only.
        LOG.warning(
            "%s is not run, for the load balancer does not answer; the VMs of these "
            "nodes are rebuilt as they are: %s",
            runs.REMOVE,
            names_of(leaving.present),
        )
        self._state.cluster().force_evict([node.name for node in leaving.dead])

    def _write_staying(self) -> None:
        # Recorded before they leave the inventory: heal_end expects them to come back.
        leaving = self._leave.leaving
        state, healing = self._state, self._state.healing
        recorded = {node.name: node.address for node in state.inventory_nodes()}
        # One whose port has lost its address gets the name of another.
        stay = [
            node
            for node in leaving.nodes
            if node not in leaving.vm_gone
            and recorded.get(node.name, node.address) == node.address
        ]
        balancer = _rebuilt_balancer(state, self._servers)
        lost = balancer or state.machines.incomplete_balancer()
        if lost and not healing.balancer:
            # Any other id than that of the new server will do.
            healing = replace(healing, balancer=lost.server_id or min(self._servers))
        playbook_inputs.write_healing(
            state,
            replace(
                healing,
                rebuilt=tuple(node.name for node in stay),
                addresses=tuple(node.address for node in (*stay, *leaving.vm_gone)),
                not_ready=tuple(self._not_ready),
            ),
        )
        self._leave.write_staying()


class HealEnd(Operation):
    """The steps of ``heal_end`` for single VNFCs.

    :param servers: ids of the VNFCs by those of the rebuilt servers; read late.
    """

    def __init__(self, deps: OperationContext, *, servers: Mapping[str, str]) -> None:
        self._state = ClusterState(deps)
        self._servers = servers
        self._join = Join(self._state)
        self._plane = ControlPlaneJoin(self._state, self._join)

    def steps(self) -> tuple[Step, ...]:
        join, plane = self._join, self._plane
        return (
            Step(
                "compare",
                "compare Heat, inventory and cluster",
                self._choose,
                verify=self._verify_rebuilt,
            ),
            Step(
                "install-load-balancer",
                "reinstall the load balancer",
                self._install,
                probe=self._is_healthy,
            ),
            Step(
                "wait-for-api",
                "wait for the nodes to be Ready behind it",
                self._see_back,
                probe=self._is_healthy,
            ),
            *self._state.balancer_replaced(unless=self._is_healthy),
            *join.prepare(plane.has_begun),
            Step(
                "join-control-planes",
                f"run {runs.JOIN_CONTROL_PLANES} for the control planes",
                plane.run,
                probe=plane.has_run,
            ),
            Step(
                "verify-control-plane",
                "verify the control plane in cluster and etcd",
                plane.verify_healthy,
                probe=plane.none_joins,
            ),
            *plane.joined(),
            Step(
                "add-control-plane-route",
                "add routes to the control plane",
                plane.balance,
                probe=plane.none_joins,
            ),
            *self._helm_steps(),
            *join.steps(),
            Step("finish", "finish the heal", self._end),
        )

    def left(self) -> str:
        if not (newcomers := self._join.newcomers):
            return ""
        next_one = "heal" if self._join.plane else "scale-out or heal"
        return (
            f"{names_of(newcomers)} stay in the inventory; if this heal is abandoned, "
            f"the next {next_one} joins them."
        )

    def _choose(self) -> None:
        members, _ = compare(self._state, leaves=lambda server: server in self._servers)
        _refuse_unlisted(self._state, members)
        self._join.choose(members, self._is_target)
        self._plane.choose(self._is_target)

    def _is_target(self, node: Node) -> bool:
        return node.server_id in self._servers

    def _helm_steps(self) -> tuple[Step, ...]:
        """For a control plane; only where Helm is asked for."""
        state = self._state
        prepare = Step(
            "set-up-helm",
            "set up Helm on the control plane",
            lambda: registration.prepare(state),
            probe=lambda: not any(map(self._is_target, state.control_planes())),
        )
        return (
            (prepare, *registration.steps(state)) if state.params.cluster.helm else ()
        )

    def _verify_rebuilt(self) -> None:
        """Check that Heat has rebuilt the VMs: Tacker only logs it if it has not."""
        state = self._state
        expected, out = {*state.healing.rebuilt}, state.healing.plane
        if out is not None and self._is_target(out):
            # An earlier heal has taken it out, so heal_start did not record it.
            expected.add(out.name)
        missing = sorted(expected - {node.name for node in state.nodes})
        missing += sorted(
            f"{vm.role.value} of VNFC {self._servers[vm.server_id]} ({vm.state})"
            for vm in state.machines.unfinished
            if vm.server_id in self._servers
        )
        if missing:
            stack = state.machines.stack_id
            raise errors.ClusterError(
                detail="Heat has not rebuilt the VMs of these nodes: "
                f"{', '.join(missing)}.",
                hint=f"Look why with `openstack stack failures list --long {stack}`, "
                "fix it, and have Heat build them with `openstack stack update "
                f"--existing --wait {stack}` (Tacker heals nothing in a stack that has "
                "failed).",
            )

    def _end(self) -> None:
        playbook_inputs.write_healing(self._state, self._state.healing.ended())

    def _is_healthy(self) -> bool:
        return self._new_balancer() is None

    def _new_balancer(self) -> Machine | None:
        """The load balancer's VM, if this heal or one that was abandoned rebuilt it."""
        rebuilt = _rebuilt_balancer(self._state, self._servers)
        return rebuilt or _incomplete_balancer(self._state)

    def _install(self) -> None:
        state = self._state
        if (machine := self._new_balancer()) is None:
            return
        playbook_inputs.forget_new(state, [machine], ())
        playbook_inputs.wait_reachable(state, [machine])
        joining = self._join.newcomers
        balancing.install(state, [n for n in state.nodes if n not in joining])
        balancing.restore_services(state)
        balancing.verify(state)
        playbook_inputs.write_healing(state, replace(state.healing, balancer=""))

    def _see_back(self) -> None:
        """Wait until the nodes, which reach the API through it, are Ready."""
        out = {
            *(node.name for node in self._join.newcomers),
            *self._join.unreachable,
            *self._state.healing.not_ready,
        }
        nodes = [node for node in self._state.nodes if node.name not in out]
        readiness.wait_ready(self._state, nodes)


def _rebuilt_balancer(
    state: ClusterState, servers: Mapping[str, str]
) -> Machine | None:
    """The load balancer's VM, if it is one of the rebuilt servers."""
    machine = state.machines.load_balancer
    return machine if machine and machine.server_id in servers else None


def _incomplete_balancer(state: ClusterState) -> Machine | None:
    """The load balancer's VM, if the heal that rebuilt it has not completed it."""
    machine = state.machines.load_balancer
    return machine if machine and not balancing.heal_is_finished(state) else None


def _refuse_unlisted(state: ClusterState, members: Membership) -> None:
    """Check that the inventory has every VM of the control plane."""
    if members.added:
        raise errors.ClusterError(
            detail="These VMs of the control plane are in Heat and not in the "
            f"inventory: {names_of(members.added)}. kubespray would not take them for "
            "members of the cluster.",
            hint=f"If they are members, restore {FILE_NAME} in "
            f"{state.site.workdir.path}. If a scaling has created them, have Heat "
            "delete them.",
        )


def _refuse_unhealthy_stacks(state: ClusterState, servers: Mapping[str, str]) -> None:
    """Check that Heat keeps the nested stacks of the servers that it is to rebuild.

    The VM in another stack has another port, and so another address and name. Tacker
    looks for the VNFC in the former stack: its v1 API always, v2 when it retries.
    """
    machines = state.machines
    places = {server: machines.places.get(server, frozenset()) for server in servers}
    around = frozenset[str]().union(*places.values())
    found = [one for one in machines.unhealthy_stacks if one.nested_stack_id in around]
    if found:
        vnfcs = [
            servers[server]
            for server in servers
            if any(one.nested_stack_id in places[server] for one in found)
        ]
        reset = "openstack stack resource mark unhealthy --reset"
        raise errors.UnsupportedOperation(
            detail=f"Heat would build all of {', '.join(one.name for one in found)} "
            f"again, which is {UNHEALTHY} there, not only the VM of the VNFC "
            f"{', '.join(vnfcs)}. Its ports would be others, and Tacker would not find "
            "it. No VM and no node was touched.",
            hint="Take the marks away, then heal: Tacker marks the VM itself. "
            + "; ".join(f"`{reset} {one.stack_id} {one.name}`" for one in found)
            + ".",
        )
