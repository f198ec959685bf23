# SPDX-License-Identifier: Apache-2.0
"""Instantiation: the VMs that Heat has built become a Kubernetes cluster.

Heal of the whole VNF: as a termination and an instantiation, with one difference from
the specification. What describes the cluster is removed by ``heal_end``, which finds
that Heat has replaced the VMs; if Heat or Tacker stops before, the cluster stays as it
was.

Specification, "Instantiate Kubernetes cluster VNF", steps 9 to 14, with one difference
in order: the load balancer is installed before ``cluster.yml`` runs, because the nodes
and the VIM reach the API through it.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.model.nodes import name_nodes, of_role
from tacker_k8s_mgmt.model.plan import REBUILT, NodeChange
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.model.vim import ClusterAccess
from tacker_k8s_mgmt.operations import (
    balancing,
    compare,
    playbook_inputs,
    preconditions,
    readiness,
    registration,
)
from tacker_k8s_mgmt.operations.compare import settle
from tacker_k8s_mgmt.operations.records import (
    JOINED_FILE,
    WHOLE_FILE,
    WholeHeal,
    nodes_in,
    read_or_none,
)
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Step
from tacker_k8s_mgmt.operations.terminate import remove_own, terminate_start
from tacker_k8s_mgmt.request import fields


class Instantiate(Operation):
    """The steps of ``instantiate_end``."""

    def __init__(self, deps: OperationContext) -> None:
        self._state = ClusterState(deps)
        #: Names of the files that stay when those of a former cluster are removed.
        self._kept_files: tuple[str, ...] = ()
        self._claimed = False
        self._access: ClusterAccess

    def steps(self) -> tuple[Step, ...]:
        state = self._state
        install = Step(
            "install-load-balancer",
            "install the load balancer",
            self._install_balancer,
            verify=lambda: balancing.verify(state),
        )
        return (
            preconditions.step(state.deps, meanwhile=state.site.expect_stack),
            Step("find-vms", "find the VMs in the Heat stack", self._find_machines),
            Step("claim-directory", "claim the cluster's directory", self._claim),
            Step("wait-for-logins", "wait for SSH on the VMs", self._reach_all),
            Step(
                "write-inventory",
                "write inventory and variables",
                lambda: playbook_inputs.write_inputs(state, state.nodes),
            ),
            *((install,) if state.params.load_balancer else ()),
            Step(
                "install-kubernetes",
                f"run {runs.INSTALL}",
                lambda: playbook_inputs.run(state, self._request(), len(state.nodes)),
                probe=lambda: state.site.playbooks.done(self._request()),
            ),
            Step("wait-for-nodes", "wait for all nodes to be Ready", self._wait_ready),
            *state.joined(lambda: state.nodes, "all nodes"),
            Step(
                "read-credentials",
                "read the API token and CA certificate",
                self._read_access,
            ),
            Step(
                "register-vim",
                "register the cluster as a VIM",
                lambda: registration.register(state, self._access),
            ),
            *state.built(),
        )

    def left(self) -> str:
        machines, ansible = self._state.machines, self._state.params.ansible
        parts = []
        if count := len(machines.nodes):
            parts.append(f"{count} node VM(s)")
        if self._claimed:
            # Not from the server, which may be what has failed.
            parts.append(f"the directory {ansible.directory} on {ansible.host}")
        return f"Left as they are: {' and '.join(parts)}." if parts else ""

    def _find_machines(self) -> None:
        """Find the VMs of the cluster; of each role that has some, one is complete.

        :raises DiscoveryError: they do not fit the parameters.
        """
        state = self._state
        machines = state.machines = state.site.machines()
        machines.require_whole()
        for late in machines.unfinished:
            if not of_role(machines.vms, late.role):
                raise errors.ClusterError(
                    detail=f"No {late.role.value} VM is complete: {late.state}.",
                    hint="Look why with `openstack stack failures list --long "
                    f"{machines.stack_id}`, and fix it.",
                )
        preconditions.see_enough(machines.nodes, state.params)
        previous = state.inventory_nodes()
        settle(state, previous)
        state.nodes = name_nodes(state.machines.nodes, previous=previous)

    def _claim(self) -> None:
        state = self._state
        state.site.workdir.claim()
        self._claimed = True
        state.site.lock()
        former = state.records.servers()
        if former and former.isdisjoint(state.machines.places):
            # Nothing of it is there any more, but a directory that was not removed.
            remove_own(state.deps.vnf_id, state.site, keep=self._kept_files)
        compare.inventory(state)
        if previous := state.inventory_nodes():
            compare.machines(state, previous)
        compare.clear_previous_cluster(state)
        # A rebuilt VM has another host key and other facts.
        playbook_inputs.forget_new(state, state.machines.vms, state.nodes)

    def _install_balancer(self) -> None:
        """Install it; a whole heal has kept the record of the exposed CNFs."""
        balancing.install(self._state, self._state.nodes)
        balancing.restore_services(self._state)

    def _reach_all(self) -> None:
        state = self._state
        playbook_inputs.wait_reachable(state, state.machines.vms)
        preconditions.see(state, state.nodes)
        if state.params.cluster.network.mtu == fields.NODES:
            compare.write_nic_mtu(state, state.nodes)

    def _request(self) -> PlaybookRequest:
        return runs.install(self._state.inputs)

    def _wait_ready(self) -> None:
        nodes = self._state.nodes
        readiness.wait_ready(self._state, nodes)
        self._state.write_json(JOINED_FILE, sorted(node.server_id for node in nodes))

    def _read_access(self) -> None:
        self._access = self._state.cluster().admin_access()


class WholeHealStart(Operation):
    """The steps of ``heal_start`` for a whole VNF, which remove nothing.

    :param listed: ids of the servers that Tacker lists.
    :param kept: returns the ids of the servers that Tacker leaves as they are.
    """

    def __init__(
        self,
        deps: OperationContext,
        *,
        listed: Collection[str],
        kept: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self._state = ClusterState(deps)
        self._listed = listed
        self._kept = kept

    def steps(self) -> tuple[Step, ...]:
        return (
            preconditions.step(self._state.deps),
            *terminate_start(self._state.site.vims),
            Step(
                "record-vms",
                "record the VMs that are replaced",
                self._record,
                rehearsed=True,
                effects=self._replaced,
            ),
        )

    def _replaced(self) -> Iterator[NodeChange]:
        """The nodes, for a plan."""
        how = "The names of the nodes are not known."
        for node in nodes_in(read_or_none(self._state.records.last_inventory, how)):
            yield NodeChange(node.name, REBUILT, "with all that is on it")

    def _record(self) -> None:
        state = self._state
        state.site.workdir.claim()
        state.site.lock()
        former = state.records.servers()
        if kept := former & set(self._kept()):
            raise errors.UnsupportedOperation(
                detail="Tacker does not list these VMs, so Heat would leave them as "
                f"they are: {_named(state, kept)}.",
                hint='With "all": true in additionalParams, Heat deletes and creates '
                "the whole stack.",
            )
        heal = WholeHeal({*former, *self._listed}, addresses=_addresses(state))
        _write(state, heal)


class WholeHealEnd(Instantiate):
    """The steps of ``heal_end`` for a whole VNF."""

    def __init__(self, deps: OperationContext) -> None:
        super().__init__(deps)
        kept = (name for feature in deps.features for name in feature.kept_files)
        self._kept_files = (WHOLE_FILE, *kept)

    def steps(self) -> tuple[Step, ...]:
        state = self._state
        check, *install = super().steps()
        return (
            check,
            Step(
                "verify-vms",
                "check that Heat has replaced the VMs",
                self._check_replaced,
            ),
            Step(
                "remove-former-vim",
                "remove the former cluster's VIM",
                state.site.vims.remove,
                probe=self._is_cleared,
            ),
            Step(
                "remove-former-records",
                "remove the former cluster's records",
                self._clear,
                probe=self._is_cleared,
            ),
            *install,
            Step("finish", "finish the heal", lambda: _write(state, WholeHeal())),
        )

    def _check_replaced(self) -> None:
        """Record what is replaced, as a heal without ``heal_start`` has not."""
        state = self._state
        heal = _recorded(state) or WholeHeal()
        # That of a heal which has ended names none.
        if is_new := not heal.former:
            former = state.records.servers()
            heal = WholeHeal(former, addresses=_addresses(state))
        if there := set(heal.former) & state.site.machines().places.keys():
            raise errors.UnsupportedOperation(
                detail=f"Heat has not replaced these VMs: {_named(state, there)}. The "
                "cluster, its directory and its VIM are as they were."
            )
        if is_new and state.site.workdir.owner() == state.deps.vnf_id:
            state.site.lock()
            _write(state, heal)
        state.healing = replace(state.healing, addresses=tuple(heal.addresses))

    def _is_cleared(self) -> bool:
        heal = _recorded(self._state)
        return heal is not None and heal.cleared

    def _clear(self) -> None:
        state = self._state
        heal = _recorded(state)
        remove_own(state.deps.vnf_id, state.site, keep=self._kept_files)
        if heal is not None:
            _write(state, replace(heal, cleared=True))


def _recorded(state: ClusterState) -> WholeHeal | None:
    how = "The servers of the former cluster are those of the other records."
    return read_or_none(state.records.whole_heal, how)


def _addresses(state: ClusterState) -> Collection[str]:
    """The addresses in the cluster that its VMs have, as far as they are recorded."""
    how = "The addresses of the nodes are not known."
    nodes = nodes_in(read_or_none(state.records.last_inventory, how))
    balancer = read_or_none(state.records.api_address, how)
    return {*(node.address for node in nodes), *([balancer] if balancer else [])}


def _write(state: ClusterState, heal: WholeHeal) -> None:
    state.site.workdir.write(WHOLE_FILE, heal.text())


def _named(state: ClusterState, servers: Collection[str]) -> str:
    """Servers with the names of their nodes, as far as these are known."""
    how = "The names of the nodes are not known."
    nodes = nodes_in(read_or_none(state.records.last_inventory, how))
    names = {node.server_id: f"{node.name} (server {node.server_id})" for node in nodes}
    return ", ".join(sorted(names.get(one, f"server {one}") for one in servers))
