# SPDX-License-Identifier: Apache-2.0
"""Pods and PodDisruptionBudgets: the pods that leave a node, and those that may not.

The rules are those of ``kubectl drain`` and of the eviction API, because the error of a
failed drain has neither the blocking budget nor its numbers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class Pod:
    """A Pod, as far as drains need it.

    :param controller: kind of its controller; "" for a bare pod.
    :param mirror: whether it is a static pod, from a file of the kubelet.
    :param terminating: whether it is being deleted.
    :param local_storage: whether it has an emptyDir volume.
    """

    namespace: str
    name: str
    labels: Mapping[str, str] = field(hash=False)
    phase: str = "Running"
    ready: bool = True
    terminating: bool = False
    controller: str = ""
    mirror: bool = False
    local_storage: bool = False

    @property
    def finished(self) -> bool:
        """Whether all its containers have ended for good."""
        return self.phase in ("Succeeded", "Failed")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget (policy/v1) with its status.

    :param failure: why Kubernetes cannot compute the status, and so allows no eviction;
        "" if it can.
    """

    namespace: str
    name: str
    selector: Mapping[str, Any] | None = field(hash=False)
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    current_healthy: int = 0
    desired_healthy: int = 0
    disruptions_allowed: int = 0
    unhealthy_policy: str = "IfHealthyBudget"
    failure: str = ""

    def __str__(self) -> str:
        if self.min_available is not None:
            limit = f"minAvailable {self.min_available}"
        else:
            limit = f"maxUnavailable {self.max_unavailable}"
        failure = f", failed sync: {self.failure}" if self.failure else ""
        return (
            f"{self.namespace}/{self.name} ({limit}, "
            f"currentHealthy {self.current_healthy}, "
            f"desiredHealthy {self.desired_healthy}, "
            f"disruptionsAllowed {self.disruptions_allowed}{failure})"
        )

    def selects(self, pod: Pod) -> bool:
        """Whether the budget applies to the pod."""
        return pod.namespace == self.namespace and _selected(self.selector, pod.labels)

    def forbids(self, pod: Pod) -> bool:
        """Whether the budget forbids the eviction of a pod that it selects.

        An unready pod may be evicted while enough others are healthy
        (``unhealthyPodEvictionPolicy``).
        """
        if not pod.ready and (
            self.unhealthy_policy == "AlwaysAllow"
            or self.current_healthy >= self.desired_healthy > 0
        ):
            return False
        return self.disruptions_allowed <= 0


def holders(pod: Pod, budgets: Iterable[Budget]) -> tuple[Budget, ...]:
    """The budgets that forbid the eviction of a pod.

    The eviction API refuses a pod that several budgets select, whatever they allow.
    """
    if pod.terminating or pod.finished or pod.phase == "Pending":
        return ()
    selecting = tuple(budget for budget in budgets if budget.selects(pod))
    if len(selecting) > 1:
        return selecting
    return tuple(budget for budget in selecting if budget.forbids(pod))


def read_pods(answer: Mapping[str, Any]) -> tuple[Pod, ...]:
    """Parse a PodList.

    :raises KeyError, TypeError: the answer is no PodList.
    """
    return tuple(_pod(item) for item in answer["items"])


def read_budgets(answer: Mapping[str, Any]) -> tuple[Budget, ...]:
    """Parse a PodDisruptionBudgetList of policy/v1.

    :raises KeyError, TypeError: the answer is no such list.
    """
    return tuple(_budget(item) for item in answer["items"])


def _pod(item: Mapping[str, Any]) -> Pod:
    metadata, status = item["metadata"], item.get("status") or {}
    owners = metadata.get("ownerReferences") or ()
    volumes = item.get("spec", {}).get("volumes") or ()
    return Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        phase=status.get("phase", "Pending"),
        ready=any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in status.get("conditions") or ()
        ),
        terminating=bool(metadata.get("deletionTimestamp")),
        controller=next((o["kind"] for o in owners if o.get("controller")), ""),
        mirror=_MIRROR in (metadata.get("annotations") or {}),
        local_storage=any(v.get("emptyDir") is not None for v in volumes),
    )


def _budget(item: Mapping[str, Any]) -> Budget:
    metadata, spec = item["metadata"], item.get("spec") or {}
    status = item.get("status") or {}
    failures = (
        condition.get("message", "")
        for condition in status.get("conditions") or ()
        if condition.get("reason") == "SyncFailed"
    )
    return Budget(
        namespace=metadata["namespace"],
        name=metadata["name"],
        selector=spec.get("selector"),
        min_available=spec.get("minAvailable"),
        max_unavailable=spec.get("maxUnavailable"),
        current_healthy=status.get("currentHealthy", 0),
        desired_healthy=status.get("desiredHealthy", 0),
        disruptions_allowed=status.get("disruptionsAllowed", 0),
        unhealthy_policy=spec.get("unhealthyPodEvictionPolicy") or "IfHealthyBudget",
        failure=next(failures, ""),
    )


def _selected(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Apply a LabelSelector: none selects nothing, an empty one all (policy/v1)."""
    if selector is None:
        return False
    pairs = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in pairs) and all(
        matches(expression, labels)
        for expression in selector.get("matchExpressions") or ()
    )


def matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Apply one of the ``matchExpressions`` of a selector."""
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
    return key not in labels  # DoesNotExist
