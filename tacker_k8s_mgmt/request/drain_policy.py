# SPDX-License-Identifier: Apache-2.0
"""The parameter ``drain``: its options, and all that they decide.

:mod:`tacker_k8s_mgmt.remote.kubernetes.draining` carries the attempts out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tacker_k8s_mgmt.model.pods import DrainOutcome, Pod
from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.request.structure import Structure


@dataclass(frozen=True)
class DrainAttempt:
    """One attempt to empty a node.

    :param options: of ``kubectl drain``, without its time limit; none: *pods* are
        deleted at once, without waiting for their kubelet.
    :param what: is done with the pods that the attempt before has left, for the log.
    """

    options: tuple[str, ...] = ()
    pods: tuple[Pod, ...] = ()
    what: str = ""


class DrainPolicy(Structure):
    """How pods leave a node before it is taken out of the cluster."""

    timeout: fields.Seconds = 300
    """Seconds that the drain of one node may take. Default: 300."""
    grace_period: fields.GracePeriod = -1
    """Seconds that each pod gets to end; -1 stands for the pod's own
    terminationGracePeriodSeconds. Default: -1."""
    on_failure: Literal["abort", "force"] = "abort"
    """What to do when pods cannot leave in time, for example because of a
    PodDisruptionBudget: abort stops before a node is removed, force removes the node
    with them. Default: abort."""
    delete_emptydir_data: fields.Flag = True
    """Evict pods with emptyDir volumes too, whose data is lost; without it such a pod
    fails the drain, unless on_failure is force. Default: true."""
    disable_eviction: fields.Flag = False
    """Delete pods in place of evicting them, which passes over PodDisruptionBudgets.
    Default: false."""
    parallel: fields.Count = 5
    """How many nodes are drained at once. Default: 5."""

    def evictable(self, pods: Iterable[Pod]) -> tuple[Pod, ...]:
        """Those pods of a node that have to leave it, as ``kubectl drain`` sees it.

        These exclude pods of DaemonSets, static pods, which only the kubelet can end,
        and finished ones.
        """
        return tuple(
            pod
            for pod in pods
            if not (pod.finished or pod.mirror or pod.controller == "DaemonSet")
        )

    def attempt(
        self, failed: Sequence[DrainOutcome], *, reports: bool
    ) -> DrainAttempt | None:
        """The next attempt to empty a node; None: there is none left.

        Each is repeated until its time limit. With ``force``, pods that are left then
        are deleted: with their grace period, then at once.

        :param failed: the outcomes of the attempts before.
        :param reports: whether the kubelet reports that pods have ended.
        """
        forced = self.on_failure == "force"
        match len(failed):
            case 0:
                return DrainAttempt(self._options(reports))
            case 1 if forced:
                options = self._options(reports, forced=True)
                return DrainAttempt(
                    options, what="deleted without asking their budgets"
                )
            case 2 if forced:
                return DrainAttempt(pods=failed[-1].left, what="deleted at once")
        return None

    def gives_up(self, outcome: DrainOutcome) -> bool:
        """Whether a failed drain ends before its time limit, as it cannot succeed.

        Pods with an emptyDir volume that are to stay have kubectl evict none. A pod
        under several budgets is never evicted.
        """
        if self.on_failure == "force" or not outcome.left:
            return False
        if any(pod.local_storage for pod in outcome.left):
            return not self.delete_emptydir_data
        held = {pod for pod, budgets in outcome.held() if len(budgets) > 1}
        return held.issuperset(outcome.left)

    def kept(self, outcome: DrainOutcome) -> dict[Pod, tuple[str, ...]]:
        """Why pods cannot leave a node now, for those that cannot.

        A budget may allow an eviction later, within the time limit.

        :param outcome: has the pods, and the budgets of the cluster.
        """
        if not (self.delete_emptydir_data or self.on_failure == "force"):
            local = [pod for pod in outcome.left if pod.local_storage]
            if local:
                # kubectl evicts none of the node's pods then.
                why = f"drain.delete_emptydir_data is false, for {local[0]}"
                return {pod: (why,) for pod in outcome.left}
        if self.disable_eviction:
            return {}
        held = outcome.held()
        return {
            pod: tuple(f"PodDisruptionBudget {one}" for one in budgets)
            for pod, budgets in held
        }

    def _options(self, reports: bool, *, forced: bool = False) -> tuple[str, ...]:
        """Options of ``kubectl drain``.

        ``--force`` deletes pods without a controller, which end with the node anyway.
        So do emptyDir volumes if the drain may be forced: without its option kubectl
        would evict none of the pods until then.
        """
        may_force = self.on_failure == "force"
        empty_dirs = str(self.delete_emptydir_data or may_force).lower()
        no_eviction = str(self.disable_eviction or forced).lower()
        return (
            "--ignore-daemonsets",
            "--force",
            f"--delete-emptydir-data={empty_dirs}",
            f"--grace-period={self.grace_period}",
            f"--disable-eviction={no_eviction}",
            # Do not wait for a silent kubelet longer than each pod's grace period.
            *(() if reports else ("--skip-wait-for-delete-timeout=1",)),
        )

    def advice(self, outcomes: Iterable[DrainOutcome]) -> str:
        """What the operator can do about failed drains."""
        failed = [outcome for outcome in outcomes if not outcome.ok]
        held = [budgets for outcome in failed for _, budgets in outcome.held()]
        left = [pod for outcome in failed for pod in outcome.left]
        remedies = []
        if held:
            # Pods of a worker that has failed meanwhile count as disrupted.
            remedies.append(
                "relax the budget, add replicas that run elsewhere, or heal workers "
                "that are not Ready"
            )
        if any(len(budgets) > 1 for budgets in held):
            remedies.append(
                "leave one budget for each pod, for with several none is evicted"
            )
        if any(pod.terminating for pod in left):
            remedies.append(
                "see why pods do not end (a finalizer, a long grace period)"
            )
        if not self.delete_emptydir_data and any(pod.local_storage for pod in left):
            remedies.append("allow drain.delete_emptydir_data if the data may be lost")
        listed = "; ".join(remedies or ["fix the cause"])
        text = f"{listed[0].upper()}{listed[1:]}."
        if self.on_failure != "force":
            text += (
                " With drain.on_failure force, pods that are left at the time limit "
                "are deleted."
            )
        return text

    def removal_variables(self, *, ungraceful: bool) -> dict[str, Any]:
        """Variables of the drain with which kubespray removes a node, after ours.

        :param ungraceful: its failure is ignored. Otherwise kubespray's own grace
            period stays: volumes have three times as long to be detached.
        """
        grace = {"drain_grace_period": self.grace_period} if ungraceful else {}
        return {"drain_timeout": f"{self.timeout}s", **grace}

    def upgrade_variables(self) -> dict[str, Any]:
        """Variables of kubespray's own drain of a node that it upgrades.

        kubectl ends at the first error of an eviction, so a drain that failed is tried
        once more when the time limit has passed, and only then with the fallback.
        """
        return {
            **self.removal_variables(ungraceful=True),
            "drain_retries": 1,
            "drain_retry_delay_seconds": self.timeout,
            "drain_fallback_enabled": self.on_failure == "force"
            or self.disable_eviction,
            "drain_fallback_grace_period": self.grace_period,
            "drain_fallback_timeout": f"{self.timeout}s",
        }
