# SPDX-License-Identifier: Apache-2.0
"""A stand-in for kubelet: registers its node, sends the heartbeats, runs few pods.

    kubelet CONFIG.json

The configuration: ``server`` (https://HOST:PORT of the API), ``ca`` and ``client`` (PEM
files; ``client`` holds certificate and key), ``name``, ``address``, ``version``,
``labels``, ``taints`` (``key=value:effect``), ``heartbeat_seconds``; for the pods of
the pause image (pod_network.py) ``pod_network`` and ``service_address``.

Like a real kubelet it registers once after its start: a node that a user deletes
stays away until the kubelet is started again. It keeps trying for ever while the API
does not answer, and says in its log when that begins and ends.
"""

import collections
import contextlib
import datetime
import http.client
import json
import os
import ssl
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# beside this file
import node_ports  # type: ignore[import-not-found]
import pod_network  # type: ignore[import-not-found]

Obj = dict[str, Any]

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_NODES = "/api/v1/nodes"
# Short, because a dead server is noticed only when the next one is opened.
_WATCH_SECONDS = 10
_FROM_NOW = f"watch=true&sendInitialEvents=true&timeoutSeconds={_WATCH_SECONDS}"
_SILENCED_BY = "kapi.sim/ready"
_MERGE_PATCH = "application/merge-patch+json"
_HEALTHY = {
    "MemoryPressure": "kubelet has sufficient memory available",
    "DiskPressure": "kubelet has no disk pressure",
    "PIDPressure": "kubelet has sufficient PID available",
}


class Refused(Exception):
    """The API answered with an error status."""

    def __init__(self, method: str, path: str, status: int, body: bytes) -> None:
        text = body.decode(errors="replace")
        if text.startswith("{"):
            text = json.loads(text).get("message", "")
        super().__init__(f"{method} {path}: {status} {text[:300]}")
        self.status = status


class Api:
    """The Kubernetes API over one connection, made again when it breaks.

    :param timeout: seconds for each request.
    """

    def __init__(self, server: str, ca: str, client: str, timeout: float) -> None:
        url = urllib.parse.urlsplit(server)
        context = ssl.create_default_context(cafile=ca)
        context.load_cert_chain(client)
        self._connection = http.client.HTTPSConnection(
            url.hostname or "", url.port or 443, timeout=timeout, context=context
        )

    def call(
        self, method: str, path: str, body: Obj | None = None, content_type: str = ""
    ) -> Obj:
        """:raises OSError, http.client.HTTPException, Refused: if it did not work."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": content_type or "application/json"}
        try:
            self._connection.request(method, path, data, headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        if answer.status >= 400:
            raise Refused(method, path, answer.status, content)
        decoded: Obj = json.loads(content)
        return decoded

    def watch(self, path: str) -> Iterator[Obj]:
        """The events of a watch, until it breaks off.

        :raises OSError, http.client.HTTPException, ValueError: it broke off.
        """
        try:
            self._connection.request("GET", path)
            for line in self._connection.getresponse():
                yield json.loads(line)
        finally:
            self._connection.close()


def _now(precise: bool = False) -> str:
    moment = datetime.datetime.now(datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S" + (".%fZ" if precise else "Z"))


def _machine_id() -> str:
    path = Path("/etc/machine-id")
    return path.read_text().strip() if path.exists() else ""


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _os_name() -> str:
    release = Path("/etc/os-release")
    lines = release.read_text().splitlines() if release.exists() else []
    names = [ln.partition("=")[2].strip('"') for ln in lines if "PRETTY_NAME=" in ln]
    return names[0] if names else "Linux"


def _taint(text: str) -> Obj:
    """``key=value:effect`` or ``key:effect``."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


