"""Parallel ``kubectl drain`` of several nodes over one SSH login."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.cluster import NodeObject
from tacker_k8s_mgmt.model.drain import DrainPolicy, Outcome, advice, report
from tacker_k8s_mgmt.model.pods import Pod, movable_pods, read_budgets
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.node_cleanup import delete_pods, pods_on

LOG = logging.getLogger(__name__)

# sshd's default limit (MaxSessions) is ten channels per login.
_AT_ONCE = 8
# Seconds from drain's own time limit to that of the command: drain checks it between
# requests only, and its error has more details.
_MARGIN = 90.0


def drain(client: KubeClient, nodes: Sequence[NodeObject], policy: DrainPolicy) -> None:
    """Drain nodes in parallel, within the limits of policy and sshd."""
    if not nodes:
        return
    with ThreadPoolExecutor(min(policy.parallel, _AT_ONCE)) as pool:
        runs = [pool.submit(_Drain(client, node, policy).run) for node in nodes]
    for error in filter(None, [run.exception() for run in runs]):
        raise error
    outcomes = [run.result() for run in runs]
    failed = sum(not outcome.ok for outcome in outcomes)
    if failed:
        raise errors.DrainError(
            failed=failed,
            outcomes=[report(outcome) for outcome in outcomes],
            hint=advice(outcomes, policy),
        )


class _Drain:
    """The drain of one node."""

    def __init__(
        self, client: KubeClient, node: NodeObject, policy: DrainPolicy
    ) -> None:
        self._client = client
        self._node = node
        self._policy = policy
        # A silent kubelet does not report that its pods have ended.
        self._kubelet_reports = node.ready
        self._before: tuple[Pod, ...] = ()

    def run(self) -> Outcome:
        """Drain the node.

        :raises ConnectError: the control-plane node can no longer be reached.
        """
        self._began = time.monotonic()
        try:
            self._before = movable_pods(pods_on(self._client, self._node.name))
        except errors.ConnectError:
            raise
        except errors.K8sMgmtError as error:
            return Outcome(self._node.name, 0, error=str(error))
        outcome = self._outcome(self._evict(forced=False))
        if not outcome.ok:
            LOG.warning("%s", report(outcome))
            if self._policy.on_failure == "force":
                outcome = self._force(outcome)
        if outcome.ok:
            LOG.info("%s", report(outcome))
        return outcome

    def _force(self, outcome: Outcome) -> Outcome:
        """Delete pods that were not evicted: with their grace period, then at once."""
        self._warn("deleted without asking their budgets", outcome)
        outcome = self._outcome(self._evict(forced=True))
        if outcome.ok:
            return outcome
        self._warn("deleted at once", outcome)
        # Pods that are left have a finalizer, which does not keep the node.
        self._kubelet_reports = False
        try:
            delete_pods(self._client, outcome.left)
        except (errors.CommandFailed, errors.CommandTimeout) as error:
            return self._outcome(str(error))
        return self._outcome(outcome.error)

    def _warn(self, what: str, outcome: Outcome) -> None:
        pods = ", ".join(map(str, outcome.left)) or "whatever is left"
        LOG.warning("%s, drain.on_failure is force, %s: %s", outcome.node, what, pods)

    def _evict(self, forced: bool) -> str:
        """Run ``kubectl drain``; returns why it failed, or "".

        ``--force`` deletes pods without a controller, which end with the node anyway.
        """
        policy = self._policy
        empty_dirs = str(policy.delete_emptydir_data or forced).lower()
        no_eviction = str(policy.disable_eviction or forced).lower()
        options = [
            "--ignore-daemonsets",
            "--force",
            f"--delete-emptydir-data={empty_dirs}",
            f"--grace-period={policy.grace_period}",
            f"--timeout={policy.timeout}s",
            f"--disable-eviction={no_eviction}",
        ]
        if not self._kubelet_reports:
            # Do not wait longer than each pod's grace period.
            options.append("--skip-wait-for-delete-timeout=1")
        limit = policy.timeout + _MARGIN
        try:
            self._client.run("drain", self._node.name, *options, limit=limit)
        except errors.CommandFailed as error:
            return str(error.fields["tail"])
        except errors.CommandTimeout as error:
            return str(error)
        return ""

    def _outcome(self, reason: str) -> Outcome:
        """Return the outcome; a failed drain that left no pods is a success."""
        node, seconds = self._node, time.monotonic() - self._began
        if not reason:
            return Outcome(node.name, seconds, gone=self._before)
        try:
            left = tuple(
                pod
                for pod in movable_pods(pods_on(self._client, node.name))
                if self._kubelet_reports or not pod.terminating
            )
            if not left:
                return Outcome(node.name, seconds, gone=self._before)
            kind = ("poddisruptionbudgets", "--all-namespaces")
            budgets = self._client.get(*kind, read=read_budgets)
        except errors.ConnectError:
            raise
        except errors.K8sMgmtError as error:
            return Outcome(node.name, seconds, error=f"{reason}; then: {error}")
        remaining = {str(pod) for pod in left}
        gone = tuple(pod for pod in self._before if str(pod) not in remaining)
        return Outcome(node.name, seconds, left, budgets, reason, gone)
