# SPDX-License-Identifier: Apache-2.0
"""The lab as a site whose operator asks its cloud: `request init` and `preflight`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from lab import client
from tests.integration.conftest import ANSIBLE_SERVER, Cluster, Lab

LIMIT = 300  # seconds
PROGRAM = "tacker-k8s-mgmt"
#: What no cloud can tell.
ANSWERS = (
    *("--ansible-host", ANSIBLE_SERVER, "--ansible-password", "file:ansible-server"),
    *("--vm-private-key", "file:lab", "--hot", "management_cidr=10.99.0.0/24"),
)


def request(csar: Path, path: Path, *more: str) -> dict[str, Any]:
    """An instantiate request that `request init` makes, with nothing left to fill in.

    :param path: where it is written.
    :param more: further options.
    """
    words = ("request", "init", "--package", str(csar), "-o", str(path), "--yes")
    told = client.command([PROGRAM, *words, *ANSWERS, *more])
    assert "nothing left to correct or fill in" in told, told
    assert "--image" not in told, told
    return dict(json.loads(path.read_text()))


def request_for(lab: Lab, cluster: Cluster) -> dict[str, Any]:
    """The request for this VNF instance."""
    return request(
        lab.csar,
        lab.scratch / f"{cluster.name}.json",
        *("--name", cluster.name, "--vim-name", cluster.vim_name),
        *("--directory", cluster.directory),
    )


def preflight(path: Path, csar: Path, **login: str) -> dict[str, dict[str, Any]]:
    """The rows of `preflight --cloud`, by check; of several one with findings.

    :param login: variables that differ from the lab's own.
    """
    config = str(client.state() / "etc" / "tacker.conf")
    words = ("preflight", str(path), "--package", str(csar), "--cloud", "--json")
    done = subprocess.run(
        [PROGRAM, *words, "--config-file", config, "--connect-timeout", "5"],
        env={**os.environ, **login},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout, done.stderr
    rows: dict[str, dict[str, Any]] = {}
    for row in json.loads(done.stdout)["checks"]:
        if row["findings"] or row["check"] not in rows:
            rows[row["check"]] = row
    found = any(row["findings"] for row in rows.values())
    assert done.returncode == (1 if found else 0), done.stdout
    return rows
