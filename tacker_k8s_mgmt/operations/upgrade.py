# SPDX-License-Identifier: Apache-2.0
"""The cluster gets another Kubernetes version, node by node, if it is fit for it.

kubespray's docs/operations/upgrades.md, "Node-based upgrade": the facts of all hosts,
then ``upgrade-cluster.yml`` for the control planes, which takes them one by one, then
for the workers in batches. Workers are drained here, so that the drain policy applies
and an error names the pod that stays; kubespray does not drain a node that it finds
cordoned. Control planes are drained by kubespray, which has them all in one run.

An upgrade begins only if all nodes are there and healthy, the version may follow
theirs, and etcd keeps its majority while the control planes are away one by one. An
interrupted upgrade continues with the nodes that it has left unhealthy.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.model import quorum
from tacker_k8s_mgmt.model.nodes import (
    Node,
    NodeObject,
    Role,
    names_of,
    of_role,
    without_planes,
)
from tacker_k8s_mgmt.model.plan import UPGRADED, NodeChange, PodMove
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.model.pods import Placement
from tacker_k8s_mgmt.operations import (
    balancing,
    playbook_inputs,
    preconditions,
    readiness,
    upgrade_plan,
)
from tacker_k8s_mgmt.operations.compare import (
    compare,
    refuse_unfinished,
    see_none_rebuilt,
)
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects, OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Step
from tacker_k8s_mgmt.topology.membership import Membership

LOG = logging.getLogger(__name__)

# The pod of the Job by which `kubeadm upgrade apply` checks the cluster's health (its
# phases/upgrade/health.go), and the name of that check.
_HEALTH_JOB = Placement(
    tolerations=[
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    ]
)
_HEALTH_CHECK = "CreateJob"
_IGNORED_CHECKS = "kubeadm_ignore_preflight_errors"
_SHOWN_IN_FINDING = 5  # nodes in a finding; the rest is counted

_SILENT = (errors.ConnectError, errors.CommandFailed, errors.CommandTimeout)


class UpgradeCheck:
    """Checks whether an upgrade may begin or continue, and changes nothing.

    :ivar aim: the Kubernetes version of the request, without v.
    :ivar record: the recorded version and upgrade.
    :ivar pending: names of the nodes whose API server or kubelet has another version.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.aim = (state.params.cluster.kubernetes_version or "").removeprefix("v")
        self.record = upgrade_plan.ClusterVersion()
        self.pending: frozenset[str] = frozenset()

    def left(self) -> str:
        """What stays behind when the check fails."""
        begun = self._begun()
        if not begun:
            return "No node was touched."
        return (
            "This try touched no node, but an earlier one has begun an upgrade to "
            f"Kubernetes {begun}. Any request for {begun} continues with it; do not "
            "scale or heal before it has ended."
        )

    def _begun(self) -> str:
        """The version of the upgrade that is under way; "" if none is known."""
        try:
            # Read again, because the first step may have failed.
            return self._state.records.upgrade().aim
        except errors.K8sMgmtError as error:
            LOG.warning("Whether an upgrade has begun is not known: %s", error)
            return self.record.aim

    def check_cluster(self) -> None:
        """Check nodes, versions and control planes, and find the pending nodes.

        :raises PreflightError: with all findings.
        :raises ClusterError: etcd would lose its majority.
        :raises UnsupportedOperation: a heal of the whole VNF is not finished.
        """
        members, seen = compare(self._state)
        refuse_unfinished(self._state)
        self.record = self._state.records.upgrade()
        servers = self.api_servers()
        kubelets = {
            node.name: seen[node.name].kubelet_version
            for node in self._state.nodes
            if node.name in seen
        }
        state = upgrade_plan.State(servers, kubelets)
        pending, reasons = upgrade_plan.plan(state, self.aim)
        findings = [*self._membership(members), *self._unreachable(), *reasons]
        findings += self._health_job(seen, pending)
        problems = self._problems()
        if not self.record.aim:
            findings += self._ill(seen, problems)
        if findings:
            raise errors.PreflightError(findings)
        preconditions.see(self._state, self._state.nodes)
        silent = {node.name for node in self._state.control_planes()} - servers.keys()
        self.pending = pending | silent
        if self.pending:
            self._keep_majority(seen, problems)
        LOG.info(
            "Nodes that have not got Kubernetes %s: %s",
            self.aim,
            ", ".join(sorted(self.pending)) or "none",
        )

    def api_servers(self) -> dict[str, str]:
        """Versions of the API servers that answer, by control plane."""
        versions = {}
        for plane in self._state.control_planes():
            try:
                versions[plane.name] = self._state.site.cluster(plane).version()
            except _SILENT as error:
                LOG.warning("The API server of %s: %s", plane.name, error)
        return versions

    def _problems(self) -> Mapping[str, str]:
        """The problem of each control plane's API server, "" for none."""
        problems = {}
        for plane in self._state.control_planes():
            try:
                problems[plane.name] = self._state.site.cluster(plane).api_readiness()
            except errors.ConnectError as error:
                problems[plane.name] = str(error)
        return problems

    def _membership(self, members: Membership) -> list[str]:
        """Where Heat, the inventory and the cluster differ."""
        differing = (
            (members.lost, "a control plane whose VM is gone or was replaced"),
            (members.added, "a new VM of the control plane, which cannot be scaled"),
            (
                members.returning,
                "a control plane that a heal has taken out and not joined",
            ),
            (members.vm_gone, "in the inventory, and its VM is gone"),
            (members.joining, "a worker VM that is not in the cluster"),
        )
        return [
            f"{node.name} is {what}: {self._remedy(node)}"
            for nodes, what in differing
            for node in nodes
        ]

    def _remedy(self, node: Node) -> str:
        """How to fix the membership of a node."""
        if not self.record.is_among_planes:
            return "heal or scale first, which fixes that"
        if not node.is_control_plane:
            return "scale in first, which takes it out"
        # Neither its heal nor the upgrade can continue without the other.
        return (
            "bring its former VM back, to continue with the upgrade to "
            f"{self.record.aim}, or heal without vnfcInstanceId to rebuild the whole "
            "cluster"
        )

    def _unreachable(self) -> list[str]:
        # kubespray would bring the former version back to half of the control planes.
        begun = self.record.is_among_planes
        remedy = "make it answer again" if begun else "heal it first"
        return [
            f"{name} cannot be used over SSH ({str(error).rstrip('.')}): {remedy}"
            for name, error in self._state.site.unusable(self._state.nodes).items()
        ]

    def _health_job(self, seen: NodeObjects, pending: frozenset[str]) -> list[str]:
        """The finding that no node runs kubeadm's health check.

        It runs while the first control plane is cordoned; kubeadm leaves it out if all
        nodes are.
        """
        planes = [node.name for node in self._state.control_planes()]
        others = [
            node
            for node in seen.values()
            if node.name != planes[0] and not node.unschedulable
        ]
        variables = self._state.params.kubespray_vars
        ignored = {str(name).lower() for name in variables.get(_IGNORED_CHECKS) or ()}
        if (
            pending.isdisjoint(planes)
            or not others
            or any(map(_HEALTH_JOB.fits, others))
            or ignored & {_HEALTH_CHECK.lower(), "all"}
        ):
            return []
        return [
            f"kubeadm checks the cluster by a Job while {planes[0]} is cordoned, and "
            f"no other node accepts its pod ({_refusals(others)}): remove a taint "
            "until the control planes are upgraded, or have kubeadm ignore the check "
            f'(kubespray_vars.{_IGNORED_CHECKS}: ["{_HEALTH_CHECK}"])'
        ]

    def _ill(self, seen: NodeObjects, problems: Mapping[str, str]) -> list[str]:
        """The nodes with which an upgrade must not begin."""
        ill = [
            f"the API server of {name}: {problem}"
            for name, problem in problems.items()
            if problem
        ]
        for node in self._state.nodes:
            if problem := _problem(node, seen):
                ill.append(f"{node.name}: {problem}")
        return [f"{finding}; fix or heal it first" for finding in ill]

    def _keep_majority(self, seen: NodeObjects, problems: Mapping[str, str]) -> None:
        """Check that etcd keeps its majority while one control plane is away."""
        planes = [
            quorum.ControlPlane(
                name=node.name,
                member=node.etcd_member_name,
                address=node.address,
                api_readiness=problems[node.name],
                node_problem=_problem(node, seen),
            )
            for node in self._state.control_planes()
        ]
        if len(planes) == 1:
            return
        members = self._state.via_control_plane(self._state.site.etcd).members()
        # A control plane that the last try has left unhealthy is the next.
        ill = [plane for plane in planes if plane.api_readiness or plane.node_problem]
        heals = not self.record.is_among_planes
        for plane in ill or planes:
            found = quorum.refusal(planes, members, [plane.name], heals=heals)
            if found:
                raise errors.ClusterError(
                    detail="The control planes cannot be upgraded one by one: "
                    f"{found.reason.rstrip('.')}.",
                    hint=found.hint,
                )