class Kubelet:
    """One node."""

    def __init__(self, api: Api, config: Obj) -> None:
        self._api = api
        self._config = config
        self._node = f"{_NODES}/{config['name']}"
        self._lease = f"{_LEASES}/{config['name']}"

    def register(self) -> None:
        """Create the Node, or bring the one that is there up to date."""
        config = self._config
        metadata = {"name": config["name"], "labels": config["labels"]}
        taints = [_taint(text) for text in config["taints"]]
        node = {
            "metadata": metadata,
            "spec": {"taints": taints},
            "status": self._status(),
        }
        try:
            self._api.call("POST", _NODES, node)
        except Refused as refusal:
            if refusal.status != http.HTTPStatus.CONFLICT:
                raise
            self._update(taints)

    def _update(self, taints: list[Obj]) -> None:
        """Labels and taints that others put on the Node stay."""
        found = self._api.call("GET", self._node)["spec"].get("taints") or []
        added = [taint for taint in taints if taint not in found]
        change = {
            "metadata": {"labels": self._config["labels"]},
            "spec": {"taints": found + added},
        }
        self._api.call("PATCH", self._node, change, _MERGE_PATCH)
        self._post_status()

    def beat(self) -> None:
        """Renew the Lease; report the node as Ready if the API does not have that.

        :raises Refused: 404 if the Node was deleted.
        """
        node = self._api.call("GET", self._node)
        annotations = node["metadata"].get("annotations") or {}
        if annotations.get(_SILENCED_BY) == "false":
            return
        spec = {
            "holderIdentity": self._config["name"],
            "leaseDurationSeconds": 40,
            "renewTime": _now(precise=True),
        }
        reference = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": self._config["name"],
            "uid": node["metadata"]["uid"],
        }
        metadata = {"name": self._config["name"], "ownerReferences": [reference]}
        lease = {"metadata": metadata, "spec": spec}
        try:
            self._api.call("PATCH", self._lease, lease, _MERGE_PATCH)
        except Refused as refusal:
            if refusal.status != http.HTTPStatus.NOT_FOUND:
                raise
            self._api.call("POST", _LEASES, lease)
        conditions = node["status"].get("conditions", [])
        if not any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
            self._post_status()

    def _post_status(self) -> None:
        body = {"status": self._status()}
        self._api.call("PATCH", f"{self._node}/status", body, _MERGE_PATCH)

    def _status(self) -> Obj:
        config = self._config
        times = {"lastHeartbeatTime": _now(), "lastTransitionTime": _now()}
        conditions = [
            {"type": kind, "status": "False", "message": text, **times}
            for kind, text in _HEALTHY.items()
        ]
        ready = {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
        conditions.append({"type": "Ready", "status": "True", **ready, **times})
        resources = {"cpu": str(os.cpu_count()), "memory": "4Gi", "pods": "110"}
        return {
            "addresses": [
                {"type": "InternalIP", "address": config["address"]},
                {"type": "Hostname", "address": config["name"]},
            ],
            "capacity": resources,
            "allocatable": resources,
            "conditions": conditions,
            "images": [{"names": [pod_network.IMAGE], "sizeBytes": 320368}],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": _boot_id(),
                "containerRuntimeVersion": pod_network.RUNTIME,
                "kernelVersion": os.uname().release,
                "kubeProxyVersion": config["version"],
                "kubeletVersion": config["version"],
                "machineID": _machine_id(),
                "operatingSystem": "linux",
                "osImage": _os_name(),
                "systemUUID": _machine_id(),
            },
        }


def run(kubelet: Kubelet, period: float) -> None:
    """Register and send heartbeats for ever; log only what is new."""
    registered, trouble = False, ""
    while True:
        try:
            if not registered:
                kubelet.register()
                registered = True
                print("registered", flush=True)
            kubelet.beat()
            problem = ""
        except (OSError, http.client.HTTPException, Refused) as error:
            problem = str(error) or repr(error)
        if problem != trouble:
            print(problem or "the API answers again", flush=True)
            trouble = problem
        time.sleep(period)


def _run_pods(config: Obj, access: tuple[str, str, str], limit: float) -> None:
    api = Api(*access, timeout=limit)

    def report(path: str, status: Obj) -> None:
        api.call("PATCH", f"{path}/status", {"status": status}, _MERGE_PATCH)

    ports = node_ports.NodePorts(config["name"])

    def watching(kind: str) -> Callable[[], Iterator[Obj]]:
        watch = Api(*access, timeout=_WATCH_SECONDS + limit)
        follow = getattr(ports, kind)
        return lambda: follow(watch.watch(f"/api/v1/{kind}?{_FROM_NOW}"))

    services = threading.Thread(target=_keep, args=(watching("services"),))
    services.daemon = True
    services.start()
    pod_network.run(config, report, watching("pods"))


def _keep(watch: Callable[[], Iterator[Obj]]) -> None:
    """Watch for ever."""
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            collections.deque(watch(), maxlen=0)
        time.sleep(pod_network.RETRY)


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    period = float(config["heartbeat_seconds"])
    access = (config["server"], config["ca"], config["client"])
    if config.get("pod_network"):
        pods = threading.Thread(target=_run_pods, args=(config, access, 2 * period))
        pods.daemon = True
        pods.start()
    run(Kubelet(Api(*access, timeout=2 * period), config), period)


if __name__ == "__main__":
    main()
