# SPDX-License-Identifier: Apache-2.0
"""What a cluster of the lab must look like, and what the tests do to its VMs."""

import json
import subprocess
import sys
from collections.abc import Iterable

from lab import client
from tests.integration.conftest import (
    ROOT,
    Cluster,
    cloud,
    eventually,
)

NODES = ["control-plane", "worker", "worker"]
LIMIT = 300  # seconds


def roles(nodes: Iterable[str]) -> list[str]:
    return sorted(name.split("-10-")[0] for name in nodes)


def check(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    config = str(client.state() / "etc" / "tacker.conf")
    command = [sys.executable, "-m", "tacker_k8s_mgmt.cli", "cluster", "check"]
    done = subprocess.run(
        [*command, cluster.id, "--config-file", config, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stderr == ""
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


def kill(cluster: Cluster, server: str) -> None:
    """Switch a VM off and wait until the cluster has noticed."""
    cloud("kill", server)
    eventually(lambda: not all(cluster.ready_nodes().values()))
