# SPDX-License-Identifier: Apache-2.0
"""The pods of the pause image on two nodes, which are network namespaces here."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import pytest

from tests.helpers.pod_network_probe import measure

FILES = Path(__file__).parents[3] / "lab/kubespray/roles/kubeadm/files"
API = "10.233.0.1"
# As the kubelet calls it; the events come from standard input.
DRIVER = """
import json, sys, pod_network
network = pod_network.PodNetwork(
    json.loads(sys.argv[1]), lambda *told: print(json.dumps(told), flush=True)
)
network.start()
print("started", flush=True)
network.follow(map(json.loads, sys.stdin))
"""
SERVER = """
import socket
server = socket.create_server(("", 6443))
print("started", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(connection.recv(9).upper())
    connection.close()
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


def ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


class Host:
    """A node with one interface, eth1."""

    def __init__(self, number: int) -> None:
        self.name = f"node-{os.getpid()}-{number}"
        self.address = f"10.8.0.{number}"
        self.processes: list[subprocess.Popen[str]] = []
        ip(f"netns add {self.name}")
        ip(f"-n {self.name} link set lo up")

    def run(self, *argv: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.name, sys.executable, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(FILES)},
        )
        self.processes.append(process)
        assert self.told(process) == "started"
        return process

    @staticmethod
    def told(process: subprocess.Popen[str]) -> str:
        return cast("IO[str]", process.stdout).readline().strip()

    def start(self) -> None:
        """Start its pod network; the API server is on the first node."""
        config = {
            "name": self.name,
            "address": self.address,
            "server": "https://10.8.0.1:6443",
            "pod_network": "10.233.64.0/18",
            "service_address": API,
        }
        self.kubelet = self.run("-c", DRIVER, json.dumps(config))

    def see(self, kind: str, pod: dict[str, Any]) -> None:
        line = json.dumps({"type": kind, "object": pod})
        print(line, file=self.kubelet.stdin, flush=True)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(10)
        ip(f"netns delete {self.name}")


def pod(host: Host, name: str) -> dict[str, Any]:
    containers = [{"name": "pause", "image": "registry.k8s.io/pause:3.10"}]
    return {
        "metadata": {"name": name, "namespace": "probes", "uid": f"uid-of-{name}"},
        "spec": {"nodeName": host.name, "containers": containers},
    }


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    one, two = made = Host(1), Host(2)
    ip(f"-n {one.name} link add eth1 type veth peer name eth1 netns {two.name}")
    for host in made:
        ip(f"-n {host.name} addr add {host.address}/24 dev eth1")
        ip(f"-n {host.name} link set eth1 up")
    one.run("-c", SERVER)
    for host in made:
        host.start()
    yield made
    for host in made:
        host.end()


def running(hosts: tuple[Host, Host]) -> list[str]:
    """Start a pod on each; their addresses, once both nodes know both."""
    addresses = []
    for host in hosts:
        new = pod(host, f"p{host.address}")
        host.see("ADDED", new)
        path, status = json.loads(host.told(host.kubelet))
        assert path == f"/api/v1/namespaces/probes/pods/p{host.address}"
        assert status["phase"] == "Running"
        assert status["hostIP"] == host.address
        addresses.append(status["podIP"])
        for other in hosts:
            other.see("MODIFIED", {**new, "status": status})
    return addresses


def test_pods_reach_each_other_and_the_service(hosts):
    first, second = running(hosts)
    a, b = measure(([first], [second]), ([second], [first]), services=[(API, 443)])
    well = {"tried": 1500, "arrived": 1500, "error": ""}
    assert a == {"paths": {second: well}, "services": {API: ""}}
    assert b == {"paths": {first: well}, "services": {API: ""}}


def test_service_passes_on_what_is_sent(hosts):
    script = (
        "import socket\n"
        f"with socket.create_connection(('{API}', 443)) as one:\n"
        "    one.sendall(b'some text')\n"
        "    print('started' if one.recv(99) == b'SOME TEXT' else 'no')"
    )
    hosts[1].run("-c", script)


def test_interface_that_claims_too_much_loses_large_packets(hosts):
    ip(f"-n {hosts[0].name} link set eth1 mtu 1600")
    first, second = running(hosts)
    a, b = measure(([first], [second]), ([second], [first]), limit=6)
    assert a["paths"][second] == {"tried": 1600, "arrived": 1500, "error": ""}
    assert b["paths"][first]["tried"] == 1500
    assert 1500 <= b["paths"][first]["arrived"] < 1600


def test_pods_that_are_gone_leave_nothing(hosts):
    first, _ = running(hosts)
    assert routes(hosts[1], first)
    for host in hosts:
        host.see("DELETED", pod(hosts[0], f"p{hosts[0].address}"))
        cast("IO[str]", host.kubelet.stdin).close()
        assert host.kubelet.wait(20) == 0
    assert routes(hosts[0], first) == routes(hosts[1], first) == ""


def routes(host: Host, address: str) -> str:
    argv = ["ip", "-n", host.name, "route", "show", address]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
