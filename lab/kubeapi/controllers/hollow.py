# SPDX-License-Identifier: Apache-2.0
"""Hollow nodes: kubelets inside the server, for tests that have no hosts."""

import time
import uuid
from collections.abc import Sequence

from ..objects import (
    Obj,
    condition,
    held_unready,
    name_of,
    precise_timestamp,
    timestamp,
)
from ..resources import LEASES, NODES
from ..settings import Settings
from ..store import Store
from .nodes import LEASE_NAMESPACE

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
