"""Heal through Tacker's REST API: workers alive and dead, balancer, whole VNF."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator

import pytest

from lab import inside
from tests.integration.conftest import Cluster, Lab
from tests.integration.test_scaling import (
    WORKLOADS,
    consistent,
    names,
    pods,
    running,
)

PORT = 8080
ECHO = """
import socket
listener = socket.create_server(("", 30080))
while True:
    connection = listener.accept()[0]
    while data := connection.recv(100):
        connection.sendall(data)
"""


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with lab.instance("healed") as made:
        made.instantiate()
        made.kubectl("apply", "-f", "-", stdin=WORKLOADS)
        running(made)
        yield made


def machine_ids(cluster: Cluster) -> dict[str, str]:
    """What each node's kubelet says its machine is."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["machineID"]
        for node in nodes
    }


def kill(cluster: Cluster, server: str) -> None:
    """Switch a VM off and wait until the cluster has noticed."""
    inside.command([inside.SYSTEM_PYTHON, "-m", "lab.cloud", "kill", server])
    deadline = time.monotonic() + 60
    while all(cluster.ready_nodes().values()):
        assert time.monotonic() < deadline
        time.sleep(0.5)


@contextlib.contextmanager
def held_open(cluster: Cluster, server: str) -> Iterator[None]:
    """A connection to a CNF on one worker, through the load balancer, that stays."""
    inside.on_host(server, "sh", "-c", f"python3 -c '{ECHO}' >/dev/null 2>&1 &")
    cluster.balancer("expose", "echo", "--port", str(PORT), "--node-port", "30080")
    deadline = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError):
            connection = connect(cluster)
            break
        assert time.monotonic() < deadline
        time.sleep(0.5)
    with connection:
        yield
        connection.sendall(b"still there?")
        assert connection.recv(100) == b"still there?"
    cluster.balancer("unexpose", "echo")


def connect(cluster: Cluster) -> socket.socket:
    """A connection through the load balancer that has been answered once."""
    connection = socket.create_connection((cluster.balancer_address(), PORT), 5)
    try:
        connection.sendall(b"hello")
        if connection.recv(100) != b"hello":
            raise ConnectionError("nobody is there yet")
    except OSError:
        connection.close()
        raise
    return connection


class TestHealing:
    def test_living_worker(self, cluster):
        before = consistent(cluster, 2)
        identities = machine_ids(cluster)
        (address, server), (_, other) = sorted(cluster.workers().items())
        with held_open(cluster, other):
            cluster.heal(server)
        assert consistent(cluster, 2) == before
        after = machine_ids(cluster)
        name = f"worker-{address.replace('.', '-')}"
        assert after.pop(name) != identities.pop(name)
        assert after == identities
        running(cluster)

    def test_dead_worker(self, cluster):
        before = consistent(cluster, 2)
        server = sorted(cluster.workers().values())[1]
        kill(cluster, server)
        cluster.heal(server)
        assert consistent(cluster, 2) == before
        assert server not in cluster.workers().values()
        running(cluster)
        assert {one["phase"] for one in pods(cluster, "app=agent")} == {"Running"}

    def test_two_workers_one_of_them_dead(self, cluster):
        before = consistent(cluster, 2)
        first, second = sorted(cluster.workers().values())
        kill(cluster, second)
        cluster.heal(first, second)
        assert consistent(cluster, 2) == before
        assert not {first, second} & set(cluster.workers().values())
        running(cluster)

    def test_failed_join_is_gone_on_with_by_retry(self, cluster):
        before = consistent(cluster, 2)
        server = next(iter(cluster.workers().values()))
        fault = {
            "task": "Join the cluster",
            "host": "worker-*",
            "message": "no room",
            "times": 1,
        }
        error = cluster.heal(
            server, expect="FAILED_TEMP", kubespray_vars={"lab_fault": fault}
        )
        assert "heal_end" in error
        assert "no room" in error
        cluster.handle("retry", "COMPLETED")
        assert consistent(cluster, 2) == before

    def test_failed_join_is_mended_by_the_next_heal_after_fail(self, cluster):
        before = consistent(cluster, 2)
        first, second = cluster.workers().values()
        fault = {"task": "Join the cluster", "host": "worker-*", "message": "no room"}
        cluster.heal(first, expect="FAILED_TEMP", kubespray_vars={"lab_fault": fault})
        cluster.handle("fail", "FAILED")
        assert len(names(cluster)) == 1
        cluster.heal(second)
        assert consistent(cluster, 2) == before

    def test_load_balancer_gets_its_routes_and_services_again(self, cluster):
        cluster.balancer("expose", "web", "--port", str(PORT), "--node-port", "30080")
        before = consistent(cluster, 2)
        cluster.heal(cluster.server("externalLB"))
        assert consistent(cluster, 2) == before
        (service,) = cluster.balancer("status")["services"]
        assert (service["name"], service["port"]) == ("web", PORT)
        assert cluster.api("/readyz") == "ok"

    def test_control_plane_is_refused_and_nothing_is_touched(self, cluster):
        before = consistent(cluster, 2)
        servers, runs = cluster.servers(), cluster.runs()
        worker = next(iter(cluster.workers().values()))
        error = cluster.heal(worker, cluster.server("masterNode"), expect="FAILED_TEMP")
        assert "control plane" in error
        assert "without vnfcInstanceId" in error
        cluster.handle("fail", "FAILED")
        assert cluster.servers() == servers
        assert cluster.runs() == runs
        assert consistent(cluster, 2) == before

    def test_whole_vnf_keeps_its_scale_level(self, cluster):
        cluster.scale("OUT")
        servers = cluster.servers()
        cluster.heal()
        consistent(cluster, 3)
        assert not set(servers) & set(cluster.servers())
        assert names(cluster)
        types = [one["vimType"] for one in cluster.show()["vimConnectionInfo"]]
        assert types == ["openstack", "kubernetes"]

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()
