# SPDX-License-Identifier: Apache-2.0
"""The life of pods on their nodes: scheduled, started, stopped, collected."""

import re
import time

from .. import containers, events
from ..admission import random_address
from ..objects import (
    Obj,
    age,
    dig,
    held_unready,
    is_ready,
    is_terminating,
    name_of,
    timestamp,
)
from ..resources import NODES, PODS
from ..settings import Settings
from ..store import Store
from ..taints import OUT_OF_SERVICE, taints_of
from .scheduling import schedule

# As the stand-in for kubelet has it (pod_network.py there).
_RUNS_PAUSE = "namespaces://stand-in"
_PAUSE = re.compile(r"(^|/)pause:")
_STARTED = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
_UNTIL_READY = ("Ready", "ContainersReady")


def _is_of_kubelet(pod: Obj, node: Obj) -> bool:
    """Whether the pod is one of those that the node's kubelet really starts."""
    runtime = dig(node, "status.nodeInfo.containerRuntimeVersion")
    images = (container.get("image", "") for container in pod["spec"]["containers"])
    return runtime == _RUNS_PAUSE and any(map(_PAUSE.search, images))


def _phase(pod: Obj, parts: list[Obj]) -> tuple[str, bool]:
    """The phase of a pod whose containers were started, and whether it is ready."""
    if not all(map(containers.can_be_pulled, parts)):
        return "Pending", False
    codes = [containers.exit_code(pod, one) for one in parts]
    if any(code is None for code in codes):
        return "Running", all(code is None for code in codes)
    if dig(pod, "spec.restartPolicy") == "Always" and parts:
        return "Running", False
    return ("Failed", False) if any(codes) else ("Succeeded", False)


class PodLife:
    """What scheduler, kubelets and the pod collector do to pods."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._stopping_since: dict[str, float] = {}
        self._orphaned_since: dict[str, float] = {}

    def step(self) -> None:
        """One round over all pods."""
        nodes = {name_of(node): node for node in self._store.all(NODES)}
        pods = self._store.all(PODS)
        living = {pod["metadata"]["uid"] for pod in pods}
        self._stopping_since = {
            uid: at for uid, at in self._stopping_since.items() if uid in living
        }
        self._orphaned_since = {
            pod["metadata"]["uid"]: self._orphaned_since[pod["metadata"]["uid"]]
            for pod in pods
            if pod["metadata"]["uid"] in self._orphaned_since
            and pod["spec"].get("nodeName") not in nodes
        }
        for pod in pods:
            self._step(pod, nodes)

    def _step(self, pod: Obj, nodes: dict[str, Obj]) -> None:
        node_name = pod["spec"].get("nodeName")
        if not node_name:
            if not is_terminating(pod):
                schedule(self._store, pod)
            return
        node = nodes.get(node_name)
        if node is None:
            self._collect(pod)
        elif is_terminating(pod):
            if is_ready(node):
                self._stop(pod)
            elif any(t["key"] == OUT_OF_SERVICE for t in taints_of(node)):
                self._store.delete(PODS, pod, {"gracePeriodSeconds": 0})
        elif not is_ready(node):
            self._lose(pod)
        elif not is_ready(pod) and not _is_of_kubelet(pod, node):
            self._start(pod)

    def _collect(self, pod: Obj) -> None:
        """Remove a pod without a node, if none of that name comes back in time."""
        uid = pod["metadata"]["uid"]
        since = self._orphaned_since.setdefault(uid, time.monotonic())
        if time.monotonic() - since >= self._settings.orphan_grace:
            self._store.remove(PODS, pod)

    def _stop(self, pod: Obj) -> None:
        """Containers of a terminating pod end; only on a node that is there."""
        metadata = pod["metadata"]
        if metadata["uid"] not in self._stopping_since:
            for container in pod["spec"].get("containers", []):
                text = f"Stopping container {container['name']}"
                events.record(self._store, pod, "Killing", text, "kubelet")
        since = self._stopping_since.setdefault(metadata["uid"], time.monotonic())
        grace = metadata.get("deletionGracePeriodSeconds", 0)
        delay = min(grace, self._settings.stop_delay)
        if time.monotonic() - since >= delay and not metadata.get("finalizers"):
            self._store.remove(PODS, pod)

    def _lose(self, pod: Obj) -> None:
        if is_ready(pod):
            lost = [{"type": "Ready", "status": "False"}]
            status = {**pod["status"], "conditions": lost}
            self._store.replace(PODS, pod, status=status)

    def _start(self, pod: Obj) -> None:
        if pod["status"].get("phase") not in ("Pending", "Running"):
            return
        waited = age(pod["metadata"]["creationTimestamp"])
        if held_unready(pod) or waited < self._settings.start_delay:
            return
        parts = pod["spec"].get("containers", [])
        statuses = [containers.status(pod, one) for one in parts]
        phase, ready = _phase(pod, parts)
        conditions = [
            {"type": kind, "status": str(ready or kind not in _UNTIL_READY)}
            for kind in _STARTED
        ]
        address = pod["status"].get("podIP")
        address = address or random_address(self._settings.pod_network)
        status = {
            **pod["status"],
            "phase": phase,
            "startTime": pod["status"].get("startTime") or timestamp(),
            "containerStatuses": statuses,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": conditions,
        }
        if status != pod["status"]:
            self._store.replace(PODS, pod, status=status)
            self._report(pod, parts)

    def _report(self, pod: Obj, parts: list[Obj]) -> None:
        """Events about images that cannot be pulled."""
        for container in parts:
            if not containers.can_be_pulled(container):
                image = container["image"]
                text = f'Failed to pull image "{image}": no such host'
                events.record(self._store, pod, "Failed", text, "kubelet", "Warning")
