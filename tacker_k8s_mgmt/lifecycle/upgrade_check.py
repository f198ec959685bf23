"""What is looked at before a cluster gets another Kubernetes version.

Nothing is moved unless every node is there and well, the version may follow on those
that there are, and etcd keeps its majority while one control plane after the other is
away. An upgrade that has stopped half-way is taken up again with what it has left ill.
"""

import logging
from collections.abc import Collection, Mapping, Sequence

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.operation import Operation
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.model import quorum
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.topology import upgrade_plan
from tacker_k8s_mgmt.topology.membership import Membership

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_ANSWERLESS = (errors.ConnectError, errors.CommandFailed, errors.CommandTimeout)


class UpgradeStart(Operation):
    """The steps of ``change_current_package_start``: looks, and changes nothing."""

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps)
        self._aim = (self._params.cluster.kubernetes_version or "").removeprefix("v")
        self._record = upgrade_plan.Record()
        #: Nodes whose API server or kubelet has another version than is wanted.
        self._pending: frozenset[str] = frozenset()

    def steps(self) -> Sequence[Step]:
        """The steps in the order of work."""
        return [
            Step("check package and Ansible server", self._check_server),
            Step("check nodes, versions and control planes", self._check_cluster),
        ]

    def left(self) -> str:
        """What stays behind when a step fails."""
        begun = self._begun()
        if not begun:
            return "No node was touched."
        return (
            "This try touched no node, but an earlier one has begun an upgrade to "
            f"Kubernetes {begun}. Any request for {begun} goes on with it; do not "
            "scale or heal before it has ended."
        )

    def _begun(self) -> str:
        """The version of an upgrade that is under way; "" for none that is known."""
        try:
            # Read anew, for the first step may have failed.
            return self._records.upgrade().aim
        except errors.K8sMgmtError as error:
            LOG.warning("Whether an upgrade has begun is not known: %s", error)
            return self._record.aim

    def _check_server(self) -> None:
        findings = [*self._site.package_findings(), *self._site.server_findings()]
        if findings:
            raise errors.PreflightError(findings)

    def _check_cluster(self) -> None:
        found, seen = self._compare()
        self._record = self._records.upgrade()
        servers = self._api_servers()
        kubelets = {
            node.name: seen[node.name].kubelet_version
            for node in self._nodes
            if node.name in seen
        }
        state = upgrade_plan.State(servers, kubelets)
        plan, reasons = upgrade_plan.plan(state, self._aim, ())
        findings = [*self._membership(found), *self._unreachable(), *reasons]
        problems = self._problems()
        if not self._record.aim:
            findings += self._ill(seen, problems)
        if plan is None or findings:
            raise errors.PreflightError(findings)
        silent = {node.name for node in self._planes()} - servers.keys()
        self._pending = frozenset({*plan.pending, *silent})
        if self._pending:
            self._keep_majority(seen, problems)
        LOG.info(
            "Nodes that have not got Kubernetes %s: %s",
            self._aim,
            ", ".join(sorted(self._pending)) or "none",
        )

    def _cluster(self) -> ports.Cluster:
        """The cluster through the first control plane whose own API server is ready."""
        planes = self._planes()
        for plane in planes if len(planes) > 1 else ():
            try:
                cluster = self._site.cluster(plane)
                if not cluster.api_problem():
                    return cluster
            except errors.ConnectError as error:
                LOG.warning("The next control plane is asked: %s", error)
        return super()._cluster()

    def _api_servers(self) -> dict[str, str]:
        """Versions of the API servers that answer, by control plane."""
        found = {}
        for plane in self._planes():
            try:
                found[plane.name] = self._site.cluster(plane).version()
            except _ANSWERLESS as error:
                LOG.warning("The API server of %s: %s", plane.name, error)
        return found

    def _problems(self) -> Mapping[str, str]:
        """What is wrong with each control plane's own API server, "" for nothing."""
        found = {}
        for plane in self._planes():
            try:
                found[plane.name] = self._site.cluster(plane).api_problem()
            except errors.ConnectError as error:
                found[plane.name] = str(error)
        return found

    def _membership(self, found: Membership) -> list[str]:
        """Where Heat, the inventory and the cluster do not fit together."""
        differing = (
            (found.lost, "a control plane whose VM is gone or was replaced"),
            (found.added, "a new VM of the control plane, which cannot be scaled"),
            (
                found.returning,
                "a control plane that a heal has taken out and not joined",
            ),
            (found.vanished, "in the inventory, and its VM is gone"),
            (found.joining, "a worker VM that is not in the cluster"),
        )
        return [
            f"{node.name} is {what}: {self._remedy(node)}"
            for nodes, what in differing
            for node in nodes
        ]

    def _remedy(self, node: Node) -> str:
        """What mends the membership of a node."""
        if not self._record.is_among_planes:
            return "heal or scale first, which mends that"
        if node.role is Role.WORKER:
            return "scale in first, which takes it out"
        # Neither its heal nor the upgrade can go on without the other.
        return (
            f"bring its former VM back, to go on with the upgrade to {self._record.aim}"
            ", or heal without vnfcInstanceId to build the whole cluster anew"
        )

    def _unreachable(self) -> list[str]:
        # kubespray would bring the former version back to half of the control planes.
        begun = self._record.is_among_planes
        remedy = "make it answer again" if begun else "heal it first"
        return [
            f"{name} does not accept an SSH login: {remedy}"
            for name in self._site.unreachable(self._nodes)
        ]

    def _ill(
        self, seen: Mapping[str, ports.ClusterNode], problems: Mapping[str, str]
    ) -> list[str]:
        """What an upgrade must not begin with."""
        found = [
            f"the API server of {name}: {problem}"
            for name, problem in problems.items()
            if problem
        ]
        for node in self._nodes:
            problem = _problem(node, seen)
            if problem:
                found.append(f"{node.name}: {problem}")
        return [f"{finding}; mend or heal it first" for finding in found]

    def _keep_majority(
        self, seen: Mapping[str, ports.ClusterNode], problems: Mapping[str, str]
    ) -> None:
        """See that the others suffice while one control plane is away.

        :raises ClusterError: they would not; says who is well.
        """
        planes = [
            quorum.ControlPlane(
                name=node.name,
                member=node.etcd_member_name,
                address=node.address,
                api_problem=problems[node.name],
                node_problem=_problem(node, seen),
            )
            for node in self._planes()
        ]
        if len(planes) == 1:
            return
        members = self._through(self._site.etcd).members()
        # One that the last try has left ill is the one that this one mends.
        ill = [one for one in planes if one.api_problem or one.node_problem]
        mend = "Mend" if self._record.is_among_planes else "Mend or heal"
        for plane in ill or planes:
            reason = quorum.refusal(planes, members, [plane.name])
            if reason:
                raise errors.ClusterError(
                    detail=f"The control planes cannot be upgraded one by one: {reason}"
                    f"{'' if reason.endswith('.') else '.'}",
                    hint=f"{mend} those that are not well.",
                )


def of_role(nodes: Sequence[Node], role: Role) -> tuple[Node, ...]:
    """Those of the nodes that have the role, in their order."""
    return tuple(node for node in nodes if node.role is role)


def named(nodes: Sequence[Node], names: Collection[str]) -> tuple[Node, ...]:
    """Those of the nodes that have these names, in their order."""
    return tuple(node for node in nodes if node.name in names)


def _problem(node: Node, seen: Mapping[str, ports.ClusterNode]) -> str:
    """Why a node is not Ready; "" if it is."""
    if node.name not in seen:
        return "it is not in the cluster"
    own = seen[node.name]
    return "" if own.ready else f"it is not Ready ({own.reason})"
