"""Empties nodes with ``kubectl drain``, several at once over one SSH login."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.drain import DrainPolicy, Outcome, Target, advice, report
from tacker_k8s_mgmt.model.pods import Pod, movable_pods, read_budgets
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.node_cleanup import delete_pods, pods_on

LOG = logging.getLogger(__name__)

# sshd lets one login have ten channels, unless it is told otherwise (MaxSessions).
_AT_ONCE = 8
# Seconds between drain's own limit and the end of its command: it looks at its limit
# between requests only, and its error says more than ours.
_MARGIN = 90.0


def drain(client: KubeClient, nodes: Sequence[Target], policy: DrainPolicy) -> None:
    """Drain nodes side by side; all drains have ended when this returns or raises.

    At most ``policy.parallel`` at once, and never more than sshd lets one login do.

    :raises DrainError: pods are left on a node.
    :raises RemoteError: the control-plane node could no longer be reached.
    """
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

    def __init__(self, client: KubeClient, node: Target, policy: DrainPolicy) -> None:
        self._client = client
        self._node = node
        self._policy = policy
        # Nobody says that pods have ended whose kubelet is silent.
        self._ends_are_told = node.ready
        self._began = time.monotonic()
        self._before: tuple[Pod, ...] = ()

    def run(self) -> Outcome:
        """Do it.

        :raises ConnectError: the control-plane node could no longer be reached.
        """
        self._began = time.monotonic()
        try:
            self._before = movable_pods(pods_on(self._client, self._node.name))
        except errors.ConnectError:
            raise
        except errors.K8sMgmtError as error:
            return Outcome(self._node.name, 0, words=str(error))
        words = self._evict(forced=False)
        outcome = self._outcome(words)
        if not outcome.ok:
            LOG.warning("%s", report(outcome))
            if self._policy.on_failure == "force":
                outcome = self._force(outcome)
        if outcome.ok:
            LOG.info("%s", report(outcome))
        return outcome

    def _force(self, outcome: Outcome) -> Outcome:
        """Delete what was not evicted: with each pod's grace first, then at once."""
        self._warn("deleted without asking their budgets", outcome)
        outcome = self._outcome(self._evict(forced=True))
        if outcome.ok:
            return outcome
        self._warn("deleted at once", outcome)
        # What is left then has a finalizer, and the node goes all the same.
        self._ends_are_told = False
        try:
            delete_pods(self._client, outcome.left)
        except (errors.CommandFailed, errors.CommandTimeout) as error:
            return self._outcome(str(error))
        return self._outcome(outcome.words)

    def _warn(self, what: str, outcome: Outcome) -> None:
        pods = ", ".join(map(str, outcome.left)) or "whatever is left"
        LOG.warning("%s, drain.on_failure is force, %s: %s", outcome.node, what, pods)

    def _evict(self, forced: bool) -> str:
        """Run ``kubectl drain``; returns why it failed, "" if it did not.

        ``--force`` is about bare pods: nobody makes them again, and the node goes.
        """
        policy = self._policy
        options = [
            "--ignore-daemonsets",
            "--force",
            f"--delete-emptydir-data={_flag(policy.delete_emptydir_data or forced)}",
            f"--grace-period={policy.grace_period}",
            f"--timeout={policy.timeout}s",
            f"--disable-eviction={_flag(policy.disable_eviction or forced)}",
        ]
        if not self._ends_are_told:
            # Each pod has its grace, and is not waited for any longer.
            options.append("--skip-wait-for-delete-timeout=1")
        command = ("drain", self._node.name, *options)
        try:
            self._client.run(*command, limit=policy.timeout + _MARGIN)
        except errors.CommandFailed as error:
            return str(error.fields["tail"])
        except errors.CommandTimeout as error:
            return str(error)
        return ""

    def _outcome(self, words: str) -> Outcome:
        """See what a drain that failed has left; that is what counts."""
        node, seconds = self._node, time.monotonic() - self._began
        if not words:
            return Outcome(node.name, seconds, gone=self._before)
        try:
            left = tuple(
                pod
                for pod in movable_pods(pods_on(self._client, node.name))
                if self._ends_are_told or not pod.terminating
            )
            if not left:
                return Outcome(node.name, seconds, gone=self._before)
            kind = ("poddisruptionbudgets", "--all-namespaces")
            budgets = self._client.get(*kind, read=read_budgets)
        except errors.ConnectError:
            raise
        except errors.K8sMgmtError as error:
            return Outcome(node.name, seconds, words=f"{words}; then: {error}")
        there = {str(pod) for pod in left}
        gone = tuple(pod for pod in self._before if str(pod) not in there)
        return Outcome(node.name, seconds, left, budgets, words, gone)


def _flag(value: bool) -> str:
    return "true" if value else "false"
