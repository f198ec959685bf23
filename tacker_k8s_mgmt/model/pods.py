"""Pods and the budgets that protect them: who has to leave a node, who may.

The rules are those of ``kubectl drain`` and of the eviction API. They are here because
a drain that did not end well says neither which budget was in the way nor its numbers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_FINISHED = ("Succeeded", "Failed")
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class Pod:
    """What matters of a Pod when its node is emptied.

    :param controller: kind of the controller that made it; "" for a bare pod.
    :param mirror: the kubelet made it from a file (a static pod).
    :param terminating: it is being deleted.
    :param local_storage: it has an emptyDir.
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

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget (policy/v1) with its status.

    :param failure: why Kubernetes cannot compute the status and so allows nothing;
        "" where it can.
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
            wanted = f"minAvailable {self.min_available}"
        else:
            wanted = f"maxUnavailable {self.max_unavailable}"
        failure = f", failed sync: {self.failure}" if self.failure else ""
        return (
            f"{self.namespace}/{self.name} ({wanted}, "
            f"currentHealthy {self.current_healthy}, "
            f"desiredHealthy {self.desired_healthy}, "
            f"disruptionsAllowed {self.disruptions_allowed}{failure})"
        )

    def selects(self, pod: Pod) -> bool:
        """Tell whether the budget is about this pod."""
        return pod.namespace == self.namespace and _selected(self.selector, pod.labels)

    def forbids(self, pod: Pod) -> bool:
        """Tell whether the pod, which it selects, may not be evicted now.

        An unready pod is no loss while enough others are healthy (Kubernetes,
        ``unhealthyPodEvictionPolicy``).
        """
        if not pod.ready and (
            self.unhealthy_policy == "AlwaysAllow"
            or self.current_healthy >= self.desired_healthy > 0
        ):
            return False
        return self.disruptions_allowed <= 0


def movable_pods(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods that have to leave before their node does.

    Not those of DaemonSets, which belong to the node, nor static pods, which only the
    kubelet can end, nor finished ones.
    """
    return tuple(
        pod
        for pod in pods
        if pod.phase not in _FINISHED
        and pod.controller != "DaemonSet"
        and not pod.mirror
    )


def holders(pod: Pod, budgets: Iterable[Budget]) -> tuple[Budget, ...]:
    """Return the budgets that keep the pod from being evicted.

    The eviction API takes no pod that several budgets select, whatever they allow.
    """
    if pod.terminating or pod.phase in (*_FINISHED, "Pending"):
        return ()
    selecting = tuple(budget for budget in budgets if budget.selects(pod))
    if len(selecting) > 1:
        return selecting
    return tuple(budget for budget in selecting if budget.forbids(pod))


def read_pods(answer: Mapping[str, Any]) -> tuple[Pod, ...]:
    """Read a PodList.

    :raises KeyError, TypeError: it is none.
    """
    return tuple(_pod(item) for item in answer["items"])


def read_budgets(answer: Mapping[str, Any]) -> tuple[Budget, ...]:
    """Read a PodDisruptionBudgetList of policy/v1.

    :raises KeyError, TypeError: it is none.
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
            one["type"] == "Ready" and one["status"] == "True"
            for one in status.get("conditions") or ()
        ),
        terminating=bool(metadata.get("deletionTimestamp")),
        controller=next((one["kind"] for one in owners if one.get("controller")), ""),
        mirror=_MIRROR in (metadata.get("annotations") or {}),
        local_storage=any(one.get("emptyDir") is not None for one in volumes),
    )


def _budget(item: Mapping[str, Any]) -> Budget:
    metadata, spec = item["metadata"], item.get("spec") or {}
    status = item.get("status") or {}
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
        failure=next(
            (
                one.get("message", "")
                for one in status.get("conditions") or ()
                if one.get("reason") == "SyncFailed"
            ),
            "",
        ),
    )


def _selected(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector: none selects nothing, an empty one everything (policy/v1)."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _agrees(expression, labels)
        for expression in selector.get("matchExpressions") or ()
    )


def _agrees(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
    return key not in labels  # DoesNotExist
