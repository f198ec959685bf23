# SPDX-License-Identifier: Apache-2.0
"""The probe in real network namespaces: two pods, and a router between them."""

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.helpers.pod_network_probe import measure

# The probe looks for the address among all processes, so it is this process's alone.
NET4 = f"10.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
NET6 = f"fd09:{os.getpid() & 0xFFFF:x}"
A, B, A6, B6 = f"{NET4}.2", f"{NET4}.6", f"{NET6}:1::2", f"{NET6}:2::2"
ROUTERS_A = "va"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
_numbers = itertools.count()


class Pods:
    """Pods a and b; their interfaces lead to a router."""

    def __init__(self) -> None:
        own = f"{os.getpid()}-{next(_numbers)}"
        self.a, self.b, self.router = (f"{kind}-{own}" for kind in "abr")
        # A process keeps each pod's namespace, as the pause container does.
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in (self.a, self.b, self.router):
            _ip(f"netns add {name}")
            _ip(f"-n {name} link set lo up")
        for number, (pod, veth) in enumerate([(self.a, "va"), (self.b, "vb")], 1):
            end = f"peer name eth0 netns {pod}"
            _ip(f"-n {self.router} link add {veth} type veth {end}")
            _ip(f"-n {self.router} link set {veth} up")
            _ip(f"-n {pod} link set eth0 up")
            for router, own, prefix, flag in (
                (f"{NET4}.{4 * number - 3}", f"{NET4}.{4 * number - 2}", 30, ""),
                (f"{NET6}:{number}::1", f"{NET6}:{number}::2", 64, "nodad"),
            ):
                _ip(f"-n {self.router} addr add {router}/{prefix} dev {veth} {flag}")
                _ip(f"-n {pod} addr add {own}/{prefix} dev eth0 {flag}")
                _ip(f"-n {pod} route add default via {router}")
            self._start(pod, "sleep", "600")
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            self._run(self.router, "sysctl", "-qw", f"{key}=1")

    def _start(self, namespace: str, *command: str) -> None:
        argv = ["ip", "netns", "exec", namespace, *command]
        self._processes.append(subprocess.Popen(argv))

    def _run(self, namespace: str, *command: str) -> None:
        subprocess.run(["ip", "netns", "exec", namespace, *command], check=True)

    def remove(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait(10)
        for name in (self.a, self.b, self.router):
            _ip(f"netns delete {name}")

    def drop(self, interface: str) -> None:
        """What comes in there is dropped silently, as port security does it."""
        for family in ("-4", "-6"):
            _ip(f"-n {self.router} {family} rule add iif {interface} blackhole")

    def take_less(self, interface: str, mtu: int) -> None:
        """Larger packets are lost without a word at this end of the pod's cable."""
        _ip(f"-n {self.router} link set {interface} mtu {mtu}")

    def serve(self, namespace: str, port: int) -> None:
        script = (
            "import socket\n"
            f"s = socket.create_server(('', {port}), family=socket.AF_INET6,"
            " dualstack_ipv6=True)\n"
            "while True: s.accept()"
        )
        self._start(namespace, sys.executable, "-c", script)


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


@pytest.fixture
def pods() -> Iterator[Pods]:
    made = Pods()
    yield made
    made.remove()


def test_both_families_in_full_size(pods):
    a, b = measure(([A, A6], [B, B6]), ([B, B6], [A, A6]))
    well = {"tried": 1500, "arrived": 1500, "error": ""}
    assert a == {"paths": {B: well, B6: well}, "services": {}}
    assert b["paths"] == {A: well, A6: well}


def test_family_that_only_one_of_them_has_is_left_out(pods):
    a, b = measure(([A], [B, B6]), ([B, B6], [A]))
    assert (list(a["paths"]), list(b["paths"])) == ([B], [A])


@pytest.mark.parametrize("own", [(A, B), (A6, B6)], ids=["IPv4", "IPv6"])
def test_one_direction_that_is_dropped(pods, own):
    pods.drop(ROUTERS_A)
    (a, b) = measure(([own[0]], [own[1]]), ([own[1]], [own[0]]), limit=3)
    assert a["paths"][own[1]] == {"tried": 1500, "arrived": 1500, "error": ""}
    assert b["paths"][own[0]] == {"tried": 1500, "arrived": 0, "error": ""}


@pytest.mark.parametrize("own", [(A, B), (A6, B6)], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("mtu", [1281, 1491])
def test_largest_size_that_arrives_is_found(pods, own, mtu):
    # From a it is lost silently, and a veth lets 4 bytes of a VLAN tag pass; to a the
    # router sends an ICMP error.
    pods.take_less(ROUTERS_A, mtu)
    sides = ([own[0]], [own[1]]), ([own[1]], [own[0]])
    a, b = measure(*sides, limit=6)
    assert a["paths"][own[1]] == {"tried": 1500, "arrived": mtu, "error": ""}
    assert b["paths"][own[0]]["arrived"] == mtu + 4


def test_mtu_of_a_route_is_that_of_the_pod(pods):
    for pod, router in ((pods.a, f"{NET4}.1"), (pods.b, f"{NET4}.5")):
        _ip(f"-n {pod} route replace default via {router} mtu 1450")
    pods.take_less(ROUTERS_A, 1450)
    a, b = measure(([A], [B]), ([B], [A]))
    assert a["paths"][B] == {"tried": 1450, "arrived": 1450, "error": ""}
    assert b["paths"][A] == a["paths"][B]


def test_counterpart_that_comes_late_is_waited_for(pods):
    pods.drop(ROUTERS_A)
    timer = threading.Timer(3, lambda: _ip(f"-n {pods.router} rule del iif va"))
    timer.start()
    a, b = measure(([A], [B]), ([B], [A]), limit=60)
    assert a["paths"][B]["arrived"] == b["paths"][A]["arrived"] == 1500


def test_pod_without_a_route_says_so(pods):
    _ip(f"-n {pods.a} route del default")
    a, _ = measure(([A], [B]), ([B], [A]), limit=1)
    assert a["paths"][B]["tried"] == 0
    assert a["paths"][B]["error"] == "Network is unreachable"


def test_services_are_reached_from_the_pod(pods):
    pods.serve(pods.b, 443)
    services = ((B, 443), (B6, 443))
    (a,) = measure(([A, A6], []), services=services)
    assert a == {"paths": {}, "services": {B: "", B6: ""}}
    (a,) = measure(([A], []), services=[(B, 444)], limit=1)
    assert a["services"] == {B: "Connection refused"}


def test_pod_that_is_not_there_is_named(pods):
    (told,) = measure((["192.0.2.77"], [B]), limit=1)
    assert "no process here has the pod's address 192.0.2.77" in told


def test_datagrams_of_others_do_not_count(pods):
    script = (
        "import socket, time\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for n in range(200):\n"
        f"    for data in (b'?', b'[1]', b'7', b'[\"x\", \"{A}\", 9, 9]'):\n"
        f"        s.sendto(data, ('{B}', 9799))\n"
        "    time.sleep(0.01)"
    )
    pods._start(pods.a, sys.executable, "-c", script)
    (b,) = measure(([B], [A]), limit=2)
    assert b["paths"][A]["arrived"] == 0
