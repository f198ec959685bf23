"""The cluster gets another Kubernetes version, node by node.

kubespray's docs/operations/upgrades.md, "Node-based upgrade": the facts of all hosts,
then ``upgrade-cluster.yml`` for the control planes, which takes one after the other,
then for the workers, batch by batch. Workers are emptied here and not by kubespray, so
that the one drain policy holds and what keeps a pod is told; kubespray leaves a node
alone that it finds cordoned. Control planes are drained by kubespray, which has them
all in one run.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies, names_of
from tacker_k8s_mgmt.lifecycle.upgrade_check import UpgradeStart, named, of_role
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import upgrade_plan

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_NO_WAY_BACK = (
    "Kubernetes cannot go back. Do not scale or heal before the upgrade has ended."
)
_SHOWN = 10  # nodes of each version in an error text; the rest is counted


class Upgrade(UpgradeStart):
    """The steps of ``change_current_package_end``.

    How many there are shows when it is known which nodes are pending.
    """

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps)
        self._steps: list[Step] = []
        self._touched = False
        #: The nodes that are being upgraded, and the run that works on them.
        self._in_hand: tuple[Node, ...] = ()
        self._request: PlaybookRequest | None = None

    def steps(self) -> Sequence[Step]:
        """The steps in the order of work; the list grows while they are taken."""
        self._steps = [*super().steps()]
        return self._steps

    def left(self) -> str:
        """Give back what is out of use, and say who has which version."""
        if not self._touched:
            return super().left()
        told = (self._given_back(), self._told_versions(), _NO_WAY_BACK)
        return " ".join(filter(None, told))

    def _check_cluster(self) -> None:
        super()._check_cluster()
        self._steps += self._work()

    def _work(self) -> Sequence[Step]:
        """The steps that are due, by who has which version."""
        begun = self._record.aim == self._aim
        planes = {node.name for node in self._planes()}
        planes_due = bool(self._pending & planes) or (
            begun and self._record.version != self._aim
        )
        batches = self._batches(begun)
        steps = []
        if planes_due or batches:
            steps += [
                Step("write inventory and variables", self._write_all),
                Step("gather the facts of all hosts", self._gather, self._is_live),
            ]
        if planes_due:
            what = f"run {kubespray_releases.UPGRADE} for the control planes"
            steps.append(Step(what, self._run_planes, verify=self._end_planes))
        for number, names in enumerate(batches, 1):
            place = f"batch {number}/{len(batches)} of workers"
            steps += self._batch_steps(place, named(self._nodes, names))
        return [*steps, Step("record the version", self._end)]

    def _batches(self, begun: bool) -> Sequence[tuple[str, ...]]:
        names = [node.name for node in of_role(self._nodes, Role.WORKER)]
        # As it was, so that a run that is under way is found again.
        former = tuple(n for n in self._record.batch if n in names) if begun else ()
        pending = [n for n in names if n in self._pending and n not in former]
        at_once = self._params.drain.parallel
        rest = upgrade_plan.batches(pending, len(names), at_once)
        return (former, *rest) if former else rest

    def _batch_steps(self, place: str, batch: tuple[Node, ...]) -> Sequence[Step]:
        return (
            Step(
                f"{place}: empty {names_of(batch)}",
                lambda: self._empty(batch),
                lambda: self._site.playbooks.live(self._batch_request(batch)),
            ),
            Step(
                f"{place}: run {kubespray_releases.UPGRADE}",
                lambda: self._begin(batch, self._batch_request(batch)),
                verify=lambda: self._see(batch),
            ),
            Step(f"{place}: take them into use again", lambda: self._end_batch(batch)),
        )

    # Before the runs

    def _installed(self) -> InstallParams:
        """The parameters as they are: the version that is wanted is among them."""
        return self._params

    def _write_all(self) -> None:
        self._write_inputs(self._nodes)

    def _is_live(self) -> bool:
        """Whether a run of this upgrade is under way already; it has its facts."""
        batch = named(self._nodes, self._record.batch)
        requests = (self._planes_request(), self._batch_request(batch))
        return any(self._site.playbooks.live(request) for request in requests)

    def _gather(self) -> None:
        request = PlaybookRequest(kubespray_releases.FACTS, inputs=self._inputs)
        self._run(request, len(self._nodes))

    # The control planes

    def _planes_request(self) -> PlaybookRequest:
        return PlaybookRequest(
            kubespray_releases.UPGRADE,
            extra_vars=kubespray_releases.upgrade_variables(self._params.drain),
            args=kubespray_releases.limit_to_control_planes(),
            inputs=self._inputs,
        )

    def _run_planes(self) -> None:
        planes = self._planes()
        if self._record.aim != self._aim:
            seen = self._seen()
            free = [one.name for one in planes if not seen[one.name].unschedulable]
            # An upgrade that was given up may have left others cordoned.
            schedulable = dict.fromkeys((*self._record.schedulable, *free))
            self._note(aim=self._aim, schedulable=tuple(schedulable), batch=())
        self._begin(planes, self._planes_request())

    def _end_planes(self) -> None:
        self._see(self._planes())
        self._note(version=self._aim)
        self._release(self._planes())

    # The workers

    def _batch_request(self, batch: Sequence[Node]) -> PlaybookRequest:
        names = [node.name for node in batch]
        return PlaybookRequest(
            kubespray_releases.UPGRADE,
            extra_vars=kubespray_releases.upgrade_variables(self._params.drain, names),
            args=("--limit", ",".join(names)),
            inputs=self._inputs,
        )

    def _empty(self, batch: tuple[Node, ...]) -> None:
        names = [node.name for node in batch]
        self._note(version=self._aim, aim=self._aim, batch=tuple(names))
        self._in_hand, self._request, self._touched = batch, None, True
        balancing = self._balancing()
        if balancing is not None:
            balancing.status()
            balancing.remove(batch)
        self._cluster().cordon(names)
        self._cluster().drain(names, self._params.drain)

    def _end_batch(self, batch: tuple[Node, ...]) -> None:
        self._release(batch)
        self._note(batch=())

    # All of them

    def _begin(self, nodes: tuple[Node, ...], request: PlaybookRequest) -> None:
        self._in_hand, self._request, self._touched = nodes, request, True
        self._run(request, len(nodes))

    def _see(self, nodes: Sequence[Node]) -> None:
        """Wait until these nodes are Ready and have the version.

        :raises ClusterError: with every node that is not so, after ``ready_timeout``.
        """
        self._wait_ready(nodes)

        def problem() -> str:
            versions = self._versions(nodes)
            return "; ".join(
                f"{name}: {version}"
                for name, version in versions.items()
                if version != self._aim
            )

        self._wait_until_well(
            problem,
            f"these nodes have not got Kubernetes {self._aim}, though "
            f"{kubespray_releases.UPGRADE} ended well: {{left}}.",
            "See whether kube_version is set in the checkout's own files, which "
            "kubespray_vars may take back.",
        )

    def _versions(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """The version of each node in words: two where they are not the same."""
        seen, servers = self._seen(), self._api_servers()
        told = {}
        for node in nodes:
            kubelet = seen[node.name].kubelet_version if node.name in seen else "none"
            version = kubelet.removeprefix("v")
            server = servers.get(node.name, "silent").removeprefix("v")
            if node.role is Role.CONTROL_PLANE and server != version:
                version = f"{version} (API server {server})"
            told[node.name] = version
        return told

    def _release(self, nodes: tuple[Node, ...]) -> None:
        """Let pods and requests onto these nodes again, as far as they were before."""
        seen = self._seen()
        cordoned = [one.name for one in nodes if _is_cordoned(one, seen)]
        ours = [
            name
            for name in cordoned
            if seen[name].cordoned_by_us or name in self._record.schedulable
        ]
        if ours:
            self._cluster().uncordon(ours)
        balancing = self._balancing()
        if balancing is not None:
            balancing.add(of_role(nodes, Role.WORKER))
        self._in_hand, self._request = (), None

    def _end(self) -> None:
        self._note(version=self._aim, aim="", schedulable=(), batch=())

    def _note(self, **changes: Any) -> None:
        self._record = replace(self._record, **changes)
        self._site.workdir.write(upgrade_plan.FILE_NAME, self._record.text())

    # After a failure

    def _given_back(self) -> str:
        """Give back the nodes in hand, unless a run goes on with them."""
        if not self._in_hand:
            return ""
        names = names_of(self._in_hand)
        try:
            if self._request and self._site.playbooks.live(self._request):
                return f"The run goes on with {names}, which stay as they are."
            self._release(self._in_hand)
        except errors.K8sMgmtError as error:
            return (
                f"{names} may still be cordoned or without routes, for taking that "
                f"back failed too: {error}"
            )
        return f"{names} can be scheduled again, as before, and have their routes."

    def _told_versions(self) -> str:
        try:
            versions = self._versions(self._nodes)
        except errors.K8sMgmtError as error:
            LOG.warning("The versions of the nodes are not known: %s", error)
            return ""
        told: dict[str, list[str]] = {}
        for name, version in versions.items():
            told.setdefault(version, []).append(name)
        lists = [f"{version}: {_some(names)}" for version, names in told.items()]
        return f"Kubernetes by now: {'; '.join(lists)}."


def _is_cordoned(node: Node, seen: Mapping[str, ports.ClusterNode]) -> bool:
    return node.name in seen and seen[node.name].unschedulable


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
