# SPDX-License-Identifier: Apache-2.0
"""Pods that must leave: their node has a NoExecute taint that they do not tolerate."""

import time

from .. import events
from ..objects import Obj, is_terminating, name_of, namespace_of
from ..resources import NODES, PODS
from ..store import Store
from ..taints import taints_of, tolerated_by


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
        events.record(self._store, pod, reason, text, component)
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
