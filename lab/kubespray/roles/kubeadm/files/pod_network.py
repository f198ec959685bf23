# SPDX-License-Identifier: Apache-2.0
"""Real networks for the pods that run the pause image, where all others are objects.

Such a pod is a network namespace with an address, behind a veth pair; every node has a
route to it by way of the pod's node, as with a plugin that has no encapsulation. The
API's Service address is the node's own, and connections to it reach the API server.
"""

import contextlib
import ipaddress
import json
import random
import re
import shutil
import socket
import socketserver
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Obj = dict[str, Any]

#: In the status of a Node: its kubelet starts the pods of the pause image.
RUNTIME = "namespaces://stand-in"
IMAGE = "registry.k8s.io/pause:3.10"
_PAUSE = re.compile(r"(^|/)pause:")
_GATEWAY = "169.254.1.1"
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
RETRY = 1.0  # seconds
_STARTED = ("Initialized", "Ready", "ContainersReady", "PodScheduled")


def _ip(*lines: str) -> None:
    subprocess.run(
        ["ip", "-batch", "-"],
        input="\n".join(lines) + "\n",
        check=True,
        text=True,
        stderr=subprocess.PIPE,
        timeout=20,
    )


class PodNetwork:
    """The pods' network on one node.

    :param config: of the kubelet.
    :param report: writes the status of a pod, given its path and the status.
    """

    def __init__(self, config: Obj, report: Callable[[str, Obj], None]) -> None:
        self._config = config
        self._report = report
        self._sandboxes: dict[str, subprocess.Popen[bytes]] = {}
        self._routes: dict[str, str] = {}

    def start(self) -> None:
        """Forward packets of pods, and connections to the API's Service."""
        _FORWARDING.write_text("1")
        host = self._config["service_address"]
        _ip(f"address replace {host}/32 dev lo")
        server = _Forwarder((host, 443), self._config["server"])
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def follow(self, events: Iterator[Obj]) -> None:
        """Do what the events of a watch say, which begins with all pods."""
        seen: set[str] = set()
        for event in events:
            pod = event["object"]
            uid = pod["metadata"].get("uid", "")
            if event["type"] == "BOOKMARK":
                for gone in {*self._sandboxes, *self._routes} - seen:
                    self._remove(gone)
            elif event["type"] == "DELETED":
                self._remove(uid)
            elif event["type"] != "ERROR" and _is_ours(pod):
                seen.add(uid)
                self._update(uid, pod)

    def _update(self, uid: str, pod: Obj) -> None:
        status = pod.get("status", {})
        address, node = status.get("podIP"), status.get("hostIP")
        if pod["spec"].get("nodeName") == self._config["name"]:
            if uid not in self._sandboxes:
                try:
                    self._add(uid, pod)
                except BaseException:
                    self._remove(uid)
                    raise
        elif address and node and uid not in self._routes:
            _ip(f"route replace {address}/32 via {node}")
            self._routes[uid] = address

    def _add(self, uid: str, pod: Obj) -> None:
        network = ipaddress.ip_network(self._config["pod_network"])
        address = str(network[random.randrange(11, network.num_addresses - 1)])
        # It ends with this process, whose end closes its input.
        sandbox = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self._sandboxes[uid] = sandbox
        own = Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{sandbox.pid}/ns/net").readlink() == own:
            time.sleep(0.01)
        veth = f"pod{uid.replace('-', '')[:12]}"
        mtu = _mtu(self._config["address"])
        _ip(
            f"link add {veth} mtu {mtu} type veth"
            f" peer name eth0 mtu {mtu} netns {sandbox.pid}",
            f"address add {_GATEWAY}/32 dev {veth}",
            f"link set {veth} up",
            f"route replace {address}/32 dev {veth}",
        )
        inside = (
            "link set lo up",
            f"address add {address}/32 dev eth0",
            "link set eth0 up",
            f"route add {_GATEWAY}/32 dev eth0",
            f"route add default via {_GATEWAY} dev eth0",
        )
        subprocess.run(
            ["nsenter", "--target", str(sandbox.pid), "--net", "ip", "-batch", "-"],
            input="\n".join(inside) + "\n",
            check=True,
            text=True,
            timeout=20,
        )
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self._report(path, _running(address, self._config["address"]))

    def _remove(self, uid: str) -> None:
        if sandbox := self._sandboxes.pop(uid, None):
            sandbox.kill()
            sandbox.wait(10)
        if address := self._routes.pop(uid, ""):
            # It went with an interface that was taken away.
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip(f"route delete {address}/32")


def _is_ours(pod: Obj) -> bool:
    return any(_PAUSE.search(one["image"]) for one in pod["spec"]["containers"])


def _running(address: str, node: str) -> Obj:
    return {
        "phase": "Running",
        "hostIP": node,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": kind, "status": "True"} for kind in _STARTED],
    }


def _mtu(address: str) -> int:
    """The MTU of the node's interface with that address."""
    shown = subprocess.run(
        ["ip", "-json", "address", "show", "to", address],
        check=True,
        capture_output=True,
        timeout=20,
    )
    return next((int(link["mtu"]) for link in json.loads(shown.stdout) if link), 1500)


class _Forwarder(socketserver.ThreadingTCPServer):
    """Passes connections on to the API server, as kube-proxy's rules do."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, address: tuple[str, int], server: str) -> None:
        url = urllib.parse.urlsplit(server)
        self.target = (url.hostname or "", url.port or 443)
        super().__init__(address, _Connection)


class _Connection(socketserver.BaseRequestHandler):
    server: _Forwarder

    def handle(self) -> None:
        with socket.create_connection(self.server.target, 10) as other:
            other.settimeout(None)
            back = threading.Thread(target=_pass_on, args=(other, self.request))
            back.start()
            _pass_on(self.request, other)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError), source.makefile("rb", 0) as data:
        with target.makefile("wb", 0) as out:
            shutil.copyfileobj(data, out)
        target.shutdown(socket.SHUT_WR)


def run(
    config: Obj, report: Callable[[str, Obj], None], watch: Callable[[], Iterator[Obj]]
) -> None:
    """Follow the cluster's pods for ever; log only what is new.

    :param watch: opens a watch of all pods.
    """
    network, trouble = PodNetwork(config, report), ""
    network.start()
    while True:
        try:
            network.follow(watch())
            trouble = ""
            continue
        except Exception as error:  # one pod must not end it
            problem = f"pod network: {getattr(error, 'stderr', None) or error!r}"
        if problem != trouble:
            print(problem, flush=True)
        trouble = problem
        time.sleep(RETRY)
