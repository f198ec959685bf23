# SPDX-License-Identifier: Apache-2.0
"""The cluster gets another Kubernetes version, node by node.

kubespray's docs/operations/upgrades.md, "Node-based upgrade": the facts of all hosts,
then ``upgrade-cluster.yml`` for the control planes, which takes them one by one, then
for the workers in batches. Workers are drained here, so that the drain policy applies
and an error names the pod that stays; kubespray does not drain a node that it finds
cordoned. Control planes are drained by kubespray, which has them all in one run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import ClusterState, Dependencies
from tacker_k8s_mgmt.lifecycle.steps import (
    inventory,
    load_balancer,
    playbooks,
    preflight,
    readiness,
)
from tacker_k8s_mgmt.lifecycle.steps.compare import see_none_rebuilt
from tacker_k8s_mgmt.lifecycle.steps.upgrade_check import UpgradeCheck
from tacker_k8s_mgmt.model.nodes import Node, Role, names_of, of_role
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.topology import upgrade_plan

LOG = logging.getLogger(__name__)

_NO_WAY_BACK = (
    "Kubernetes cannot go back. Do not scale or heal before the upgrade has ended."
)
_SERVER = "check package and Ansible server"
_NODES = "check nodes, versions and control planes"
_SHOWN = 10  # nodes of each version in an error; the rest is counted


class UpgradeStart:
    """The steps of ``change_current_package_start``: checks that change nothing."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._check = UpgradeCheck(ClusterState(deps))

    def steps(self) -> Sequence[Step]:
        """The steps in the order of work."""
        return (
            Step(_SERVER, lambda: preflight.check_server(self._deps.site)),
            Step(_NODES, self._check_nodes),
        )

    def left(self) -> str:
        """What stays behind when a step fails."""
        return self._check.left()

    def _check_nodes(self) -> None:
        self._check.check_cluster()
        # Tacker updates the stack, although with what it has.
        see_none_rebuilt(self._deps)


