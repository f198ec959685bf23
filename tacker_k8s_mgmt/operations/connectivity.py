# SPDX-License-Identifier: Apache-2.0
"""Change of external connectivity: the VMs stay, and their addresses change.

Between the two hooks Tacker updates the Heat stack (``change_ext_conn_vnf`` of
``tacker/vnfm/infra_drivers/openstack/openstack.py``): a port gets another fixed
address, or is replaced by one on another network, and the server's interface with it.
The servers stay, so addresses are compared by server. The first hook only checks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs, variables
from tacker_k8s_mgmt.model.nodes import (
    Machine,
    Node,
    Role,
    names_of,
    of_role,
    same_server,
    without_planes,
)
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.operations import (
    balancing,
    compare,
    playbook_inputs,
    preconditions,
    readiness,
    registration,
)
from tacker_k8s_mgmt.operations.compare import see_none_rebuilt, settle
from tacker_k8s_mgmt.operations.records import read_or_none
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Step
from tacker_k8s_mgmt.topology import connection_points, membership
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import as_named

LOG = logging.getLogger(__name__)

_BACK = (
    "Send a request that gives the address back; or heal the whole VNF, which builds "
    "the cluster again."
)


class ConnectivityEnd(Operation):
    """The steps of ``change_external_connectivity_end``.

    :param points: the connection points of the request.
    """

    def __init__(
        self, deps: OperationContext, *, points: Sequence[Attachment] = ()
    ) -> None:
        self._state = ClusterState(deps)
        self._points = points
        self._moved: tuple[Node, ...] = ()
        self._gone: tuple[Node, ...] = ()
        #: Names of the nodes that do not answer and are left as they are.
        self._out: frozenset[str] = frozenset()
        #: The load balancer's VM, if it is a new one.
        self._new_balancer: Machine | None = None

    def steps(self) -> tuple[Step, ...]:
        state = self._state
        install = Step(
            "install-load-balancer",
            "install the load balancer",
            self._install_balancer,
            verify=lambda: balancing.verify(state),
        )
        return (
            Step(
                "verify-ports",
                "verify that Heat has changed the ports",
                self._see_changed,
            ),
            Step("compare", "compare Heat and inventory", self._find),
            Step(
                "move-host-keys",
                "move the SSH host keys",
                lambda: playbook_inputs.move_host_keys(state),
            ),
            Step("wait-for-logins", "wait for the VMs at their addresses", self._reach),
            Step(
                "write-inventory",
                "write inventory and variables",
                lambda: playbook_inputs.write_inputs(state, state.nodes),
            ),
            *((install,) if state.params.load_balancer else ()),
            Step(
                "gather-facts",
                "gather the facts of all hosts",
                lambda: playbook_inputs.gather_facts(state, without=sorted(self._out)),
                probe=self._has_begun,
            ),
            Step(
                "renew-certificate",
                f"renew the API server's certificate with {runs.RENEW_CERTIFICATES}",
                lambda: playbook_inputs.run(
                    state, self._request(), len(state.control_planes())
                ),
                probe=self._is_certified,
                verify=self._see_certified,
            ),
            Step("wait-for-nodes", "wait for the nodes to be Ready", self._wait_ready),
            *(state.balancer_replaced() if state.params.load_balancer else ()),
            Step(
                "register-vim",
                "register the cluster at its address",
                self._register_vim,
                probe=self._is_registered,
            ),
            *registration.steps(state),
            Step("report-rebuilt-workers", "report rebuilt workers", self._see_same),
        )

    # The addresses

    def _see_changed(self) -> None:
        """Check that Heat has met the request: Tacker may continue when it has not."""
        if not self._points:
            return
        unmet = connection_points.unmet(self._points, self._state.site.attachments())
        if unmet:
            raise errors.UnsupportedOperation(
                detail="In Heat these ports are not as the request wants them: "
                f"{', '.join(sorted(unmet))}.",
                hint="Why, the conductor's log says (`Error during update`), or "
                "`openstack stack failures list --long STACK`. Correct the request.",
            )

    def _find(self) -> None:
        state = self._state
        previous = state.require_inventory()
        state.site.lock()
        state.machines = state.site.machines()
        compare.inventory(state)
        compare.machines(state, previous)
        state.healing = state.records.healing()
        state.records.upgrade()
        state.records.services()
        state.records.exposures()
        settle(state, previous)
        balancing.require(state)
        self._refuse_inner(previous)
        vms = {vm.server_id: vm for vm in state.machines.vms}
        gone = [n for n in previous if n.server_id not in state.machines.places]
        if planes := of_role(gone, Role.CONTROL_PLANE):
            raise errors.UnsupportedOperation(
                detail="The VMs of these control planes are gone or were rebuilt: "
                f"{names_of(planes)}.",
                hint="Heal the whole VNF.",
            )
        self._gone = tuple(gone)
        state.nodes = tuple(
            replace(node, ssh_address=vms[node.server_id].ssh_address)
            if node.server_id in vms
            else node
            for node in previous
        )
        former = {node.name: node.ssh_address for node in previous}
        self._moved = tuple(
            node for node in state.nodes if node.ssh_address != former[node.name]
        )
        for node in self._moved:
            LOG.info("%s: %s -> %s", node.name, former[node.name], node.ssh_address)

    def _refuse_inner(self, previous: Sequence[Node]) -> None:
        """Check that the addresses inside the cluster are as before."""
        state = self._state
        moved = membership.moved(state.machines, previous, state.balancer).values()
        if moved:
            raise errors.UnsupportedOperation(
                detail="Addresses inside the cluster have changed, which cannot while "
                f"it runs: {', '.join(moved)}. So far only Heat has changed anything.",
                hint=_BACK,
            )

    def _reach(self) -> None:
        """Wait for load balancer, control planes and other nodes at a new address."""
        state = self._state
        balancer = state.machines.load_balancer
        if balancer is not None:
            if balancer.server_id not in state.records.addresses():
                self._new_balancer = balancer
            playbook_inputs.forget_new(state, [balancer], ())
            # Recorded as seen once it has everything that the former one had.
            state.site.wait_reachable([balancer])
        listed = {node.server_id for node in state.nodes}
        playbook_inputs.wait_reachable(
            state,
            [vm for vm in state.machines.control_planes if vm.server_id in listed],
        )
        seen = state.node_objects()
        expected = [
            n for n in self._moved if not readiness.readiness_problem(seen.get(n.name))
        ]
        # The control planes were reached just now.
        others = without_planes(state.nodes)
        doubtful = [node for node in others if node not in expected]
        down = state.site.unusable(doubtful)
        self._out = frozenset((*down, *(node.name for node in self._gone)))
        if down:
            reasons = (f"{name}: {error}" for name, error in sorted(down.items()))
            LOG.warning(
                "These nodes cannot be used over SSH and are left as they are: %s",
                " ".join(reasons),
            )
        moved = without_planes(self._moved)
        machines = [node for node in moved if node.name not in down]
        if machines:
            playbook_inputs.wait_reachable(state, machines)
        preconditions.see(
            state, [node for node in state.nodes if node.name not in down]
        )

    # The load balancer and the certificate

    def _install_balancer(self) -> None:
        state = self._state
        balancing.install(state, self._members())
        if self._new_balancer is not None:
            balancing.restore_services(state)
            playbook_inputs.wait_reachable(state, [self._new_balancer])

    def _members(self) -> Sequence[Node]:
        """The nodes that are full members of the cluster."""
        state = self._state
        joined = read_or_none(
            state.records.joined, "All of its nodes count as members."
        )
        return [
            node
            for node in state.nodes
            if node.is_control_plane or joined is None or node.server_id in joined
        ]

    def _uncertified(self) -> Mapping[str, Sequence[str]]:
        """Addresses that the API servers' certificates lack, by control plane."""
        state = self._state
        wanted = variables.certified_addresses(state.inputs[1])
        lacking = (
            (node.name, state.site.cluster(node).uncertified(wanted))
            for node in state.control_planes()
        )
        return {name: addresses for name, addresses in lacking if addresses}

    def _is_certified(self) -> bool:
        return not self._uncertified()

    def _has_begun(self) -> bool:
        """Whether no facts are needed: there is nothing to do, or the run has begun."""
        return self._is_certified() or self._state.site.playbooks.live(self._request())

    def _request(self) -> PlaybookRequest:
        return runs.renew_certificates(self._state.inputs)

    def _see_certified(self) -> None:
        """Wait until the API servers, which reload it each minute, show it."""

        def problem() -> str:
            missing = self._uncertified()
            return "; ".join(f"{name}: {', '.join(missing[name])}" for name in missing)

        readiness.wait_until_healthy(
            self._state.deps,
            problem,
            "the API servers' certificates lack these addresses: {left}.",
            "Look at the API server's log there, and fix it.",
        )

    def _wait_ready(self) -> None:
        nodes = [node for node in self._members() if node.name not in self._out]
        readiness.wait_ready(self._state, nodes)

    # The VIM

    def _is_registered(self) -> bool:
        state = self._state
        fitting, vims = registration.endpoints(state), state.site.vims.registered()
        own = (
            len(vims) == 1
            and vims[0].named
            and any(same_server(vims[0].auth_url, url) for url in fitting)
        )
        return own and all(work.follows_api() for work in state.works)

    def _register_vim(self) -> None:
        state = self._state
        if users := state.site.vims.users():
            raise errors.VimError(
                detail=f"The cluster is healthy, and its API is at {state.endpoint()}. "
                f"But other VNFs use it as their VIM ({', '.join(users)}), and Tacker "
                "lets no VIM go to another address while it is used.",
                hint="Terminate and delete these VNFs.",
            )
        registration.register(state, state.cluster().admin_access())
        for work in state.works:
            work.follow_api()

    def _see_same(self) -> None:
        """Check that each worker is the VM that it was."""
        if self._gone:
            raise errors.UnsupportedOperation(
                detail="Everything else is done, but the VMs of these workers are gone "
                f"or were rebuilt: {names_of(self._gone)}.",
                hint="The next scale-out, or a heal of their VNFCs, makes workers of "
                "the new VMs.",
            )