def _refusals(nodes: Collection[NodeObject]) -> str:
    """Why each of the nodes does not accept kubeadm's Job."""
    texts = []
    for node in nodes:
        taints = (t for t in node.taints if not _HEALTH_JOB.tolerates(t))
        shown = ", ".join(
            f"{taint['key']}={taint.get('value', '')}:{taint['effect']}".replace(
                "=:", ":"
            )
            for taint in taints
        )
        texts.append(f"{node.name}: {shown or 'not Ready'}")
    more = (
        f" and {len(texts) - _SHOWN_IN_FINDING} more"
        if len(texts) > _SHOWN_IN_FINDING
        else ""
    )
    return "; ".join(texts[:_SHOWN_IN_FINDING]) + more


def _problem(node: Node, seen: NodeObjects) -> str:
    """Why a node is not in service; "" if it is."""
    if node.name not in seen:
        return "it is not in the cluster"
    own = seen[node.name]
    return own.problem if own.ready else f"it is not Ready ({own.problem})"


_NO_WAY_BACK = (
    "Kubernetes cannot go back. Do not scale or heal before the upgrade has ended."
)
_SERVER = "check package and Ansible server"
_NODES = "check nodes, versions and control planes"
_SHOWN = 10  # nodes of each version in an error; the rest is counted


