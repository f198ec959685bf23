# SPDX-License-Identifier: Apache-2.0
"""The hooks in native threads, and in a process that eventlet has patched."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tests.helpers.sshd import Sshd

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 150  # seconds; a deadlock lasts longer

# Becomes root only when as many are asked for it as there are VMs: logins side by side.
SUDO = """
mkdir -p "$HOME/asked"
: >"$HOME/asked/$$"
until [ "$(ls "$HOME/asked" | wc -l)" -ge 4 ]; do sleep 0.05; done
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
ANSIBLE = """
[ "$1" != --version ] || { echo 'ansible-playbook [core 2.18.6]'; exit; }
echo >>"$K8S_MGMT_EVENTS"
"""
PROGRAM = "tests.contract.life"
NATIVE = ("-m", PROGRAM)
PATCHED = (
    "-c",
    "import eventlet, runpy; eventlet.monkey_patch(); "
    f"runpy.run_module({PROGRAM!r}, run_name='__main__')",
)
HOOKS = [
    "instantiate_start",
    "instantiate_end",
    "modify_information_start",
    "modify_information_end",
    "change_external_connectivity_start",
    "change_external_connectivity_end",
    "scale_end",
    "scale_start",
    "heal_start",
    "heal_end",
    "terminate_start",
    "terminate_end",
]
BEFORE = ["control-plane-10-10-0-4", "worker-10-10-0-5", "worker-10-10-0-55"]
MEMBERS = [BEFORE, [*BEFORE, "worker-10-10-0-77"], BEFORE, BEFORE]


@pytest.fixture
def server(tmp_path):
    sshd = Sshd(tmp_path / "home")
    sshd.program("sudo", SUDO)
    sshd.program("ansible-playbook", ANSIBLE)
    sshd.program("sshpass", "")
    root = sshd.home / "kubespray"
    (root / "playbooks").mkdir(parents=True)
    (root / "galaxy.yml").write_text("name: kubespray\nversion: 2.31.0\n")
    versions = "minimal_ansible_version: 2.18.0\nmaximal_ansible_version: 2.19.0\n"
    (root / "playbooks" / "ansible_version.yml").write_text(versions)
    yield sshd
    sshd.close()


@pytest.mark.parametrize(
    ("program", "vnfs"),
    [pytest.param(PATCHED, 2, id="eventlet"), pytest.param(NATIVE, 8, id="native")],
)
def test_every_hook_ends_and_every_limit_fires(server, tmp_path, program, vnfs):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given = {
            "vnfs": vnfs,
            "port": server.port,
            "home": str(server.home),
            "silent_port": silent.getsockname()[1],
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *program],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "1",
                "TMPDIR": str(scratch),
            },
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    life = {"hooks": HOOKS, "members": MEMBERS, "vim": False}
    # Where a thread has ended otherwise, its traceback says why.
    assert found["lives"] == [life] * vnfs, done.stderr
    connect, command, unanswered = (limit["error"] for limit in found["limits"])
    assert connect.startswith("ConnectError: No SSH connection")
    assert command.startswith("CommandTimeout: On 127.0.0.1, `sleep 60` did not end")
    assert unanswered.startswith("CommandTimeout: On 127.0.0.1, `sh -c 'kill -STOP")
    assert list((server.home / "clusters").iterdir()) == []
    # Nothing on the conductor but the driver's own state.
    assert list(scratch.iterdir()) == []
    state = {path.name for path in (server.home / "state").iterdir()}
    assert state == {"journal", "known_hosts.d"}
