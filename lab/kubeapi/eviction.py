# SPDX-License-Identifier: Apache-2.0
"""Pods that must leave: budgets, the eviction API, NoExecute taints."""

import json
import time

from . import EVICTION_ANNOTATION, resources
from .objects import (
    Obj,
    condition,
    controller_of,
    dig,
    is_ready,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    selector_matches,
    taints_of,
    timestamp,
    tolerated_by,
)
from .resources import (
    BUDGETS,
    DAEMON_SETS,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    ApiError,
)
from .store import Store, record_event

_UNPROTECTED_PHASES = ("Succeeded", "Failed", "Pending")


class _SyncFailed(Exception):
    """How many pods there ought to be cannot be known."""


def _selects(budget: Obj, pod: Obj) -> bool:
    """In policy/v1 an empty selector means every pod of the namespace."""
    selector = budget["spec"].get("selector")
    return selector == {} or selector_matches(selector, labels_of(pod))


def _expected(store: Store, pods: list[Obj]) -> int:
    """How many pods there ought to be: the scales of the pods' controllers.

    Bare pods are not counted.

    :raises _SyncFailed: a pod belongs to something that has no scale.
    """
    scales = {
        c["metadata"]["uid"]: c["spec"].get("replicas", 1)
        for kind in (REPLICA_SETS, STATEFUL_SETS)
        for c in store.all(kind)
    }
    expected: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        if owner is None:
            continue
        if owner["kind"] == DAEMON_SETS.kind:
            name = DAEMON_SETS.qualified_name
            raise _SyncFailed(f"{name} does not implement the scale subresource")
        if owner["uid"] not in scales:
            raise _SyncFailed(f'found no controllers for pod "{name_of(pod)}"')
        expected[owner["uid"]] = scales[owner["uid"]]
    return sum(expected.values())


def _count(value: int | str, total: int) -> int:
    """A number, or a percentage of the total, rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-total * int(value[:-1]) // 100)
    return int(value)


def _wanted(store: Store, spec: Obj, pods: list[Obj]) -> tuple[int, int]:
    """How many pods there ought to be, and how many of them healthy.

    :raises _SyncFailed: that cannot be known.
    """
    if "minAvailable" in spec:
        if isinstance(spec["minAvailable"], int):
            return len(pods), spec["minAvailable"]
        total = _expected(store, pods)
        return total, _count(spec["minAvailable"], total)
    total = _expected(store, pods)
    return total, max(0, total - _count(spec.get("maxUnavailable", 0), total))


def budget_status(store: Store, budget: Obj) -> Obj:
    """What the disruption controller writes into a budget's status."""
    pods = [p for p in store.all(PODS, namespace_of(budget)) if _selects(budget, p)]
    healthy = sum(map(is_ready, pods))
    failure = ""
    try:
        total, desired = _wanted(store, budget["spec"], pods)
        allowed = max(0, healthy - desired) if total else 0
    except _SyncFailed as error:
        old = budget.get("status") or {}
        total, desired = old.get("expectedPods", 0), old.get("desiredHealthy", 0)
        allowed, failure = 0, str(error)
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": total,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget["metadata"].get("generation", 1),
        "conditions": [_disruption_allowed(budget, allowed, failure)],
    }


def _disruption_allowed(budget: Obj, allowed: int, failure: str) -> Obj:
    enough = "SufficientPods" if allowed else "InsufficientPods"
    old = condition(budget, "DisruptionAllowed")
    status = "True" if allowed else "False"
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": budget["metadata"].get("generation", 1),
        "lastTransitionTime": since or timestamp(),
        "reason": "SyncFailed" if failure else enough,
        "message": failure,
    }


