# SPDX-License-Identifier: Apache-2.0
"""Nodes are drained, and cleaned up after they have left.

Several nodes are drained in parallel over one SSH login. kubectl waits for budgets, and
ends at any other error of an eviction. Most of these pass: an API server, an admission
webhook or etcd's leader has changed, or the pod has. So the drain is repeated until its
time limit, and only then forced, if it may be.

What nodes leave behind are pods, VolumeAttachments and Node objects.
"""

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import NodeObject
from tacker_k8s_mgmt.model.plan import PodMove
from tacker_k8s_mgmt.model.pods import Budget, DrainOutcome, Pod, no_other_node, report
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.request.drain_policy import DrainAttempt, DrainPolicy
from tacker_k8s_mgmt.text import in_line

LOG = logging.getLogger(__name__)

# With this taint the cluster frees the node's pods and volumes without waiting for its
# kubelet, too (Kubernetes, "Non-graceful node shutdown handling").
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
_ATTACHMENT = "VolumeAttachment"


def force_evict(client: KubeClient, names: Sequence[str]) -> None:
    """Free pods and volumes of nodes without a machine; see ``ClusterApi``."""
    if not names:
        return
    client.run("taint", "node", *names, _OUT_OF_SERVICE, "--overwrite")
    for name in names:
        delete_pods(client, pods_on(client, name))
    _delete_attachments(client, _remaining(client, names)[1])


def remove_nodes(client: KubeClient, names: Sequence[str], limit: float) -> None:
    """Delete Node objects and their VolumeAttachments; see ``ClusterApi``.

    :param limit: seconds until the Node objects are gone, and again until the volumes
        are detached. A late volume is only logged, because its driver continues.
    """
    if not names:
        return
    client.delete(_object("v1", "Node", name) for name in names)
    waiting = Backoff(limit)
    while True:
        left, volumes = _remaining(client, names)
        if not left:
            break
        if waiting.spent():
            raise errors.ClusterError(
                detail=f"The nodes {', '.join(left)} are still in the cluster "
                f"{limit:g} s after they were deleted.",
                hint="Look at their finalizers, and whether a kubelet registers them "
                "again.",
            )
        waiting.pause()
    _delete_attachments(client, volumes)
    waiting = Backoff(limit)
    while volumes:
        if waiting.spent():
            shown = ", ".join(volumes)
            LOG.warning("%s: still being detached: %s", client.host, shown)
            return
        waiting.pause()
        volumes = _remaining(client, names)[1]


def pods_on(client: KubeClient, node: str) -> tuple[Pod, ...]:
    """Return all pods that are bound to a node."""
    where = f"--field-selector=spec.nodeName={node}"
    return tuple(client.table("pods", Pod.FIELDS, Pod.read, where, everywhere=True))


def delete_pods(client: KubeClient, pods: Iterable[Pod]) -> None:
    """Delete pods at once, without waiting for their kubelet."""
    items = [_object("v1", "Pod", pod.name, namespace=pod.namespace) for pod in pods]
    if items:
        client.delete(items, "--grace-period=0", "--force")


