# SPDX-License-Identifier: Apache-2.0
"""Parallel ``kubectl drain`` of several nodes over one SSH login."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.cluster import NodeObject
from tacker_k8s_mgmt.model.drain import Outcome, report
from tacker_k8s_mgmt.model.pods import Pod, read_budgets
from tacker_k8s_mgmt.plain_text import in_line
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.node_cleanup import delete_pods, pods_on
from tacker_k8s_mgmt.request.drain_policy import Attempt, DrainPolicy

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
            hint=policy.advice(outcomes),
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
            self._before = self._movable()
        except errors.ConnectError:
            raise
        except errors.K8sMgmtError as error:
            return Outcome(self._node.name, 0, error=str(error))
        failed: list[Outcome] = []
        while attempt := self._policy.attempt(failed, reports=self._kubelet_reports):
            if failed:
                self._warn(attempt.what, failed[-1])
            outcome = self._outcome(self._make(attempt, failed))
            if outcome.ok:
                LOG.info("%s", in_line(report(outcome)))
                return outcome
            LOG.warning("%s", in_line(report(outcome)))
            failed.append(outcome)
        return failed[-1]

    def _warn(self, what: str, outcome: Outcome) -> None:
        pods = ", ".join(map(str, outcome.left)) or "whatever is left"
        on_failure = self._policy.on_failure
        LOG.warning(
            "%s, drain.on_failure is %s, %s: %s", outcome.node, on_failure, what, pods
        )

    def _make(self, attempt: Attempt, failed: Sequence[Outcome]) -> str:
        """Make an attempt; returns why it failed, or "" if no pod can be left."""
        if attempt.options:
            return self._kubectl_drain(attempt.options)
        # Pods that are left have a finalizer, which does not keep the node.
        self._kubelet_reports = False
        try:
            delete_pods(self._client, attempt.pods)
        except (errors.CommandFailed, errors.CommandTimeout) as error:
            return str(error)
        return failed[-1].error

    def _kubectl_drain(self, options: Sequence[str]) -> str:
        limit = self._policy.timeout + _MARGIN
        try:
            self._client.run("drain", self._node.name, *options, limit=limit)
        except errors.CommandFailed as error:
            return str(error.fields["tail"])
        except errors.CommandTimeout as error:
            return str(error)
        return ""

    def _movable(self) -> tuple[Pod, ...]:
        return self._policy.movable(pods_on(self._client, self._node.name))

    def _outcome(self, reason: str) -> Outcome:
        """Return the outcome; a failed drain that left no pods is a success."""
        node, seconds = self._node, time.monotonic() - self._began
        if not reason:
            return Outcome(node.name, seconds, gone=self._before)
        try:
            left = tuple(
                pod
                for pod in self._movable()
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
