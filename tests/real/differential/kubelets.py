# SPDX-License-Identifier: Apache-2.0
"""Hollow nodes: the lab's stand-in for kubelet registers them at both sites.

Pods at the real site are started and ended here, as a kubelet's requests would do it;
the emulator does that by itself.
"""

import contextlib
import importlib.util
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.real.differential.site import Site

_PROGRAM = "lab/kubespray/roles/kubeadm/files/kubelet.py"
_ROOT = Path(__file__).resolve().parents[3]
_BEAT = 2.0  # seconds; a kubelet renews its Lease every 10
_LOOK = 0.3
_STARTED = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
_STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
# Those that a kubelet gives its node.
_LABELS = {
    f"{domain}kubernetes.io/{key}": value
    for domain in ("", "beta.")
    for key, value in (("os", "linux"), ("arch", "amd64"))
}
#: The node that falls silent, and those that do not.
SILENT = "w3"
NAMES = ("m1", "w1", "w2", SILENT)


def _program() -> Any:
    path = _ROOT / _PROGRAM
    spec = importlib.util.spec_from_file_location("stand_in_kubelet", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A program finds what is beside it.
    sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


class Kubelets:
    """All kubelets of a site.

    :param client: PEM file with certificate and key of an administrator.
    :param runs_pods: start and end pods, too.
    """

    def __init__(self, site: Site, client: Path, runs_pods: bool) -> None:
        self._site = site
        self._runs_pods = runs_pods
        self.silent: set[str] = set()
        self._stop = threading.Event()
        program = _program()
        self._kubelets = {}
        for number, name in enumerate(NAMES):
            api = program.Api(site.url, str(site.ca), str(client), timeout=60)
            config: dict[str, Any] = {
                "name": name,
                "address": f"10.10.0.{10 + number}",
                "version": "v1.35.4",
                "labels": {"kubernetes.io/hostname": name, **_LABELS},
                "taints": [],
            }
            if not number:
                config["labels"][CONTROL_PLANE] = ""
                config["taints"] = [f"{CONTROL_PLANE}:NoSchedule"]
            self._kubelets[name] = program.Kubelet(api, config)
        self._errors = (OSError, AssertionError, program.Refused)
        self._threads = [threading.Thread(target=self._beat)]
        if runs_pods:
            self._threads.append(threading.Thread(target=self._run_pods))

    def start(self) -> None:
        """Register the nodes and continue until :meth:`stop`."""
        for kubelet in self._kubelets.values():
            kubelet.register()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _beat(self) -> None:
        while not self._stop.wait(_BEAT):
            for name in set(NAMES) - self.silent:
                # The API server is restarted, nodes are deleted.
                with contextlib.suppress(*self._errors):
                    self._kubelets[name].beat()

    def _run_pods(self) -> None:
        while not self._stop.wait(_LOOK):
            with contextlib.suppress(*self._errors):
                for pod in self._site.get("/api/v1/pods")["items"]:
                    if pod["spec"].get("nodeName") in set(NAMES) - self.silent:
                        self._step(pod)

    def _step(self, pod: Any) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            if metadata.get("finalizers"):
                return
            now = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            self._site.request("DELETE", path, now)
        elif pod["status"]["phase"] == "Pending":
            self._site.request(
                "PATCH", f"{path}/status", _running(pod), headers=_STRATEGIC
            )


def _running(pod: Any) -> Any:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    held = (pod["metadata"].get("annotations") or {}).get("kapi.sim/ready") == "false"
    names = [] if held else list(_STARTED)
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": not held,
            "started": not held,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for container in pod["spec"]["containers"]
    ]
    address = f"10.233.64.{int(pod['metadata']['uid'][:2], 16)}"
    return {
        "status": {
            "phase": "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "containerStatuses": containers,
            "conditions": [{"type": kind, "status": "True"} for kind in names],
        }
    }
