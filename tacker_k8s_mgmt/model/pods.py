# SPDX-License-Identifier: Apache-2.0
"""Pods that leave a node, those that may not, and what came of a drain.

The rules are those of ``kubectl drain`` and of the eviction API, because the error of a
failed drain has neither the blocking PodDisruptionBudget nor its numbers. Where pods
can run follows Kubernetes' documentation, "Assigning Pods to Nodes" and "Taints and
Tolerations". The policy of drains is in :mod:`tacker_k8s_mgmt.request.drain_policy`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tacker_k8s_mgmt.model import object_shapes
from tacker_k8s_mgmt.model.nodes import NodeObject

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_EXCLUDING = ("NoSchedule", "NoExecute")
# The scheduler takes a cordon for this taint.
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Placement:
    """What pods demand of a node; preferences are left out, as pods run without them.

    :param selector: their ``nodeSelector``.
    :param terms: of their required node affinity; if there are any, one has to match.
    :param tolerations: of taints.
    """

    #: Where it is in the ``spec`` of a pod.
    FIELDS: ClassVar = ("nodeSelector", "affinity.nodeAffinity", "tolerations")

    selector: Mapping[str, str] = field(default_factory=dict, hash=False)
    terms: Sequence[Mapping[str, Any]] = field(default=(), hash=False)
    tolerations: Sequence[Mapping[str, Any]] = field(default=(), hash=False)

    @classmethod
    def read(
        cls,
        selector: Mapping[str, str] | None,
        affinity: Mapping[str, Any] | None,
        tolerations: Sequence[Mapping[str, Any]] | None = None,
    ) -> "Placement":
        """Of the values of :attr:`FIELDS`.

        :raises ValueError: one has another type.
        """
        required = (affinity or {}).get(_REQUIRED) or {}
        terms = required.get("nodeSelectorTerms") or ()
        for term in terms:
            object_shapes.check(term, object_shapes.Term)
        for toleration in tolerations or ():
            object_shapes.check(toleration, object_shapes.Toleration)
        return cls(selector or {}, terms, tuple(tolerations or ()))

    @property
    def is_bound(self) -> bool:
        """Whether it demands labels."""
        return bool(self.selector or self.terms)

    def accepts(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node's name and labels allow the pods there."""
        plain = all(labels.get(key) == self.selector[key] for key in self.selector)
        terms = self.terms
        return plain and (not terms or any(_term(one, name, labels) for one in terms))

    def tolerates(self, taint: Mapping[str, Any]) -> bool:
        """Whether pods can start on a node with this taint."""
        return taint["effect"] not in _EXCLUDING or any(
            _matches(toleration, taint) for toleration in self.tolerations
        )

    def fits(self, node: NodeObject) -> bool:
        """Whether the scheduler can put the pods on this node now.

        It may still refuse it for reasons that are not read, such as CPU and volumes.
        """
        taints = (*node.taints, *([_CORDON] if node.unschedulable else ()))
        return (
            node.ready
            and self.accepts(node.name, node.labels)
            and all(map(self.tolerates, taints))
        )