_UNCHANGED = "Nothing was changed."


def connectivity_start(
    deps: OperationContext, points: Sequence[Attachment]
) -> tuple[Step, ...]:
    """The steps of ``change_external_connectivity_start``, in the order of work.

    :param points: the connection points of the request.
    """
    return (
        preconditions.step(deps),
        Step(
            "check-change",
            "check that the change is possible",
            lambda: _check(deps, points),
        ),
    )


def _check(deps: OperationContext, points: Sequence[Attachment]) -> None:
    wrong = [f"{address} ({p.name})" for p in points for address in p.wrong_addresses]
    if wrong:
        raise errors.UnsupportedOperation(
            detail=f"These fixed addresses are no IP addresses: {', '.join(wrong)}.",
            hint=f"{_UNCHANGED} Write them as Neutron does, without a zone.",
        )
    site = deps.site
    present = site.attachments()
    names = {name for port in present for name in (port.name, *port.floating_ips)}
    params = as_named(deps.params, names)
    shared = connection_points.shared_addresses(points, present, params)
    if shared:
        raise errors.UnsupportedOperation(
            detail=f"{', '.join(shared)} cannot have a fixed address, because the "
            "VMs of a scaling group would all get it.",
            hint=f"{_UNCHANGED} Name a subnet (subnetId) and numDynamicAddresses.",
        )
    fixed = site.fixed_groups()
    if fixed:
        raise errors.UnsupportedOperation(
            detail="Tacker's v1 API cannot change the ports of this VNF: it does "
            f"not give Heat the template of the VMs in {', '.join(fixed)} "
            "(OS::Heat::ResourceGroup).",
            hint=f"{_UNCHANGED} The v2 API can, and so can packages whose groups "
            "are AutoScalingGroups.",
        )
    changing = connection_points.changing(points, present)
    inner = connection_points.inner_points(params, present)
    moved = sorted(changing & inner.keys())
    if moved:
        listed = ", ".join(f"{name} ({inner[name]})" for name in moved)
        raise errors.UnsupportedOperation(
            detail=f"The request changes {listed}: the cluster itself lives at "
            "these addresses, which cannot change while it runs.",
            hint=f"{_UNCHANGED} Leave these connection points out of the request, "
            "or terminate the VNF and instantiate it with the other network.",
        )
    entry = connection_points.entry_point(params)
    users = site.vims.users() if entry in changing else ()
    if users:
        raise errors.UnsupportedOperation(
            detail=f"The request changes {entry}, where Tacker reaches the "
            "cluster, and other VNFs use the cluster as their VIM "
            f"({', '.join(users)}): Tacker lets no VIM go to another address while it "
            "is used.",
            hint=f"{_UNCHANGED} Terminate and delete these VNFs first, or leave "
            f"{entry} out of the request.",
        )
    see_none_rebuilt(deps)
