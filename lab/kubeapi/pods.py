# SPDX-License-Identifier: Apache-2.0
"""Pods: where they are scheduled, and what their containers seem to do."""

import copy
import re
import time
from collections import Counter

from .admission import random_address
from .objects import (
    OUT_OF_SERVICE,
    Obj,
    age,
    daemon_tolerations,
    dig,
    expression_matches,
    held_unready,
    is_ready,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    taints_of,
    timestamp,
    tolerates,
)
from .resources import NODES, PODS
from .settings import Settings
from .store import Store, record_event

_SCHEDULER = "default-scheduler"
_REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def pinned_to(spec: Obj, node: str) -> Obj:
    """A pod spec that only that node satisfies, made as DaemonSets make it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    tolerations = daemon_tolerations(spec.get("tolerations"))
    pinned = {**copy.deepcopy(spec), "affinity": affinity, "tolerations": tolerations}
    return pinned


def attracted(spec: Obj, labels: dict[str, str]) -> bool:
    """Whether a pod's required node affinity admits a node with these labels."""
    wanted = [
        term.get("matchExpressions") or []
        for term in dig(spec, f"{_REQUIRED}.nodeSelectorTerms", [])
        if not term.get("matchFields")
    ]
    return not wanted or any(
        all(expression_matches(e, labels) for e in expressions)
        for expressions in wanted
    )


def pinned_node(pod: Obj) -> str | None:
    """The node that :func:`pinned_to` names; None for other pods."""
    for term in dig(pod, f"spec.{_REQUIRED}.nodeSelectorTerms", []):
        for field in term.get("matchFields") or []:
            return str(field["values"][0])
    return None


def fits(pod: Obj, node: Obj) -> bool:
    """Whether the pod may be put on the node."""
    spec, labels = pod["spec"], labels_of(node)
    return (
        pinned_node(pod) in (None, name_of(node))
        and attracted(spec, labels)
        and tolerates(node, spec.get("tolerations"))
        and all(labels.get(k) == v for k, v in (spec.get("nodeSelector") or {}).items())
    )


def schedule(store: Store, pod: Obj) -> None:
    """Bind the pod to a node, or write why not."""
    nodes = store.all(NODES)
    load = Counter(p["spec"].get("nodeName") for p in store.all(PODS))
    fitting = [name_of(node) for node in nodes if fits(pod, node)]
    condition = {"type": "PodScheduled", "status": "True" if fitting else "False"}
    spec = pod["spec"]
    if fitting:
        spec = {**spec, "nodeName": min(fitting, key=lambda name: load[name])}
    else:
        condition["reason"] = "Unschedulable"
        condition["message"] = f"0/{len(nodes)} nodes are available."
    status = {**pod["status"], "phase": "Pending", "conditions": [condition]}
    if not fitting and status == pod["status"]:
        return
    store.replace(PODS, pod, spec=spec, status=status)
    if fitting:
        text = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to "
        record_event(store, pod, "Scheduled", text + spec["nodeName"], _SCHEDULER)
    else:
        text, kind = condition["message"], "Warning"
        record_event(store, pod, "FailedScheduling", text, _SCHEDULER, kind)


_EXIT = re.compile(r"(?:^|[;&\s])exit (\d+)\s*$")
_ECHO = re.compile(r"(?:^|[;&]|\n)\s*echo '?([^;&'\n]*)'?")
_REGISTRY = re.compile(r"[^/]+\.invalid(?::\d+)?/")
_PAUSE = re.compile(r"(^|/)pause:")


def can_be_pulled(container: Obj) -> bool:
    """Whether there is such an image."""
    return not _REGISTRY.match(container.get("image", ""))


def exit_code(pod: Obj, container: Obj) -> int | None:
    """The exit code of a container; None for one that continues."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    text = words[-1] if words else ""
    if found := _EXIT.search(text):
        return int(found[1])
    if text.rpartition("/")[2] == "false":
        return 1
    goes_on = _PAUSE.search(container.get("image", "")) and not words
    return None if goes_on or dig(pod, "spec.restartPolicy") == "Always" else 0


def log(pod: Obj, name: str) -> str:
    """What a container has written."""
    for container in pod["spec"]["containers"]:
        if container["name"] == name or not name:
            words = [*(container.get("command") or ()), *(container.get("args") or ())]
            lines = _ECHO.findall(words[-1]) if words else []
            return "".join(f"{line.strip()}\n" for line in lines)
    return ""


def container_status(pod: Obj, container: Obj) -> Obj:
    """The status of a container that was started, or that cannot be."""
    state, ready, last, restarts = _container_state(pod, container)
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
        **({"lastState": last} if last else {}),
    }


def _container_state(pod: Obj, container: Obj) -> tuple[Obj, bool, Obj, int]:
    image, code = container.get("image", ""), exit_code(pod, container)
    if not can_be_pulled(container):
        text = f'Back-off pulling image "{image}"'
        return _waiting("ImagePullBackOff", text), False, {}, 0
    if code is None:
        since = dig(pod, "status.startTime") or timestamp()
        return {"running": {"startedAt": since}}, True, {}, 0
    ended = {
        "terminated": {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": dig(pod, "metadata.creationTimestamp"),
            "finishedAt": dig(pod, "metadata.creationTimestamp"),
        }
    }
    if dig(pod, "spec.restartPolicy") != "Always":
        return ended, False, {}, 0
    where = f"pod={pod['metadata']['name']}_{pod['metadata']['namespace']}"
    text = f"back-off 10s restarting failed container={container['name']} {where}"
    return _waiting("CrashLoopBackOff", text), False, ended, 1


def _waiting(reason: str, message: str) -> Obj:
    return {"waiting": {"reason": reason, "message": message}}


# As the stand-in for kubelet has it (pod_network.py there).
_RUNS_PAUSE = "namespaces://stand-in"
_STARTED = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
_UNTIL_READY = ("Ready", "ContainersReady")


def _is_of_kubelet(pod: Obj, node: Obj) -> bool:
    """Whether the pod is one of those that the node's kubelet really starts."""
    runtime = dig(node, "status.nodeInfo.containerRuntimeVersion")
    images = (container.get("image", "") for container in pod["spec"]["containers"])
    return runtime == _RUNS_PAUSE and any(map(_PAUSE.search, images))


def _phase(pod: Obj, parts: list[Obj]) -> tuple[str, bool]:
    """The phase of a pod whose containers were started, and whether it is ready."""
    if not all(map(can_be_pulled, parts)):
        return "Pending", False
    codes = [exit_code(pod, one) for one in parts]
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
                record_event(self._store, pod, "Killing", text, "kubelet")
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
        statuses = [container_status(pod, one) for one in parts]
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
            if not can_be_pulled(container):
                image = container["image"]
                text = f'Failed to pull image "{image}": no such host'
                record_event(self._store, pod, "Failed", text, "kubelet", "Warning")