def _refuse(budget: Obj, status: Obj) -> ApiError:
    """The 429 that ``kubectl drain`` retries.

    Without a ``Retry-After`` header, as on a real server: with one, client-go sleeps
    inside the request and drain's own ``--timeout`` is not kept.
    """
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    (known,) = status["conditions"]
    cause = f"The disruption budget {name_of(budget)} "
    if known["reason"] == "SyncFailed":
        cause += (
            "does not allow evicting pods currently because it failed sync: "
            f"{known['message']}"
        )
    else:
        cause += (
            f"needs {status['desiredHealthy']} healthy pods and has "
            f"{status['currentHealthy']} currently"
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
        if _selects(budget, pod)
    ]
    if len(budgets) > 1:
        text = (
            "This pod has more than one PodDisruptionBudget, which the eviction "
            "subresource does not support."
        )
        raise ApiError(500, "", text)
    for budget in budgets:
        status = budget_status(store, budget)
        if not _is_spare(pod, budget, status) and status["disruptionsAllowed"] <= 0:
            raise _refuse(budget, status)


def _is_spare(pod: Obj, budget: Obj, status: Obj) -> bool:
    """Whether the pod is unhealthy and the budget lets such a pod go."""
    if is_ready(pod):
        return False
    always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return always or bool(status["currentHealthy"] >= status["desiredHealthy"] > 0)


def _fail(store: Store, pod: Obj) -> None:
    """Fail as often, or as long, as the pod's annotation says."""
    text = dig(pod, "metadata.annotations", {}).get(EVICTION_ANNOTATION)
    if not text:
        return
    fault, uid, now = json.loads(text), pod["metadata"]["uid"], time.monotonic()
    began, count = store.evictions.get(uid, (now, 0))
    store.evictions[uid] = began, count + 1
    if count < fault.get("times", 0) or now - began < fault.get("seconds", 0):
        raise ApiError(fault["code"], fault.get("reason", ""), fault["message"])


def evict(store: Store, namespace: str | None, name: str, body: Obj, dry: bool) -> Obj:
    """``POST …/pods/NAME/eviction``.

    :raises ApiError: 404, 429 where a budget forbids it, or what an annotation wants.
    """
    pod = store.get(PODS, namespace, name)
    options = body.get("deleteOptions")
    if options is not None and not isinstance(options, dict):
        raise resources.bad_request(
            'Eviction in version "v1" cannot be handled as a Eviction: json: cannot '
            "unmarshal string into Go struct field Eviction.deleteOptions of type "
            "v1.DeleteOptions"
        )
    if dig(body, "metadata.name") != name:
        raise resources.bad_request(
            "name in URL does not match name in Eviction object"
        )
    # Admission comes before the budgets.
    _fail(store, pod)
    _check_budgets(store, pod)
    store.delete(PODS, pod, options, dry)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }


class TaintEviction:
    """Deletes such pods: at once, or when they have tolerated it long enough.

    Budgets are not asked, as on a real cluster. The time runs from when the taint was
    first seen by this process.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since: dict[str, float] = {}

    def step(self) -> None:
        """One round over all pods that are on nodes."""
        taints = {
            name_of(node): [t for t in taints_of(node) if t["effect"] == "NoExecute"]
            for node in self._store.all(NODES)
        }
        before, self._since = self._since, {}
        for pod in self._store.all(PODS):
            node = pod["spec"].get("nodeName")
            if is_terminating(pod) or not taints.get(node):
                continue
            uid, now = pod["metadata"]["uid"], time.monotonic()
            self._since[uid] = before.get(uid, now)
            limit = _patience(taints[node], pod["spec"].get("tolerations"))
            if limit is not None and now - self._since[uid] >= limit:
                self._evict(pod)

    def _evict(self, pod: Obj) -> None:
        text = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
        reason, component = "TaintManagerEviction", "taint-eviction-controller"
        record_event(self._store, pod, reason, text, component)
        self._store.delete(PODS, pod)


def _patience(taints: list[Obj], tolerations: list[Obj] | None) -> float | None:
    """Seconds that a pod tolerates the taints; None for ever."""
    limits: list[float] = []
    for taint in taints:
        matching = tolerated_by(taint, tolerations)
        if not matching:
            return 0
        limits += [
            max(0, toleration["tolerationSeconds"])
            for toleration in matching
            if toleration.get("tolerationSeconds") is not None
        ]
    return min(limits, default=None)