class UpgradeStart(Operation):
    """The steps of ``change_current_package_start``: checks that change nothing."""

    def __init__(self, deps: OperationContext) -> None:
        self._deps = deps
        self._check = UpgradeCheck(ClusterState(deps))

    def steps(self) -> Sequence[Step]:
        return (
            Step(
                "check-server",
                _SERVER,
                lambda: preconditions.check_server(self._deps.site),
                reads=True,
            ),
            Step("check-nodes", _NODES, self._check_nodes, reads=True),
        )

    def left(self) -> str:
        return self._check.left()

    def _check_nodes(self) -> None:
        self._check.check_cluster()
        # Tacker updates the stack, although with what it has.
        see_none_rebuilt(self._deps)


class Upgrade(Operation):
    """The steps of ``change_current_package_end``.

    How many there are is known when the pending nodes are.
    """

    def __init__(self, deps: OperationContext) -> None:
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
            Step(
                "check-server",
                _SERVER,
                lambda: preconditions.check_server(self._state.site),
                reads=True,
            ),
            Step("check-nodes", _NODES, self._check_cluster, reads=True),
        ]
        return self._steps

    def _check_cluster(self) -> None:
        self._check.check_cluster()
        self._steps += self._work()

    def _work(self) -> Sequence[Step]:
        """The steps for the nodes that do not have the version yet."""
        state, check = self._state, self._check
        begun = check.record.aim == check.aim
        planes = {node.name for node in state.control_planes()}
        planes_due = bool(check.pending & planes) or (
            begun and check.record.version != check.aim
        )
        batches = self._batches(begun)
        steps = []
        if planes_due or batches:
            steps += [
                Step(
                    "write-inventory",
                    "write inventory and variables",
                    # With the version of the request, not with that of the cluster.
                    lambda: playbook_inputs.write_inputs(
                        state, state.nodes, params=state.params
                    ),
                    rehearsed=True,
                ),
                Step(
                    "gather-facts",
                    "gather the facts of all hosts",
                    lambda: playbook_inputs.gather_facts(state),
                    probe=self._is_live,
                ),
            ]
        if planes_due:
            what = f"run {runs.UPGRADE} for the control planes"
            steps.append(
                Step(
                    "upgrade-control-planes",
                    what,
                    self._run_planes,
                    verify=self._end_planes,
                    effects=lambda: (
                        *self._upgraded(state.control_planes()),
                        *self._pods(state.control_planes()),
                    ),
                )
            )
        for number, names in enumerate(batches, 1):
            place = f"batch {number}/{len(batches)} of workers"
            batch = tuple(node for node in state.nodes if node.name in names)
            steps += self._batch_steps(place, batch)
        return [*steps, Step("record-version", "record the version", self._end)]

    def _batch_steps(self, place: str, batch: tuple[Node, ...]) -> Sequence[Step]:
        return (
            Step(
                "drain-batch",
                f"{place}: drain {names_of(batch)}",
                lambda: self._empty(batch),
                lambda: self._state.site.playbooks.live(self._run_of(batch)),
                effects=lambda: self._pods(batch),
            ),
            Step(
                "upgrade-batch",
                f"{place}: run {runs.UPGRADE}",
                lambda: self._begin(batch, self._run_of(batch)),
                verify=lambda: self._see(batch),
                effects=lambda: self._upgraded(batch, f"{place}, "),
            ),
            Step(
                "return-batch",
                f"{place}: return to service",
                lambda: self._end_batch(batch),
            ),
        )

    def left(self) -> str:
        """Return unfinished nodes to service; what stays behind, and the versions."""
        if not self._touched:
            return self._check.left()
        texts = (self._return_to_service(), self._versions_so_far(), _NO_WAY_BACK)
        return " ".join(filter(None, texts))

    def _upgraded(
        self, nodes: Sequence[Node], place: str = "one by one, "
    ) -> Iterator[NodeChange]:
        """The nodes in their order, with their versions, for a plan."""
        versions = self._versions(nodes)
        for node in nodes:
            why = f"{place}{versions[node.name]} to {self._check.aim}"
            yield NodeChange(node.name, UPGRADED, why)

    def _pods(self, batch: Sequence[Node]) -> tuple[PodMove, ...]:
        """The pods that the drain of these nodes moves, for a plan."""
        names, policy = [node.name for node in batch], self._state.params.drain
        return self._state.cluster().drain_outlook(names, policy)

    def _batches(self, begun: bool) -> Sequence[tuple[str, ...]]:
        names = [node.name for node in without_planes(self._state.nodes)]
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
        planes, record = self._state.control_planes(), self._check.record
        if record.aim != self._check.aim:
            seen = self._state.node_objects()
            free = [n.name for n in planes if not seen[n.name].unschedulable]
            # An upgrade that was abandoned may have left others cordoned.
            schedulable = tuple(dict.fromkeys((*record.schedulable, *free)))
            record = replace(record, schedulable=schedulable, batch=())
            self._note(replace(record, aim=self._check.aim))
        self._begin(planes, self._run_of())

    def _end_planes(self) -> None:
        self._see(self._state.control_planes())
        self._note(replace(self._check.record, version=self._check.aim))
        self._release(self._state.control_planes())

    # The workers

    def _empty(self, batch: tuple[Node, ...]) -> None:
        state, names = self._state, tuple(node.name for node in batch)
        aim = self._check.aim
        self._note(replace(self._check.record, version=aim, aim=aim, batch=names))
        self._in_hand, self._request, self._touched = batch, None, True
        if balancing.exists(state):
            balancing.status(state)
            balancing.remove(state, batch)
        state.cluster().cordon(names)
        state.cluster().drain(names, state.params.drain)

    def _end_batch(self, batch: tuple[Node, ...]) -> None:
        self._release(batch)
        self._note(replace(self._check.record, batch=()))

    # All of them

    def _begin(self, nodes: tuple[Node, ...], request: PlaybookRequest) -> None:
        self._in_hand, self._request, self._touched = nodes, request, True
        playbook_inputs.run(self._state, request, len(nodes))

    def _see(self, nodes: Sequence[Node]) -> None:
        """Wait until these nodes are Ready and have the version."""
        readiness.wait_ready(self._state, nodes)

        def problem() -> str:
            versions = self._versions(nodes).items()
            others = (f"{n}: {version}" for n, version in versions if version != aim)
            return "; ".join(others)

        aim = self._check.aim
        readiness.wait_until_healthy(
            self._state.deps,
            problem,
            f"these nodes have not got Kubernetes {aim}, though "
            f"{runs.UPGRADE} succeeded: {{left}}.",
            "See whether kube_version is set in the checkout's own files, which "
            "kubespray_vars may take back.",
        )

    def _versions(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """The version of each node for people; two where the API server differs."""
        seen, servers = self._state.node_objects(), self._check.api_servers()
        versions = {}
        for node in nodes:
            kubelet = seen[node.name].kubelet_version if node.name in seen else "none"
            version = kubelet.removeprefix("v")
            server = servers.get(node.name, "silent").removeprefix("v")
            if node.is_control_plane and server != version:
                version = f"{version} (API server {server})"
            versions[node.name] = version
        return versions

    def _release(self, nodes: tuple[Node, ...]) -> None:
        """Return these nodes to service, as far as they were before."""
        seen = self._state.node_objects()
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
        balancing.add(self._state, of_role(nodes, Role.WORKER))
        self._in_hand, self._request = (), None

    def _end(self) -> None:
        self._note(upgrade_plan.ClusterVersion(version=self._check.aim))

    def _note(self, record: upgrade_plan.ClusterVersion) -> None:
        self._check.record = record
        self._state.site.workdir.write(upgrade_plan.FILE_NAME, record.text())

    # After a failure

    def _return_to_service(self) -> str:
        """Return the nodes in hand to service, unless a run continues with them."""
        if not self._in_hand:
            return ""
        names = names_of(self._in_hand)
        try:
            if self._request and self._state.site.playbooks.live(self._request):
                return f"The run continues with {names}, which stay as they are."
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
