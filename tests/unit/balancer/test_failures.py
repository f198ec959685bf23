# SPDX-License-Identifier: Apache-2.0
"""A call that fails leaves the earlier configuration and state in place."""

import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.balancer.sandbox import INSTALL, Sandbox

ADD = ("add-worker", "new=10.10.0.99")


def broken_haproxy(sandbox: Sandbox) -> str:
    """A HAProxy that refuses every configuration, in HAProxy's words."""
    program = sandbox.directory / "broken-haproxy"
    program.write_text(
        "#!/bin/sh\n"
        "exec >&2\n"
        "echo '[NOTICE]   (7) : haproxy version is 2.6.12'\n"
        "echo '[WARNING]  (7) : config : something else'\n"
        "echo \"[ALERT]    (7) : config : parsing [x:3] : unknown keyword 'frob'\"\n"
        "echo '[ALERT]    (7) : config : Fatal errors found in configuration.'\n"
        "exit 1\n"
    )
    program.chmod(0o755)
    return str(program)


def test_refused_by_haproxy_changes_nothing(serving):
    before = serving.written()
    line = serving.refused(*ADD, LB_HAPROXY=broken_haproxy(serving))
    assert line.endswith("config : parsing [x:3] : unknown keyword 'frob'")
    assert serving.written() == before
    assert serving.acts() == []


def test_failed_reload_brings_file_and_state_back(serving):
    before = serving.written()
    (serving.directory / "reload-fails").touch()
    line = serving.refused(*ADD)
    assert "could not reload" in line
    assert serving.written() == before
    assert serving.acts() == ["reload haproxy", "reload haproxy"]
    assert serving.do(*ADD) == "changed"


def test_failed_first_start_brings_the_distributions_file_back(fresh):
    fresh.config.parent.mkdir()
    fresh.config.write_text("global\n")
    (fresh.directory / "start-fails").touch()
    assert "could not start haproxy: Job for" in fresh.refused(*INSTALL)
    assert fresh.config.read_text() == "global\n"
    assert not fresh.state.exists()
    (fresh.directory / "start-fails").unlink()
    assert fresh.do(*INSTALL) == "changed"


def test_tools_that_write_a_lot_give_one_line(serving):
    serving.config.unlink()
    serving.config.mkdir()
    serving.refused(*ADD)


@pytest.mark.parametrize(
    "tool", ["mktemp", "flock", "sort", "mkdir", "cat", "sha256sum", "cp", "sync", "mv"]
)
def test_a_tool_that_fails_is_a_failure(serving, tool):
    """As on a full disk; the exit code is not that of the last command."""
    before = serving.written()
    path = serving.path(**{tool: f"echo 'cannot {tool}' >&2; exit 1"})
    serving.refused(*ADD, PATH=path)
    assert serving.written() == before
    assert set(serving.acts()) <= {"reload haproxy"}, "with what was there before"


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _end(call: subprocess.Popen[str], number: int) -> tuple[str, str]:
    os.killpg(call.pid, number)
    return call.communicate(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_call_that_is_ended_brings_file_and_state_back(serving, number):
    before = serving.written()
    (serving.directory / "reload-hangs").touch()
    call = serving.start(*ADD)
    _wait_for(serving.directory / "hanging")
    _, stderr = _end(call, number)
    assert call.returncode != 0
    assert stderr == "ended by a signal\n"
    assert serving.written() == before


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(ADD, id="the same call"),
        pytest.param(INSTALL, id="a call that wants what was before"),
    ],
)
def test_a_call_after_a_killed_one_reloads(serving, verb):
    (serving.directory / "reload-hangs").touch()
    call = serving.start(*ADD)
    _wait_for(serving.directory / "hanging")
    _end(call, signal.SIGKILL)
    serving.acts()
    assert serving.do(*verb) == "changed"
    assert serving.acts() == ["reload haproxy"]
    assert sorted(serving.written()) == ["haproxy.cfg", "load-balancer.state"]


def test_two_calls_do_not_overlap(serving):
    with serving.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        line = serving.refused(*ADD, LB_LOCK_SECONDS="0")
        assert "still running" in line
        assert serving.status()["api_port"] == 6443, "status does not wait"
    assert serving.do(*ADD) == "changed"


def test_calls_at_the_same_time_are_all_done(serving):
    serving.environment["LB_LOCK_SECONDS"] = "60"
    calls = [serving.start("add-worker", f"w{n}=10.9.0.{n}") for n in range(1, 5)]
    for call in calls:
        _, stderr = call.communicate(timeout=60)
        assert (call.returncode, stderr) == (0, "")
    names = {worker["name"] for worker in serving.status()["workers"]}
    assert {"w1", "w2", "w3", "w4"} < names


def test_a_daemon_does_not_inherit_the_lock(serving, tmp_path):
    probe = tmp_path / "systemctl"
    text = probe.read_text().replace("echo", "ls -l /proc/$$/fd >>open-files\necho", 1)
    probe.write_text(text)
    serving.do(*ADD)
    assert str(serving.lock) not in (tmp_path / "open-files").read_text()
