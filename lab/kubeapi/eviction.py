"""The eviction API and the PodDisruptionBudgets that it honours."""

from . import errors
from .errors import ApiError
from .objects import (
    Obj,
    controller_of,
    is_ready,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
)
from .resources import BUDGETS, PODS, REPLICA_SETS, STATEFUL_SETS
from .selectors import selector_matches
from .store import Store

_UNPROTECTED_PHASES = ("Succeeded", "Failed", "Pending")


def _covered_pods(store: Store, budget: Obj) -> list[Obj]:
    selector = budget["spec"].get("selector")
    pods = store.all(PODS, namespace_of(budget))
    return [pod for pod in pods if selector_matches(selector, labels_of(pod))]


def _expected(store: Store, pods: list[Obj]) -> int:
    """How many pods there ought to be: the scales of the pods' controllers."""
    scales = {
        c["metadata"]["uid"]: c["spec"].get("replicas", 1)
        for kind in (REPLICA_SETS, STATEFUL_SETS)
        for c in store.all(kind)
    }
    expected: dict[str, int] = {}
    unscaled: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        uid = owner["uid"] if owner else pod["metadata"]["uid"]
        if uid in scales:
            expected[uid] = scales[uid]
        else:
            unscaled[uid] = unscaled.get(uid, 0) + 1
    return sum(expected.values()) + sum(unscaled.values())


def _count(value: int | str, total: int) -> int:
    """A number, or a percentage of the total, rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-total * int(value[:-1]) // 100)
    return int(value)


def budget_status(store: Store, budget: Obj) -> Obj:
    """What the disruption controller writes into a budget's status."""
    pods, spec = _covered_pods(store, budget), budget["spec"]
    total, healthy = _expected(store, pods), sum(map(is_ready, pods))
    if "minAvailable" in spec:
        desired = _count(spec["minAvailable"], total)
    else:
        desired = max(0, total - _count(spec.get("maxUnavailable", 0), total))
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": total,
        "disruptionsAllowed": max(0, healthy - desired) if total else 0,
        "observedGeneration": budget["metadata"].get("generation", 1),
    }


def _refuse(budget: Obj, status: Obj) -> ApiError:
    """The 429 that ``kubectl drain`` retries.

    Without a ``Retry-After`` header, as on a real server: with one, client-go sleeps
    inside the request and drain's own ``--timeout`` is not kept.
    """
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = (
        f"The disruption budget {name_of(budget)} needs {status['desiredHealthy']} "
        f"healthy pods and has {status['currentHealthy']} currently"
    )
    return ApiError(
        429,
        "TooManyRequests",
        text,
        causes=[{"reason": "DisruptionBudget", "message": cause}],
    )


def _check_budgets(store: Store, pod: Obj) -> None:
    unprotected = pod["status"].get("phase") in _UNPROTECTED_PHASES
    if unprotected or is_terminating(pod):
        return
    budgets = [
        budget
        for budget in store.all(BUDGETS, namespace_of(pod))
        if selector_matches(budget["spec"].get("selector"), labels_of(pod))
    ]
    if len(budgets) > 1:
        text = (
            "This pod has more than one PodDisruptionBudget, which the eviction "
            "subresource does not support."
        )
        raise ApiError(500, "InternalError", text)
    for budget in budgets:
        status = budget_status(store, budget)
        counts = is_ready(pod) or status["currentHealthy"] < status["desiredHealthy"]
        if counts and status["disruptionsAllowed"] <= 0:
            raise _refuse(budget, status)


def evict(store: Store, namespace: str | None, name: str, body: Obj, dry: bool) -> Obj:
    """``POST …/pods/NAME/eviction``.

    :raises ApiError: 404, or 429 where a budget forbids it.
    """
    pod = store.get(PODS, namespace, name)
    options = body.get("deleteOptions")
    if options is not None and not isinstance(options, dict):
        raise errors.invalid(PODS, name, "deleteOptions: must be an object")
    _check_budgets(store, pod)
    store.delete(PODS, pod, options, dry)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