class Upgrade:
    """The steps of ``change_current_package_end``.

    How many there are is known when the pending nodes are.
    """

    def __init__(self, deps: Dependencies) -> None:
        self._state = ClusterState(deps)
        self._check = UpgradeCheck(self._state)
        self._steps: list[Step] = []
        self._touched = False
        #: The nodes that are being upgraded, and the run for them.
        self._in_hand: tuple[Node, ...] = ()
        self._request: PlaybookRequest | None = None

    def steps(self) -> Sequence[Step]:
        """The steps in the order of work; the list grows while they are taken."""
        self._steps = [
            Step(_SERVER, lambda: preflight.check_server(self._state.site)),
            Step(_NODES, self._check_cluster),
        ]
        return self._steps

    def _check_cluster(self) -> None:
        self._check.check_cluster()
        self._steps += self._work()

    def _work(self) -> Sequence[Step]:
        """The steps for the nodes that do not have the version yet."""
        state, check = self._state, self._check
        begun = check.record.aim == check.aim
        planes = {node.name for node in state.planes()}
        planes_due = bool(check.pending & planes) or (
            begun and check.record.version != check.aim
        )
        batches = self._batches(begun)
        steps = []
        if planes_due or batches:
            steps += [
                Step(
                    "write inventory and variables",
                    # With the version of the request, not with that of the cluster.
                    lambda: inventory.write_inputs(
                        state, state.nodes, params=state.params
                    ),
                ),
                Step(
                    "gather the facts of all hosts",
                    lambda: playbooks.gather_facts(state),
                    probe=self._is_live,
                ),
            ]
        if planes_due:
            what = f"run {runs.UPGRADE} for the control planes"
            steps.append(Step(what, self._run_planes, verify=self._end_planes))
        for number, names in enumerate(batches, 1):
            place = f"batch {number}/{len(batches)} of workers"
            batch = tuple(node for node in state.nodes if node.name in names)
            steps += self._batch_steps(place, batch)
        return [*steps, Step("record the version", self._end)]

    def _batch_steps(self, place: str, batch: tuple[Node, ...]) -> Sequence[Step]:
        return (
            Step(
                f"{place}: empty {names_of(batch)}",
                lambda: self._empty(batch),
                lambda: self._state.site.playbooks.live(self._run_of(batch)),
                kind="empty a batch of workers",
            ),
            Step(
                f"{place}: run {runs.UPGRADE}",
                lambda: self._begin(batch, self._run_of(batch)),
                verify=lambda: self._see(batch),
                kind=f"run {runs.UPGRADE} for a batch of workers",
            ),
            Step(
                f"{place}: take them into use again",
                lambda: self._end_batch(batch),
                kind="take a batch of workers into use again",
            ),
        )

    def left(self) -> str:
        """Take unfinished nodes into use again; what stays behind, and the versions."""
        if not self._touched:
            return self._check.left()
        texts = (self._take_back(), self._versions_so_far(), _NO_WAY_BACK)
        return " ".join(filter(None, texts))

    def _batches(self, begun: bool) -> Sequence[tuple[str, ...]]:
        names = [node.name for node in of_role(self._state.nodes, Role.WORKER)]
        # As recorded, so that its run is recognized if it is still under way.
        former = (
            tuple(n for n in self._check.record.batch if n in names) if begun else ()
        )
        pending = [n for n in names if n in self._check.pending and n not in former]
        at_once = self._state.params.drain.parallel
        rest = upgrade_plan.batches(pending, len(names), at_once)
        return (former, *rest) if former else rest

    def _run_of(self, batch: Sequence[Node] = ()) -> PlaybookRequest:
        """The run for a batch of workers; without one, for the control planes."""
        names = [node.name for node in batch]
        drain = self._state.params.drain
        return runs.upgrade(drain, self._state.inputs, names)

    def _is_live(self) -> bool:
        """Whether a run of this upgrade, which has its facts, is under way."""
        names = self._check.record.batch
        batch = [node for node in self._state.nodes if node.name in names]
        requests = (self._run_of(), self._run_of(batch))
        return any(self._state.site.playbooks.live(request) for request in requests)

    # The control planes

    def _run_planes(self) -> None:
        planes, record = self._state.planes(), self._check.record
        if record.aim != self._check.aim:
            seen = self._state.seen()
            free = [n.name for n in planes if not seen[n.name].unschedulable]
            # An upgrade that was given up may have left others cordoned.
            schedulable = tuple(dict.fromkeys((*record.schedulable, *free)))
            record = replace(record, schedulable=schedulable, batch=())
            self._note(replace(record, aim=self._check.aim))
        self._begin(planes, self._run_of())

    def _end_planes(self) -> None:
        self._see(self._state.planes())
        self._note(replace(self._check.record, version=self._check.aim))
        self._release(self._state.planes())

    # The workers

    def _empty(self, batch: tuple[Node, ...]) -> None:
        state, names = self._state, tuple(node.name for node in batch)
        aim = self._check.aim
        self._note(replace(self._check.record, version=aim, aim=aim, batch=names))
        self._in_hand, self._request, self._touched = batch, None, True
        if load_balancer.exists(state):
            load_balancer.status(state)
            load_balancer.remove(state, batch)
        state.cluster().cordon(names)
        state.cluster().drain(names, state.params.drain)

    def _end_batch(self, batch: tuple[Node, ...]) -> None:
        self._release(batch)
        self._note(replace(self._check.record, batch=()))

    # All of them

    def _begin(self, nodes: tuple[Node, ...], request: PlaybookRequest) -> None:
        self._in_hand, self._request, self._touched = nodes, request, True
        playbooks.run(self._state, request, len(nodes))

    def _see(self, nodes: Sequence[Node]) -> None:
        """Wait until these nodes are Ready and have the version."""
        readiness.wait_ready(self._state, nodes)

        def problem() -> str:
            versions = self._versions(nodes).items()
            others = (f"{n}: {version}" for n, version in versions if version != aim)
            return "; ".join(others)

        aim = self._check.aim
        readiness.wait_until_well(
            self._state.deps,
            problem,
            f"these nodes have not got Kubernetes {aim}, though "
            f"{runs.UPGRADE} ended well: {{left}}.",
            "See whether kube_version is set in the checkout's own files, which "
            "kubespray_vars may take back.",
        )

    def _versions(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """The version of each node for people; two where the API server differs."""
        seen, servers = self._state.seen(), self._check.api_servers()
        versions = {}
        for node in nodes:
            kubelet = seen[node.name].kubelet_version if node.name in seen else "none"
            version = kubelet.removeprefix("v")
            server = servers.get(node.name, "silent").removeprefix("v")
            if node.role is Role.CONTROL_PLANE and server != version:
                version = f"{version} (API server {server})"
            versions[node.name] = version
        return versions

    def _release(self, nodes: tuple[Node, ...]) -> None:
        """Take these nodes into use again, as far as they were before."""
        seen = self._state.seen()
        former = self._check.record.schedulable
        ours = [
            node.name
            for node in (seen[node.name] for node in nodes if node.name in seen)
            if node.unschedulable
            and (node.cordoned_by_us or node.name in former)
            and not node.in_maintenance
        ]
        if ours:
            self._state.cluster().uncordon(ours)
        load_balancer.add(self._state, of_role(nodes, Role.WORKER))
        self._in_hand, self._request = (), None

    def _end(self) -> None:
        self._note(upgrade_plan.Record(version=self._check.aim))

    def _note(self, record: upgrade_plan.Record) -> None:
        self._check.record = record
        self._state.site.workdir.write(upgrade_plan.FILE_NAME, record.text())

    # After a failure

    def _take_back(self) -> str:
        """Take the nodes in hand into use again, unless a run goes on with them."""
        if not self._in_hand:
            return ""
        names = names_of(self._in_hand)
        try:
            if self._request and self._state.site.playbooks.live(self._request):
                return f"The run goes on with {names}, which stay as they are."
            self._release(self._in_hand)
        except errors.K8sMgmtError as error:
            return (
                f"{names} may still be cordoned or without routes, for taking that "
                f"back failed too: {error}"
            )
        return f"{names} can be scheduled again, as before, and have their routes."

    def _versions_so_far(self) -> str:
        try:
            versions = self._versions(self._state.nodes)
        except errors.K8sMgmtError as error:
            LOG.warning("The versions of the nodes are not known: %s", error)
            return ""
        nodes: dict[str, list[str]] = {}
        for name, version in versions.items():
            nodes.setdefault(version, []).append(name)
        lists = [f"{version}: {_some(names)}" for version, names in nodes.items()]
        return f"Kubernetes by now: {'; '.join(lists)}."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
