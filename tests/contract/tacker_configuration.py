# SPDX-License-Identifier: Apache-2.0
"""Tacker's configuration and database, for programs that read both."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers.requests import additional_params

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIGURATION = """
[DEFAULT]
state_path = {place}/state
[database]
connection = sqlite:///{place}/tacker.sqlite
[k8s_mgmt]
connect_timeout = 1
"""


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
    )


def configured(place: Path) -> str:
    path = place / "tacker.conf"
    path.write_text(CONFIGURATION.format(place=place))
    return str(path)


def database(place: Path, config_file: str, **server: Any) -> dict[str, str]:
    given = additional_params()
    ansible = given["k8s_cluster_installation_param"]["ansible"]
    ansible |= {"ip_address": "127.0.0.1", **server}
    wanted = place / "params.json"
    wanted.write_text(json.dumps(given))
    made = python("-m", "tests.contract.tacker_database", config_file, str(wanted))
    assert made.returncode == 0, made.stderr
    known: dict[str, str] = json.loads(made.stdout.splitlines()[-1])
    return known


def rows_of(place: Path) -> list[str]:
    """Everything in the database."""
    with sqlite3.connect(place / "tacker.sqlite") as opened:
        return list(opened.iterdump())