@dataclass(frozen=True)
class Pod:
    """A Pod, as far as drains need it.

    :param controller: kind of its controller; "" for a bare pod.
    :param mirror: whether it is a static pod, from a file of the kubelet, which makes
        the node its controller.
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
    placement: Placement = field(default_factory=Placement)

    #: What :meth:`read` needs of an object. The annotations of a pod may have 256 kB.
    FIELDS: ClassVar = (
        ".metadata.namespace",
        ".metadata.name",
        ".metadata.labels",
        ".metadata.deletionTimestamp",
        ".metadata.ownerReferences",
        ".status.phase",
        '.status.conditions[?(@.type=="Ready")].status',
        ".spec.volumes[*].emptyDir",
        *(f".spec.{name}" for name in Placement.FIELDS),
    )

    @classmethod
    def read(
        cls,
        namespace: str,
        name: str,
        labels: Mapping[str, str] | None,
        deleted: str | None,
        owners: Sequence[Mapping[str, Any]] | None,
        phase: str | None,
        ready: Sequence[str],
        local: Sequence[Any],
        *placement: Any,
    ) -> "Pod":
        """Of the values of :attr:`FIELDS`."""
        controllers = (one["kind"] for one in owners or () if one.get("controller"))
        controller = next(controllers, "")
        return cls(
            namespace=namespace,
            name=name,
            labels=labels or {},
            phase=phase or "Pending",
            ready="True" in ready,
            terminating=bool(deleted),
            controller=controller,
            mirror=controller == "Node",
            local_storage=bool(local),
            placement=Placement.read(*placement),
        )

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

    #: What :meth:`read` needs of an object.
    FIELDS: ClassVar = (".metadata.namespace", ".metadata.name", ".spec", ".status")

    @classmethod
    def read(
        cls,
        namespace: str,
        name: str,
        spec: Mapping[str, Any] | None,
        status: Mapping[str, Any] | None,
    ) -> "Budget":
        """Of the values of :attr:`FIELDS`."""
        wanted, found = spec or {}, status or {}
        if (selector := wanted.get("selector")) is not None:
            object_shapes.check(selector, object_shapes.Selector)
        failures = (
            condition.get("message", "")
            for condition in found.get("conditions") or ()
            if condition.get("reason") == "SyncFailed"
        )
        policy = wanted.get("unhealthyPodEvictionPolicy") or "IfHealthyBudget"
        return cls(
            namespace=namespace,
            name=name,
            selector=selector,
            min_available=wanted.get("minAvailable"),
            max_unavailable=wanted.get("maxUnavailable"),
            current_healthy=found.get("currentHealthy", 0),
            desired_healthy=found.get("desiredHealthy", 0),
            disruptions_allowed=found.get("disruptionsAllowed", 0),
            unhealthy_policy=policy,
            failure=next(failures, ""),
        )

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


def _matches(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    if key not in ("", taint["key"]) or effect not in ("", taint["effect"]):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    value, wanted = taint.get("value") or "", toleration.get("value") or ""
    if operator == "Equal":
        return bool(key) and value == wanted
    return bool(key) and _compares(value, operator, wanted)


def _term(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    # An empty term matches no node.
    return bool(expressions or fields) and all(
        _expression(expression, values)
        for expressions, values in (
            (expressions, labels),
            (fields, {"metadata.name": name}),
        )
        for expression in expressions
    )


def _expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if expression["operator"] not in ("Gt", "Lt"):
        return matches(expression, labels)
    values = expression.get("values") or [""]
    value = labels.get(expression["key"], "")
    return _compares(value, expression["operator"], values[0])


def _compares(value: str, operator: str, limit: str) -> bool:
    """Whether a value is greater (``Gt``) or less (``Lt``) than a limit."""
    try:
        return int(value) > int(limit) if operator == "Gt" else int(value) < int(limit)
    except ValueError:
        return False


_SHOWN = 8  # pods and budgets in an error text; others are counted


def no_other_node(
    pods: Iterable[Pod], leaving: Collection[str], nodes: Collection[NodeObject]
) -> bool:
    """Whether no node other than the leaving ones accepts any of the pods.

    Then a drain that waits for them to run elsewhere cannot succeed.
    """
    others = [node for node in nodes if node.name not in leaving]
    return not any(pod.placement.fits(node) for pod in pods for node in others)


@dataclass(frozen=True)
class DrainOutcome:
    """The outcome of the drain of one node.

    :param seconds: its duration.
    :param left: pods that should have left the node and have not.
    :param budgets: the cluster's budgets after a failed drain.
    :param error: kubectl's error; "" if there was none.
    :param gone: pods that have left the node.
    """

    node: str
    seconds: float
    left: tuple[Pod, ...] = ()
    budgets: tuple[Budget, ...] = ()
    error: str = ""
    gone: tuple[Pod, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the node is empty."""
        return not self.left and not self.error

    def held(self) -> tuple[tuple[Pod, tuple[Budget, ...]], ...]:
        """The pods that may not be evicted, each with the budgets that forbid it."""
        pairs = ((pod, holders(pod, self.budgets)) for pod in self.left)
        return tuple((pod, budgets) for pod, budgets in pairs if budgets)


def report(outcome: DrainOutcome) -> str:
    """The outcome in one line."""
    if outcome.ok:
        drained = f"{outcome.node} was drained in {outcome.seconds:.0f} s"
        return "; ".join([drained, *_departed(outcome)])
    parts = []
    if outcome.left:
        parts.append(f"still there: {_listed([_shown(pod) for pod in outcome.left])}")
    parts += _blocks(outcome)
    if outcome.error and not _explained(outcome):
        parts.append(f"kubectl: {outcome.error}")
    parts += _departed(outcome)
    waited = f"{outcome.node} was not drained after {outcome.seconds:.0f} s"
    return f"{waited}: {'; '.join(parts)}"


def _departed(outcome: DrainOutcome) -> list[str]:
    """The pods that have left; those without a controller, which are lost, first."""
    bare = [str(pod) for pod in outcome.gone if not pod.controller]
    others = [str(pod) for pod in outcome.gone if pod.controller]
    parts = []
    if bare:
        names = _listed(bare)
        parts.append(f"deleted for good, as no controller created them: {names}")
    if others:
        parts.append(f"evicted: {_listed(others)}")
    return parts


def _blocks(outcome: DrainOutcome) -> list[str]:
    """A sentence for each budget that forbids evictions."""
    held = outcome.held()
    blocking = list(dict.fromkeys(budget for _, budgets in held for budget in budgets))
    sentences = []
    for budget in blocking[:_SHOWN]:
        kept = [str(pod) for pod, budgets in held if budget in budgets]
        sentences.append(f"PodDisruptionBudget {budget} keeps {_listed(kept)}")
    if len(blocking) > _SHOWN:
        sentences.append(f"{len(blocking) - _SHOWN} more budgets keep others")
    return sentences


def _explained(outcome: DrainOutcome) -> bool:
    """Whether it is known for each pod why it is left, without kubectl's error."""
    held = {pod for pod, _ in outcome.held()}
    return bool(outcome.left) and all(
        pod in held or pod.terminating for pod in outcome.left
    )


def _shown(pod: Pod) -> str:
    return f"{pod} (being deleted)" if pod.terminating else str(pod)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
