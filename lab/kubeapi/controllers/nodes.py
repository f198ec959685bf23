# SPDX-License-Identifier: Apache-2.0
"""Nodes: a kubelet that falls silent makes its node Unknown, and taints follow.

A node is Ready because its kubelet reports it. What is done here is what the node
lifecycle controller does: it watches the kubelet's heartbeats (the Lease of the node's
name in ``kube-node-lease``, or a status update) by its own clock, so that neither the
hosts' clocks nor a restart of the server make a living node look dead.
"""

import time
from typing import Any

from .. import events
from ..objects import Obj, condition, dig, held_unready, name_of, timestamp
from ..resources import LEASES, NODES
from ..store import Store
from ..taints import NOT_READY, UNREACHABLE, UNSCHEDULABLE, taints_of

LEASE_NAMESPACE = "kube-node-lease"
_OURS = (UNSCHEDULABLE, UNREACHABLE, NOT_READY)


class NodeMonitor:
    """Marks silent nodes.

    :param grace: seconds of silence after which a node is Unknown.
    """

    def __init__(self, store: Store, grace: float) -> None:
        self._store = store
        self._grace = grace
        self._heard: dict[str, tuple[Any, float]] = {}

    def step(self) -> None:
        """One round over all nodes."""
        nodes = self._store.all(NODES)
        living = {node["metadata"]["uid"] for node in nodes}
        self._heard = {uid: at for uid, at in self._heard.items() if uid in living}
        for node in nodes:
            if self._is_silent(node):
                node = self._mark_unknown(node)
            self._set_taints(node)

    def _is_silent(self, node: Obj) -> bool:
        lease = self._store.find(LEASES, LEASE_NAMESPACE, name_of(node))
        heartbeat = (
            dig(lease, "spec.renewTime"),
            condition(node, "Ready").get("lastHeartbeatTime"),
        )
        uid, now = node["metadata"]["uid"], time.monotonic()
        if self._heard.get(uid, (None, 0))[0] != heartbeat:
            self._heard[uid] = (heartbeat, now)
        return held_unready(node) or now - self._heard[uid][1] > self._grace

    def _mark_unknown(self, node: Obj) -> Obj:
        """The times of the last heartbeats stay, so this is not taken for one."""
        if condition(node, "Ready").get("status") == "Unknown":
            return node
        known = dig(node, "status.conditions", [])
        unknown = {"status": "Unknown", "lastTransitionTime": timestamp()}
        if known:
            unknown["reason"] = "NodeStatusUnknown"
            unknown["message"] = "Kubelet stopped posting node status."
        else:
            unknown["reason"] = "NodeStatusNeverUpdated"
            unknown["message"] = "Kubelet never posted node status."
        conditions = [{**c, **unknown} for c in known or [{"type": "Ready"}]]
        status = {**(node.get("status") or {}), "conditions": conditions}
        self._tell(node, "NodeNotReady", "node-controller")
        return self._store.replace(NODES, node, status=status)

    def _tell(self, node: Obj, reason: str, component: str) -> None:
        text = f"Node {name_of(node)} status is now: {reason}"
        events.record(self._store, node, reason, text, component)

    def _set_taints(self, node: Obj) -> None:
        spec, wanted = node["spec"], []
        match condition(node, "Ready").get("status"):
            case "True":
                pass
            case "Unknown":
                wanted.append(UNREACHABLE)
            case _:
                wanted.append(NOT_READY)
        taints = [t for t in taints_of(node) if t["key"] not in _OURS]
        if spec.get("unschedulable"):
            taints.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
        for key in wanted:
            for effect in ("NoSchedule", "NoExecute"):
                taints.append({"key": key, "effect": effect})
        if taints != taints_of(node):
            known = any(t["key"] == UNSCHEDULABLE for t in taints_of(node))
            if known != bool(spec.get("unschedulable")):
                word = "NodeSchedulable" if known else "NodeNotSchedulable"
                self._tell(node, word, "kubelet")
            spec = {k: v for k, v in spec.items() if k != "taints"}
            spec = {**spec, "taints": taints} if taints else spec
            self._store.replace(NODES, node, spec=spec)
