# SPDX-License-Identifier: Apache-2.0
"""What a real cluster is used for during a campaign: it must not suffer.

A Deployment with a budget, a DaemonSet, a pod that writes down what it is given, and
objects that are written through the API.
"""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from lab import client
from tests.integration.cluster import Cluster
from tests.real import workloads
from tests.real.cluster import settled

#: What the budget leaves running of :data:`.workloads.REPLICAS`.
AT_LEAST = 3
#: Seconds after which pods leave a node that is not heard of; Kubernetes' own are 300.
#: The heal of a load balancer, without which nodes are not heard of, takes less.
_LEAVE = 90
_PORT, _NODE_PORT = 7070, 30090
_DIRECTORY = "/var/lib/ledger"
_PAUSE = 1.0
_LIMIT = 5
_PODS = "/api/v1/namespaces/default/pods"
_CONFIG_MAP = "/api/v1/namespaces/default/configmaps/ledger"
#: Taints of nodes on which no agent needs to run. A kubelet whose disk was full takes
#: only critical pods for five minutes.
_UNUSED = ("tacker-k8s-mgmt/maintenance", "node.kubernetes.io/disk-pressure")
#: Only on the control plane is a file that no heal of a worker deletes.
_LEDGER = f"""\
apiVersion: v1
kind: ConfigMap
metadata: {{name: ledger}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: ledger}}
spec:
  serviceName: ledger
  selector: {{matchLabels: {{app: ledger}}}}
  template:
    metadata: {{labels: {{app: ledger}}}}
    spec:
      terminationGracePeriodSeconds: {workloads.GRACE}
      priorityClassName: system-node-critical
      nodeSelector: {{node-role.kubernetes.io/control-plane: ""}}
      tolerations: [{{operator: Exists}}]
      containers:
      - name: ledger
        image: {workloads.IMAGE}
        command: [nc, -ll, -p, "{_PORT}", -e, sh, -c]
        args: ['read line; echo "$line" >>/data/ledger && echo "written $line"']
        volumeMounts: [{{name: data, mountPath: /data}}]
      volumes:
      - name: data
        hostPath: {{path: {_DIRECTORY}, type: DirectoryOrCreate}}
---
apiVersion: v1
kind: Service
metadata: {{name: ledger}}
spec:
  type: NodePort
  selector: {{app: ledger}}
  ports: [{{port: {_PORT}, nodePort: {_NODE_PORT}}}]
"""


def manifests() -> str:
    """All of it."""
    documents = list(yaml.safe_load_all(workloads.manifests()))
    away = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _LEAVE,
        }
        for key in ("not-ready", "unreachable")
    ]
    for one in documents:
        if one["kind"] == "Deployment":
            one["spec"]["template"]["spec"]["tolerations"] = away
    documents += yaml.safe_load_all(f"{workloads.budget(AT_LEAST)}---\n{_LEDGER}")
    return str(yaml.safe_dump_all(documents))


