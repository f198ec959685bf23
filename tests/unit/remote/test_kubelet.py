# SPDX-License-Identifier: Apache-2.0
"""The kubelet's restart, with a systemctl of which only the answer matters."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from tacker_k8s_mgmt.remote import vms


@pytest.fixture
def restarted(tmp_path, monkeypatch):
    """Restart it where systemctl exits so; its exit code, and what it was told."""

    def restart(is_active: int, restart: int = 0) -> tuple[int, str]:
        told = tmp_path / "told"
        told.write_text("")
        program = tmp_path / "systemctl"
        program.write_text(
            f'#!/bin/sh\necho "$*" >>{told}\necho some word\n'
            f'[ "$1" = restart ] && exit {restart}\nexit {is_active}\n'
        )
        program.chmod(0o755)
        codes = []

        def run(argv, **_):
            path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                argv, env={"PATH": path}, capture_output=True, check=False
            )
            codes.append(done.returncode)

        vms.restart(SimpleNamespace(run=run))
        return codes[0], told.read_text()

    return restart


def test_one_that_runs_is_restarted(restarted):
    assert restarted(0) == (0, "is-active kubelet\nrestart kubelet\n")


def test_what_is_not_there_or_does_not_run_is_left_alone(restarted):
    assert restarted(4) == (0, "is-active kubelet\n")


def test_failure_is_one(restarted):
    assert restarted(0, 1)[0] == 1
