# SPDX-License-Identifier: Apache-2.0
"""UDP through the kernel's packet filter, between network namespaces.

The load balancer's namespace has a network with a client and one with the workers;
HAProxy and the service for UDP really run there.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.helpers import udp
from tests.unit.balancer.live import Live, wait_until
from tests.unit.balancer.sandbox import each_haproxy

PATH = f"{os.environ['PATH']}:/usr/sbin"
WORKERS = ("10.2.0.2", "10.2.0.3", "10.2.0.4")
NODE_PORT, HEALTH_PORT, PORT = "30053", "32053", "53"
EXPOSE = ("--port", PORT, "--node-port", NODE_PORT, "--protocol", "udp")
HEALTH = ("--health-port", HEALTH_PORT)

NETWORKS = """
set -e
ip link set lo up
ip link add client type veth peer name eth0 netns {client}
ip link add nodes type veth peer name eth0 netns {nodes}
ip addr add 10.1.0.1/24 dev client
ip addr add fd00:1::1/64 dev client nodad
ip addr add 10.2.0.1/24 dev nodes
ip addr add fd00:2::1/64 dev nodes nodad
ip link set client up
ip link set nodes up
nsenter -n -t {client} sh -ec '
    ip addr add 10.1.0.2/24 dev eth0
    ip addr add 10.1.0.3/24 dev eth0
    ip addr add fd00:1::2/64 dev eth0 nodad
    ip link set eth0 up'
nsenter -n -t {nodes} sh -ec '
    for host in 2 3 4; do ip addr add 10.2.0.$host/24 dev eth0; done
    ip addr add fd00:2::2/64 dev eth0 nodad
    ip link set lo up
    ip link set eth0 up'
"""

SYSTEMCTL = """#!/usr/bin/env bash
cd "$(dirname "$0")" || exit
case "$*" in
    "is-active "*udp) [[ -e udp-pid ]] && kill -0 "$(<udp-pid)" ;;
    "is-enabled "*udp) [[ -e udp-enabled ]] ;;
    "enable "*udp) touch udp-enabled ;;
    "restart "*udp)
        [[ ! -e udp-pid ]] || kill "$(<udp-pid)"
        bash "$LB_UDP_PROGRAM" forward >>udp-log 2>&1 &
        echo $! >udp-pid ;;
    daemon-reload) ;;
    "is-active "*) [[ -e pid ]] && kill -0 "$(<pid)" ;;
    "enable "*)
        "$LB_HAPROXY" -W -p "$PWD/started" -f "$LB_HAPROXY_CFG" 2>>log &
        echo $! >pid
        until [[ -s started ]]; do kill -0 $! && sleep 0.05 || exit; done ;;
    "reload "*) kill -USR2 "$(<pid)" ;;
