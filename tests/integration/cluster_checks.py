# SPDX-License-Identifier: Apache-2.0
"""What a cluster of the lab must look like, and what the tests do to its VMs."""

import json
import subprocess
from collections.abc import Iterable
from typing import Any

from lab import client
from tests.integration import exposed
from tests.integration.cluster import Cluster, eventually
from tests.integration.laboratory import cloud

NODES = ["control-plane", "worker", "worker"]
LIMIT = 300  # seconds
COMMAND = ("tacker-k8s-mgmt", "cluster", "check")


def roles(nodes: Iterable[str]) -> list[str]:
    return sorted(name.split("-10-")[0] for name in nodes)


def check(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    config = str(client.state() / "etc" / "tacker.conf")
    done = subprocess.run(
        [*COMMAND, cluster.id, "--config-file", config, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stderr == "", done.stderr
    cluster.assert_no_secret_in(done.stdout)
    return done


def differences(done: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    """What differs, by row."""
    rows = json.loads(done.stdout)["rows"]
    found = {
        row["name"]: [difference["what"] for difference in row["differences"]]
        for row in rows
    }
    return {name: texts for name, texts in found.items() if texts}


def commands(done: subprocess.CompletedProcess[str], name: str) -> set[str]:
    """The commands that are printed for the differences of a row."""
    (row,) = (row for row in json.loads(done.stdout)["rows"] if row["name"] == name)
    return {line for found in row["differences"] for line in found["commands"]}


def exposures(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """The rows of ports that are exposed for CNFs, by protocol and port."""
    return {
        row["name"].split()[0]: row
        for row in json.loads(done.stdout)["rows"]
        if " of CNF " in row["name"]
    }


def assert_exposed(cluster: Cluster, owner: str) -> None:
    """Every port of the sample is as recorded and leads to healthy workers.

    :param owner: id of the CNF's VNF instance.
    """
    with exposed.served(cluster):
        done = check(cluster, "--json")
    assert done.returncode == 0, done.stdout
    rows = exposures(done)
    assert set(rows) == {"30080/tcp", "8080/tcp", "30053/udp"}
    for row in rows.values():
        assert row["name"].endswith(f" of CNF {owner}")
        assert row["inventory"] == "recorded"
        assert row["load_balancer"].startswith("UP: worker-")


def oldest_worker(cluster: Cluster) -> str:
    """The server of the worker that has been a node longest: a scale-in leaves it."""
    made = {
        node["metadata"]["name"]: node["metadata"]["creationTimestamp"]
        for node in cluster.nodes()
    }
    workers = cluster.workers()
    address = min(workers, key=lambda one: made[f"worker-{one.replace('.', '-')}"])
    return workers[address]


def kill(cluster: Cluster, server: str) -> None:
    """Switch a VM off and wait until the cluster has noticed."""
    cloud("kill", server)
    eventually(lambda: not all(cluster.ready_nodes().values()))


def control_planes(cluster: Cluster) -> dict[str, str]:
    """Server id of each control-plane VM by the name of its node."""
    found = [one for one, vdu in cluster.servers().items() if vdu == "masterNode"]
    return {
        "control-plane-" + inner(host.addresses).replace(".", "-"): host.id
        for host in client.hosts()
        if host.id in found
    }


def inner(addresses: tuple[str, ...]) -> str:
    return next(one for one in addresses if one.startswith("10.10."))
