# SPDX-License-Identifier: Apache-2.0
"""The checks before a cluster gets another Kubernetes version.

An upgrade begins only if all nodes are there and well, the version may follow theirs,
and etcd keeps its majority while the control planes are away one by one. An interrupted
upgrade goes on with the nodes that it has left ill.
"""

from collections.abc import Collection, Mapping

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.lifecycle.steps import clocks
from tacker_k8s_mgmt.lifecycle.steps.compare import compare
from tacker_k8s_mgmt.model import quorum
from tacker_k8s_mgmt.model.cluster import NodeObject, unfinished
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.model.pods import Placement
from tacker_k8s_mgmt.topology import upgrade_plan
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
_SHOWN = 5  # nodes in a finding; the rest is counted

_SILENT = (errors.ConnectError, errors.CommandFailed, errors.CommandTimeout)


class UpgradeCheck:
    """Checks whether an upgrade may begin or go on, and changes nothing.

    :ivar aim: the Kubernetes version of the request, without v.
    :ivar record: the recorded version and upgrade.
    :ivar pending: names of the nodes whose API server or kubelet has another version.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.aim = (state.params.cluster.kubernetes_version or "").removeprefix("v")
        self.record = upgrade_plan.Record()
        self.pending: frozenset[str] = frozenset()

    def left(self) -> str:
        """What stays behind when the check fails."""
        begun = self._begun()
        if not begun:
            return "No node was touched."
        return (
            "This try touched no node, but an earlier one has begun an upgrade to "
            f"Kubernetes {begun}. Any request for {begun} goes on with it; do not "
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
        """
        members, seen = compare(self._state)
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
        clocks.see(self._state, self._state.nodes)
        silent = {node.name for node in self._state.planes()} - servers.keys()
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
        for plane in self._state.planes():
            try:
                versions[plane.name] = self._state.site.cluster(plane).version()
            except _SILENT as error:
                LOG.warning("The API server of %s: %s", plane.name, error)
        return versions

    def _problems(self) -> Mapping[str, str]:
        """The problem of each control plane's API server, "" for none."""
        problems = {}
        for plane in self._state.planes():
            try:
                problems[plane.name] = self._state.site.cluster(plane).api_problem()
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
            (members.vanished, "in the inventory, and its VM is gone"),
            (members.joining, "a worker VM that is not in the cluster"),
        )
        return [
            f"{node.name} is {what}: {self._remedy(node)}"
            for nodes, what in differing
            for node in nodes
        ]

    def _remedy(self, node: Node) -> str:
        """How to mend the membership of a node."""
        if not self.record.is_among_planes:
            return "heal or scale first, which mends that"
        if node.role is Role.WORKER:
            return "scale in first, which takes it out"
        # Neither its heal nor the upgrade can go on without the other.
        return (
            f"bring its former VM back, to go on with the upgrade to {self.record.aim}"
            ", or heal without vnfcInstanceId to build the whole cluster anew"
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
        planes = [node.name for node in self._state.planes()]
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
        return [f"{finding}; mend or heal it first" for finding in ill]

    def _keep_majority(self, seen: NodeObjects, problems: Mapping[str, str]) -> None:
        """Check that etcd keeps its majority while one control plane is away."""
        planes = [
            quorum.ControlPlane(
                name=node.name,
                member=node.etcd_member_name,
                address=node.address,
                api_problem=problems[node.name],
                node_problem=_problem(node, seen),
            )
            for node in self._state.planes()
        ]
        if len(planes) == 1:
            return
        members = self._state.through(self._state.site.etcd).members()
        # A control plane that the last try has left ill is the next to be upgraded.
        ill = [plane for plane in planes if plane.api_problem or plane.node_problem]
        mend = "Mend" if self.record.is_among_planes else "Mend or heal"
        for plane in ill or planes:
            reason = quorum.refusal(planes, members, [plane.name])
            if reason:
                raise errors.ClusterError(
                    detail=f"The control planes cannot be upgraded one by one: {reason}"
                    f"{'' if reason.endswith('.') else '.'}",
                    hint=f"{mend} those that are not well.",
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
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more


def _problem(node: Node, seen: NodeObjects) -> str:
    """Why a node is not in service; "" if it is."""
    if node.name not in seen:
        return "it is not in the cluster"
    own = seen[node.name]
    return unfinished(own.taints) if own.ready else f"it is not Ready ({own.reason})"