def _remaining(
    client: KubeClient, names: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return those nodes that still exist, and VolumeAttachments of all of them."""
    fields = (".kind", ".metadata.name", ".spec.nodeName")
    rows = client.table("nodes,volumeattachments", fields, read=lambda *row: row)
    nodes = (name for kind, name, _ in rows if kind == "Node" and name in names)
    volumes = [name for kind, name, at in rows if kind == _ATTACHMENT and at in names]
    return sorted(nodes), volumes


def _delete_attachments(client: KubeClient, names: Sequence[str]) -> None:
    if names:
        group = "storage.k8s.io/v1"
        client.delete(_object(group, _ATTACHMENT, name) for name in names)


def _object(version: str, kind: str, name: str, **metadata: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}


# sshd's default limit (MaxSessions) is ten channels per login.
_AT_ONCE = 8
# Seconds from drain's own time limit to that of the command: drain checks it between
# requests only, and its error has more details.
_MARGIN = 90.0
_LONGEST_PAUSE = 2.0  # seconds between tries
_DELETE_LIMIT = 60.0  # seconds for the deletion of what is left by force


def drain(
    client: KubeClient,
    nodes: Sequence[NodeObject],
    policy: DrainPolicy,
    every: Callable[[], Sequence[NodeObject]],
) -> None:
    """Drain nodes in parallel, within the limits of policy and sshd.

    :param every: reads all nodes of the cluster.
    """
    if not nodes:
        return
    with ThreadPoolExecutor(min(policy.parallel, _AT_ONCE)) as pool:
        runs = [pool.submit(_Drain(client, node, policy).run) for node in nodes]
    for error in filter(None, [run.exception() for run in runs]):
        raise error
    outcomes = [run.result() for run in runs]
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if failed:
        raise errors.DrainError(
            failed=len(failed),
            outcomes=[report(outcome) for outcome in outcomes],
            no_other_node=_no_other_node(failed, nodes, every),
            hint=policy.advice(outcomes),
        )


def outlook(
    client: KubeClient,
    nodes: Sequence[NodeObject],
    policy: DrainPolicy,
    every: Sequence[NodeObject],
) -> tuple[PodMove, ...]:
    """Return the pods that a drain would move, and what keeps them; changes nothing.

    :param every: all nodes of the cluster.
    """
    if not nodes:
        return ()
    leaving, budgets = {node.name for node in nodes}, _budgets(client)
    found = []
    for node in nodes:
        pods = policy.evictable(pods_on(client, node.name))
        kept = policy.kept(DrainOutcome(node.name, 0, left=pods, budgets=budgets))
        found += [
            PodMove(
                node.name,
                str(pod),
                kept.get(pod, ()),
                blocks=pod in kept and policy.on_failure != "force",
                lost=not pod.controller,
                stranded=no_other_node([pod], leaving, every),
            )
            for pod in pods
        ]
    return tuple(found)


def _budgets(client: KubeClient) -> tuple[Budget, ...]:
    kind = "poddisruptionbudgets"
    return tuple(client.table(kind, Budget.FIELDS, Budget.read, everywhere=True))


def _no_other_node(
    failed: Sequence[DrainOutcome],
    leaving: Sequence[NodeObject],
    every: Callable[[], Sequence[NodeObject]],
) -> bool:
    """Whether it is known that no pod that is left can run on another node."""
    if not all(outcome.left for outcome in failed):
        return False
    pods = [pod for outcome in failed for pod in outcome.left]
    try:
        return no_other_node(pods, {node.name for node in leaving}, every())
    except errors.K8sMgmtError as error:
        LOG.warning("Where the pods that are left could run is not known: %s", error)
        return False


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
        self._before: tuple[Pod, ...] | None = None

    def run(self) -> DrainOutcome:
        """Drain the node.

        :raises ConnectError: the control-plane node can no longer be reached.
        """
        self._began = time.monotonic()
        failed: list[DrainOutcome] = []
        while attempt := self._policy.attempt(failed, reports=self._kubelet_reports):
            if failed:
                self._warn(attempt.what, failed[-1])
            outcome = self._repeated(attempt)
            if outcome.ok:
                LOG.info("%s", in_line(report(outcome)))
                return outcome
            LOG.warning("%s", in_line(report(outcome)))
            failed.append(outcome)
        return failed[-1]

    def _repeated(self, attempt: DrainAttempt) -> DrainOutcome:
        """Make an attempt, again and again until its time limit."""
        limit = float(self._policy.timeout)
        if not attempt.options:
            limit = min(limit, _DELETE_LIMIT)
        waiting = Backoff(limit, longest=_LONGEST_PAUSE)
        while True:
            outcome = self._try(attempt, limit - waiting.elapsed())
            if outcome.ok or waiting.spent() or self._policy.gives_up(outcome):
                return outcome
            LOG.info("The drain is repeated: %s", in_line(report(outcome)))
            waiting.pause()

    def _warn(self, what: str, outcome: DrainOutcome) -> None:
        pods = ", ".join(map(str, outcome.left)) or "whatever is left"
        on_failure = self._policy.on_failure
        LOG.warning(
            "%s, drain.on_failure is %s, %s: %s", outcome.node, on_failure, what, pods
        )

    def _make(self, attempt: DrainAttempt, limit: float) -> str:
        """Make an attempt once; returns why it failed, or "" if no pod can be left.

        :param limit: seconds.
        """
        try:
            if attempt.options:
                # For kubectl, 0 is no limit.
                timeout = f"--timeout={max(1, math.ceil(limit))}s"
                command = ("drain", self._node.name, *attempt.options, timeout)
                self._client.run(*command, limit=limit + _MARGIN, patience=0)
                return ""
            # Pods that are left have a finalizer, which does not keep the node.
            self._kubelet_reports = False
            delete_pods(self._client, attempt.pods or self._movable())
        except errors.CommandFailed as error:
            return str(error.fields["tail"])
        except errors.CommandTimeout as error:
            return str(error)
        return "pods are left that were deleted at once"

    def _movable(self) -> tuple[Pod, ...]:
        return self._policy.evictable(pods_on(self._client, self._node.name))

    def _try(self, attempt: DrainAttempt, limit: float) -> DrainOutcome:
        """Make an attempt once; if it failed and has left no pods, it is a success."""
        reason = ""
        try:
            if self._before is None:
                self._before = self._movable()
            before = self._before
            reason = self._make(attempt, limit)
            if not reason:
                return DrainOutcome(self._node.name, self._seconds(), gone=before)
            left = tuple(
                pod
                for pod in self._movable()
                if self._kubelet_reports or not pod.terminating
            )
            if not left:
                return DrainOutcome(self._node.name, self._seconds(), gone=before)
            budgets = _budgets(self._client)
        except errors.ConnectError:
            raise
        except errors.K8sMgmtError as error:
            text = f"{reason}; then: {error}" if reason else str(error)
            return DrainOutcome(self._node.name, self._seconds(), error=text)
        remaining = {str(pod) for pod in left}
        gone = tuple(pod for pod in before if str(pod) not in remaining)
        return DrainOutcome(
            self._node.name, self._seconds(), left, budgets, reason, gone
        )

    def _seconds(self) -> float:
        return time.monotonic() - self._began