class Work:
    """The workloads of one cluster, written to and looked at all the time.

    :param excused: whether pods may be missing now, since it was not an operation that
        has stopped them.
    :ivar uid: which cluster it is.
    """

    def __init__(
        self, cluster: Cluster, scratch: Path, excused: Callable[[], bool]
    ) -> None:
        self._cluster = cluster
        self._excused = excused
        self._scratch = scratch
        self.uid = cluster.uid
        self._broken: list[str] = []
        self._homeless = False
        self._written: dict[str, set[int]] = {"pod": set(), "API": set()}
        self._done = threading.Event()
        cluster.kubectl("apply", "-f", "-", stdin=manifests())
        settled(cluster)
        self.find()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def find(self) -> None:
        """Note where its control plane and its API are."""
        control_plane = self._cluster.server("masterNode")
        self._address = self._cluster.address(control_plane)
        where = f"{self._cluster.balancer_address()}:6443"
        path = self._scratch / "ledger.kubeconfig"
        self._api = client.ClusterApi(control_plane, where, path)

    def end(self) -> None:
        """Leave it alone."""
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._done.wait(_PAUSE):
            number += 1
            for name, write in (("pod", self._to_pod), ("API", self._to_api)):
                # Only what was acknowledged counts.
                with contextlib.suppress(OSError):
                    if write(number):
                        self._written[name].add(number)
            with contextlib.suppress(OSError):
                self._look()

    def _to_pod(self, number: int) -> bool:
        address = (self._address, _NODE_PORT)
        with socket.create_connection(address, timeout=_LIMIT) as connection:
            connection.sendall(f"{number}\n".encode())
            return connection.recv(100).decode().strip() == f"written {number}"

    def _to_api(self, number: int) -> bool:
        self._api.merge(_CONFIG_MAP, {"data": {str(number): ""}}, _LIMIT)
        return True

    def _look(self) -> None:
        pods = self._api.items(f"{_PODS}?labelSelector=app%3Dweb")
        found = [pod for pod in pods if is_running(pod)]
        if len(found) >= AT_LEAST:
            self._homeless = False
        elif not self._excused() and not self._are_homeless():
            nodes = sorted(pod["spec"].get("nodeName", "") for pod in found)
            now = time.strftime("%H:%M:%S")
            self._broken.append(f"{now}: {len(found)} pods run, on {nodes}")

    def _are_homeless(self) -> bool:
        """Whether pods had no worker to go to when they left the last one.

        The specification asks to try a drain, so operations continue there.
        """
        nodes = self._api.items("/api/v1/nodes")
        self._homeless |= not any(_takes_pods(node) for node in nodes)
        return self._homeless

    def broken_budgets(self) -> list[str]:
        """When fewer pods ran than the budget allows, since the last call."""
        broken, self._broken = self._broken, []
        more = f" and {len(broken) - 1} times more" if broken[1:] else ""
        return [f"budget: {text}{more}" for text in broken[:1]]

    def lost(self) -> Iterator[str]:
        """Name what was acknowledged and is not there."""
        if not self._thread.is_alive():
            yield "nothing is written any more"
        server = self._cluster.server("masterNode")
        lines = client.on_host(server, "cat", f"{_DIRECTORY}/ledger").split()
        told = self._cluster.kubectl("get", "configmap", "ledger", "-o", "json")
        kept = {"pod": set(lines), "API": set(json.loads(told).get("data", {}))}
        for name, numbers in self._written.items():
            missing = {str(number) for number in set(numbers)} - kept[name]
            if missing:
                yield f"{name}: {len(missing)} writes are lost: {sorted(missing)[:5]}"

    def counts(self) -> dict[str, int]:
        """How much was written and acknowledged."""
        return {name: len(numbers) for name, numbers in self._written.items()}

    def missing(self) -> Iterator[str]:
        """Name what does not run as it should."""
        ready = {name for name, is_so in self._cluster.ready_nodes().items() if is_so}
        runs = {
            app: [
                pod["spec"]["nodeName"]
                for pod in self._cluster.pods(f"app={app}")
                if is_running(pod) and pod["spec"]["nodeName"] in ready
            ]
            for app in ("web", "agent", "ledger")
        }
        if len(runs["web"]) != workloads.REPLICAS:
            yield f"{len(runs['web'])} of {workloads.REPLICAS} replicas run"
        if not runs["ledger"]:
            yield "the pod that keeps what is written does not run"
        used = {
            one["metadata"]["name"] for one in self._cluster.nodes() if _is_used(one)
        }
        if without := used - set(runs["agent"]):
            yield f"no agent runs on {sorted(without)}"


def is_running(pod: dict[str, Any]) -> bool:
    """Whether its containers run and nothing has told them to end.

    Ready is another thing: that of a node that is not heard of is False.
    """
    statuses = pod["status"].get("containerStatuses", [])
    runs = all("running" in status["state"] for status in statuses)
    return bool(statuses) and runs and "deletionTimestamp" not in pod["metadata"]


def _takes_pods(node: dict[str, Any]) -> bool:
    states = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    is_worker = str(node["metadata"]["name"]).startswith("worker-")
    is_open = is_worker and not node["spec"].get("unschedulable")
    return is_open and states.get("Ready") == "True"


def _is_used(node: dict[str, Any]) -> bool:
    taints = {taint["key"] for taint in node["spec"].get("taints", [])}
    is_worker = str(node["metadata"]["name"]).startswith("worker-")
    return is_worker and not taints.intersection(_UNUSED)