esac
"""


class Namespace:
    """A network namespace, as long as its process lives."""

    def __init__(self, stack: contextlib.ExitStack, entry: Sequence[str] = ()) -> None:
        unshare = ["unshare", *(("-n",) if entry else ("-Urn",))]
        process = stack.enter_context(
            subprocess.Popen(
                [*entry, *unshare, "sh", "-c", "echo $$; exec cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(process.kill)
        assert process.stdout
        self.pid = int(process.stdout.readline())
        user = () if entry else ("-U", "--preserve-credentials")
        self.entry = (*entry, "nsenter", *user, "-n", "-t", str(self.pid))


class Site(Live):
    """A load balancer in a network namespace, with networks at both sides."""

    def __init__(
        self, directory: Path, haproxy: str, stack: contextlib.ExitStack
    ) -> None:
        super().__init__(directory, haproxy, SYSTEMCTL)
        self._stack = stack
        self._own = Namespace(stack)
        self._client, self._nodes = (Namespace(stack, self._own.entry) for _ in "12")
        pids = {"client": self._client.pid, "nodes": self._nodes.pid}
        networks = NETWORKS.format(**pids)
        subprocess.run([*self._own.entry, "sh", "-c", networks], check=True)
        self.prefix = self._own.entry
        self.environment |= {
            "PATH": PATH,
            "LB_BIND": "::",
            "LB_UDP_PROGRAM": str(directory / "udp.sh"),
            "LB_UDP_UNIT": str(directory / "tacker-k8s-mgmt-udp.service"),
            "LB_UDP_SECONDS": "0.1",
        }
        self.workers: dict[str, subprocess.Popen[str]] = {}

    def stop(self) -> None:
        super().stop()
        pid = self.directory / "udp-pid"
        if pid.exists():
            os.kill(int(pid.read_text()), 15)

    def start_worker(self, address: str) -> None:
        process = self._program(self._nodes, "worker", address, NODE_PORT, HEALTH_PORT)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        self.workers[address] = process

    def stop_worker(self, address: str) -> None:
        process = self.workers.pop(address)
        process.kill()
        process.wait()

    def client(
        self, address: str = "10.1.0.1", limit: float = 20, port: str = PORT
    ) -> "Client":
        return Client(self._program(self._client, "client", address, port, str(limit)))

    def route_through(self) -> None:
        """Have client and workers reach each other by the load balancer's host."""
        for where, network, gateway in (
            (self._client, "10.2.0.0/24", "10.1.0.1"),
            (self._nodes, "10.1.0.0/24", "10.2.0.1"),
        ):
            route = ("ip", "route", "add", network, "via", gateway)
            environment = {**os.environ, "PATH": PATH}
            subprocess.run([*where.entry, *route], env=environment, check=True)

    def _program(self, where: Namespace, *arguments: str) -> subprocess.Popen[str]:
        process = self._stack.enter_context(
            subprocess.Popen(
                [*where.entry, sys.executable, udp.__file__, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        self._stack.callback(process.kill)
        return process

    def states(self) -> dict[str, str]:
        (service,) = self.report().services
        return {server.name: server.state for server in service.servers}

    def inside(self, *command: str) -> str:
        """What a command prints in the load balancer's namespace."""
        argv = [*self.prefix, *command]
        return subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=True
        ).stdout


class Client:
    """One flow of datagrams."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, text: str = "hello") -> tuple[str, str]:
        """The worker that answers and the port that it sees; "" without an answer."""
        assert self._process.stdin
        assert self._process.stdout
        print(text, file=self._process.stdin, flush=True)
        worker, _, rest = self._process.stdout.readline().strip().partition(" ")
        port, _, echoed = rest.partition(" ")
        assert echoed == (text if worker else "")
        return worker, port


@pytest.fixture
def site(tmp_path, haproxy):
    for program in ("nft", "conntrack", "ip", "unshare", "nsenter"):
        assert shutil.which(program, path=PATH), "python3 -m lab install --with-tests"
    with contextlib.ExitStack() as stack:
        site = Site(tmp_path, haproxy, stack)
        stack.callback(site.stop)
        for address in WORKERS:
            site.start_worker(address)
        workers = [
            word
            for number, address in enumerate(WORKERS)
            for word in ("--worker", f"w-{number}={address}")
        ]
        site.do("install", "--control-plane", "cp=127.0.0.1:9", *workers)
        yield site


@each_haproxy
def test_datagrams_reach_all_workers_and_answers_come_back(site):
    assert site.do("expose", "dns", *EXPOSE, *HEALTH) == "changed"
    assert {site.client().ask()[0] for _ in range(6)} == set(WORKERS)
    assert site.do("expose", "dns", *EXPOSE, *HEALTH) == "unchanged"
    (service,) = site.report().services
    assert (service.protocol, service.health_port) == ("udp", int(HEALTH_PORT))
    assert site.report().udp_active is True
    wait_until(lambda: set(site.states().values()) == {"UP"})


def test_a_flow_goes_on_while_others_come_and_go(site):
    site.do("expose", "dns", *EXPOSE, *HEALTH)
    flow = site.client()
    first = flow.ask()
    name = f"w-{WORKERS.index(first[0])}"
    leaving = next(one for one in ("w-0", "w-1") if one != name)
    site.do("remove-worker", leaving)
    assert flow.ask() == first
    site.do(
        *("expose", "--unexpose", "none", "other", "--port", "54"),
        *("--node-port", "30054", "--protocol", "udp"),
    )
    assert flow.ask() == first
    seen = {site.client().ask()[0] for _ in range(6)}
    assert len(seen) == 2
    assert WORKERS[int(leaving[-1])] not in seen


def test_a_worker_that_is_not_healthy_loses_its_flows_to_others(site):
    site.do("expose", "dns", *EXPOSE, *HEALTH)
    flow = site.client(limit=1)
    lost, _ = flow.ask()
    site.stop_worker(lost)
    wait_until(lambda: flow.ask()[0] not in ("", lost))
    assert {site.client().ask()[0] for _ in range(6)} == set(WORKERS) - {lost}
    assert site.states()[f"w-{WORKERS.index(lost)}"] == "DOWN"
    site.start_worker(lost)
    wait_until(lambda: site.client().ask()[0] == lost)


def test_all_get_packets_where_every_check_fails(site):
    # Nothing listens on kubelet's port here.
    site.do("expose", "dns", *EXPOSE)
    wait_until(lambda: set(site.states().values()) == {"DOWN"})
    # The rules follow the states at the next look.
    wait_until(lambda: {site.client().ask()[0] for _ in range(6)} == set(WORKERS))


def test_only_clients_of_the_sources_are_served(site):
    site.do("expose", "dns", *EXPOSE, *HEALTH, "--source", "10.9.0.0/16")
    assert site.client(limit=1).ask() == ("", "")
    allowed = ("--source", "10.0.0.0/8", "--source", "10.1.0.2/32")
    assert site.do("expose", "dns", *EXPOSE, *HEALTH, *allowed) == "changed"
    assert site.client().ask()[0] in WORKERS
    site.do("expose", "dns", *EXPOSE, *HEALTH, "--source", "::/0")
    assert site.client(limit=1).ask() == ("", "")
    site.do("expose", "dns", *EXPOSE, *HEALTH, "--source", "0.0.0.0/0")
    assert site.client().ask()[0] in WORKERS


def test_a_failure_of_the_rules_leaves_everything_as_it_was(site):
    site.do("expose", "dns", *EXPOSE, *HEALTH)
    before = site.written()
    rules = site.inside("nft", "list", "ruleset")
    nft = site.directory / "bin" / "nft"
    nft.parent.mkdir()
    nft.write_text(
        '#!/bin/sh\n[ "$1" = -f ] && [ ! -e "$0.failed" ] && touch "$0.failed" &&'
        f' echo "Error: no" >&2 && exit 1\nexec {shutil.which("nft", path=PATH)} "$@"\n'
    )
    nft.chmod(0o755)
    path = f"{nft.parent}:{PATH}"
    ports = ("--port", "54", "--node-port", "30054", "--protocol", "udp")
    same_config = ("--port", "55", *EXPOSE[2:], *HEALTH)
    for options in (("other", *ports), ("dns", *same_config)):
        line = site.refused("expose", *options, PATH=path)
        assert line == "nft cannot set the rules for UDP: Error: no"
        assert site.written() == before
        assert site.inside("nft", "list", "ruleset") == rules
        nft.with_name("nft.failed").unlink()
    assert site.client().ask()[0] in WORKERS
    assert site.report().current


def test_ipv6_clients_reach_ipv6_workers(site):
    site.start_worker("fd00:2::2")
    site.do("expose", "dns", *EXPOSE, *HEALTH)
    site.do("add-worker", "w-6=fd00:2::2")
    assert site.client("fd00:1::1").ask()[0] == "fd00:2::2"
    assert site.client().ask()[0] in WORKERS


def test_nothing_is_forwarded_any_more_when_the_last_service_goes(site):
    forwarding = ("cat", "/proc/sys/net/ipv4/ip_forward")
    assert site.inside(*forwarding).strip() == "0"
    site.do("expose", "dns", *EXPOSE, *HEALTH)
    flow = site.client(limit=1)
    assert flow.ask()[0]
    assert site.inside(*forwarding).strip() == "1"
    assert site.do("unexpose", "dns") == "changed"
    wait_until(lambda: flow.ask()[0] == "")
    assert site.inside(*forwarding).strip() == "0"
    assert "tacker_k8s_mgmt" not in site.inside("nft", "list", "tables")
    assert site.do("unexpose", "dns") == "unchanged"


@pytest.mark.parametrize("routes", [True, False])
def test_only_a_vm_that_is_a_router_forwards_other_packets(site, routes):
    """The client sends to a worker itself, through the load balancer."""
    site.route_through()
    site.inside("sh", "-c", f"echo {routes:d} >/proc/sys/net/ipv4/ip_forward")
    straight = site.client(WORKERS[0], limit=1, port=NODE_PORT)
    site.do("expose", "dns", *EXPOSE, *HEALTH)
    # The rules are set once more while the driver's forwarding is on.
    site.do("add-worker", "w-9=10.2.0.9")
    assert site.client().ask()[0] in WORKERS
    assert (straight.ask()[0] == WORKERS[0]) is routes
    site.do("unexpose", "dns")
    forwarding = site.inside("cat", "/proc/sys/net/ipv4/ip_forward").strip()
    assert forwarding == f"{routes:d}"


def test_a_port_that_a_program_receives_at_is_refused(site):
    server = (
        "import socket; s = socket.socket(type=2); s.bind(('', 53)); print(1); input()"
    )
    with subprocess.Popen(
        [*site.prefix, sys.executable, "-uc", server],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        line = site.refused("expose", "dns", *EXPOSE)
        process.kill()
    assert line == "UDP port 53 is in use by another program on the load balancer"
    assert site.report().services == ()


def test_the_rules_are_there_again_after_the_vm_has_started_anew(site):
    site.do("expose", "dns", *EXPOSE, *HEALTH)
    site.inside("nft", "flush", "ruleset")
    site.inside(site.environment["LB_SYSTEMCTL"], "restart", "tacker-k8s-mgmt-udp")
    wait_until(lambda: site.client(limit=1).ask()[0] in WORKERS)
