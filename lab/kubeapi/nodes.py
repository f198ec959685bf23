# SPDX-License-Identifier: Apache-2.0
"""Nodes: a kubelet that falls silent makes its node Unknown, and taints follow.

A node is Ready because its kubelet reports it. What is done here is what the node
lifecycle controller does: it watches the kubelet's heartbeats (the Lease of the node's
name in ``kube-node-lease``, or a status update) by its own clock, so that neither the
hosts' clocks nor a restart of the server make a living node look dead. Hollow nodes
are kubelets inside the server, for tests that have no hosts.
"""

import time
import uuid
from collections.abc import Sequence
from typing import Any

from .objects import (
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    Obj,
    condition,
    dig,
    held_unready,
    name_of,
    precise_timestamp,
    taints_of,
    timestamp,
)
from .resources import LEASES, NODES
from .settings import Settings
from .store import Store, record_event

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
        record_event(self._store, node, reason, text, component)

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


_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


class HollowKubelets:
    """Registers the named nodes once and posts their heartbeats.

    The first one is the control plane. A node that is deleted is not registered again,
    as with a real kubelet.
    """

    def __init__(self, store: Store, settings: Settings, names: Sequence[str]) -> None:
        self._store = store
        self._settings = settings
        self._names = names
        self._next_beat = 0.0

    def register(self) -> None:
        """Create the nodes that are not there yet."""
        for number, name in enumerate(self._names):
            if self._store.find(NODES, None, name) is None:
                self._store.create(NODES, None, self._node(number, name))

    def _node(self, number: int, name: str) -> Obj:
        control_plane = number == 0
        version = self._settings.version
        return {
            "metadata": {
                "name": name,
                "labels": {_CONTROL_PLANE: ""} if control_plane else {},
            },
            "spec": {"taints": [{"key": _CONTROL_PLANE, "effect": "NoSchedule"}]}
            if control_plane
            else {},
            "status": {
                "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                "addresses": [
                    {"type": "InternalIP", "address": f"10.10.0.{number + 10}"},
                    {"type": "Hostname", "address": name},
                ],
                "nodeInfo": {
                    "kubeletVersion": version,
                    "osImage": "a stand-in",
                    "machineID": uuid.uuid4().hex,
                    "systemUUID": str(uuid.uuid4()),
                    "bootID": str(uuid.uuid4()),
                },
                "images": [
                    {"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 320368}
                ],
            },
        }

    def step(self) -> None:
        """Send the heartbeats that are due."""
        if time.monotonic() < self._next_beat:
            return
        self._next_beat = time.monotonic() + self._settings.node_grace / 4
        for name in self._names:
            node = self._store.find(NODES, None, name)
            if node is not None and not held_unready(node):
                self._beat(node)

    def _beat(self, node: Obj) -> None:
        spec = {"holderIdentity": name_of(node), "renewTime": precise_timestamp()}
        lease = self._store.find(LEASES, LEASE_NAMESPACE, name_of(node))
        if lease is None:
            new = {"metadata": {"name": name_of(node)}, "spec": spec}
            self._store.create(LEASES, LEASE_NAMESPACE, new)
        else:
            self._store.replace(LEASES, lease, spec=spec)
        if condition(node, "Ready").get("status") != "True":
            ready = {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "lastHeartbeatTime": timestamp(),
                "lastTransitionTime": timestamp(),
            }
            status = {**node["status"], "conditions": [ready]}
            self._store.replace(NODES, node, status=status)
