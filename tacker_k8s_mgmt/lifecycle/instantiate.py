# SPDX-License-Identifier: Apache-2.0
"""Instantiation: the VMs that Heat has built become a Kubernetes cluster.

Specification, "Instantiate Kubernetes cluster VNF", steps 9 to 14, with one difference
in order: the load balancer is installed before ``cluster.yml`` runs, because the nodes
and the VIM reach the API through it.
"""

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import ClusterState, Dependencies
from tacker_k8s_mgmt.lifecycle.steps import (
    applications,
    clocks,
    inventory,
    load_balancer,
    node_settings,
    playbooks,
    pod_network,
    preflight,
    readiness,
    rebuild,
    tenants,
    vim,
)
from tacker_k8s_mgmt.lifecycle.steps.compare import settle
from tacker_k8s_mgmt.lifecycle.steps.records import JOINED_FILE
from tacker_k8s_mgmt.model.cluster import ClusterAccess
from tacker_k8s_mgmt.model.nodes import Role, name_nodes
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.request import option_types


class Instantiate:
    """The steps of ``instantiate_end``, and of ``heal_end`` for a whole VNF."""

    def __init__(self, deps: Dependencies) -> None:
        self._state = ClusterState(deps)
        self._claimed = False
        self._access: ClusterAccess

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        state = self._state
        install = Step(
            "install the load balancer",
            self._install_balancer,
            verify=lambda: load_balancer.verify(state),
        )
        return (
            preflight.step(state.deps),
            Step("find the VMs in the Heat stack", self._find_machines),
            Step("own the inventory directory", self._claim),
            Step("wait until the VMs accept SSH logins", self._reach_all),
            Step(
                "write inventory and variables",
                lambda: inventory.write_inputs(state, state.nodes),
            ),
            *((install,) if state.params.load_balancer else ()),
            Step(
                f"run {runs.INSTALL}",
                lambda: playbooks.run(state, self._request(), len(state.nodes)),
                probe=lambda: state.site.playbooks.done(self._request()),
            ),
            Step("wait until all nodes are Ready", self._see_ready),
            *node_settings.steps(state, "all nodes"),
            *pod_network.steps(state, lambda: state.nodes, "all nodes"),
            Step("read the cluster's token and CA certificate", self._read_access),
            Step(
                "register the cluster as a VIM",
                lambda: vim.register(state, self._access),
            ),
            *tenants.steps(state),
            *applications.steps(state),
        )

    def left(self) -> str:
        """What stays behind when a step fails."""
        machines, ansible = self._state.machines, self._state.params.ansible
        parts = []
        if count := len(machines.control_planes) + len(machines.workers):
            parts.append(f"{count} node VM(s)")
        if self._claimed:
            # Not from the server, which may be what has failed.
            parts.append(f"the directory {ansible.directory} on {ansible.host}")
        return f"Left as they are: {' and '.join(parts)}." if parts else ""

    def _find_machines(self) -> None:
        """Find the VMs of the cluster; if there are workers, one has to be complete.

        :raises DiscoveryError: they do not fit the parameters.
        """
        state = self._state
        machines = state.machines = state.site.machines()
        machines.require_whole()
        late = [vm for vm in machines.unfinished if vm.role is Role.WORKER]
        if late and not machines.workers:
            raise errors.ClusterError(
                detail=f"No worker VM is complete: {late[0].state}.",
                hint="Look why with `openstack stack failures list --long "
                f"{machines.stack_id}`, and mend it.",
            )
        previous = state.previous()
        settle(state, previous)
        members = (*state.machines.control_planes, *state.machines.workers)
        state.nodes = name_nodes(members, previous=previous)

    def _claim(self) -> None:
        state = self._state
        state.site.workdir.claim()
        self._claimed = True
        state.site.lock()
        rebuild.inventory(state)
        if previous := state.previous():
            rebuild.machines(state, previous)
        rebuild.forget_former(state)
        # A rebuilt VM has another host key and other facts.
        inventory.forget_new(state, state.vms(), state.nodes)

    def _install_balancer(self) -> None:
        """Install it; a whole heal has kept the record of the exposed CNFs."""
        load_balancer.install(self._state, self._state.nodes)
        load_balancer.expose_again(self._state)

    def _reach_all(self) -> None:
        state = self._state
        inventory.wait_reachable(state, state.vms())
        clocks.see(state, state.nodes)
        if state.params.cluster.network.mtu == option_types.NODES:
            rebuild.write_nic_mtu(state, state.nodes)

    def _request(self) -> PlaybookRequest:
        return runs.install(self._state.inputs)

    def _see_ready(self) -> None:
        nodes = self._state.nodes
        readiness.wait_ready(self._state, nodes)
        self._state.write_json(JOINED_FILE, sorted(node.server_id for node in nodes))

    def _read_access(self) -> None:
        self._access = self._state.cluster().admin_access()
