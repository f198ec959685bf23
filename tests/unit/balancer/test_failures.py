"""A call that fails leaves the earlier configuration and state in place."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .sandbox import INSTALL, Sandbox

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


def test_refused_by_haproxy_changes_nothing(serving: Sandbox) -> None:
    before = serving.written()
    line = serving.refused(*ADD, LB_HAPROXY=broken_haproxy(serving))
    assert line.endswith("config : parsing [x:3] : unknown keyword 'frob'")
    assert serving.written() == before
    assert serving.acts() == []


def test_failed_reload_brings_file_and_state_back(serving: Sandbox) -> None:
    before = serving.written()
    (serving.directory / "reload-fails").touch()
    line = serving.refused(*ADD)
    assert "could not reload" in line
    assert serving.written() == before
    assert serving.acts() == ["reload haproxy", "reload haproxy"]
    assert serving.do(*ADD) == "changed"


def test_failed_first_start_brings_the_distributions_file_back(fresh: Sandbox) -> None:
    fresh.config.parent.mkdir()
    fresh.config.write_text("global\n")
    (fresh.directory / "start-fails").touch()
    assert "could not start haproxy: Job for" in fresh.refused(*INSTALL)
    assert fresh.config.read_text() == "global\n"
    assert not fresh.state.exists()
    (fresh.directory / "start-fails").unlink()
    assert fresh.do(*INSTALL) == "changed"


def test_tools_that_write_a_lot_give_one_line(serving: Sandbox) -> None:
    serving.config.unlink()
    serving.config.mkdir()
    serving.refused(*ADD)


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _end(call: subprocess.Popen[str], number: int) -> tuple[str, str]:
    os.killpg(call.pid, number)
    return call.communicate(timeout=10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_call_that_is_ended_brings_file_and_state_back(
    serving: Sandbox, number: int
) -> None:
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
def test_a_call_after_a_killed_one_reloads(
    serving: Sandbox, verb: tuple[str, ...]
) -> None:
    (serving.directory / "reload-hangs").touch()
    call = serving.start(*ADD)
    _wait_for(serving.directory / "hanging")
    _end(call, signal.SIGKILL)
    serving.acts()
    assert serving.do(*verb) == "changed"
    assert serving.acts() == ["reload haproxy"]
    assert sorted(serving.written()) == ["haproxy.cfg", "load-balancer.state"]


def test_two_calls_do_not_overlap(serving: Sandbox) -> None:
    with serving.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        line = serving.refused(*ADD, LB_LOCK_SECONDS="0")
        assert "still running" in line
        assert serving.status()["api_port"] == 6443, "status does not wait"
    assert serving.do(*ADD) == "changed"


def test_calls_at_the_same_time_are_all_done(serving: Sandbox) -> None:
    calls = [serving.start("add-worker", f"w{n}=10.9.0.{n}") for n in range(1, 5)]
    for call in calls:
        _, stderr = call.communicate(timeout=30)
        assert (call.returncode, stderr) == (0, "")
    names = {worker["name"] for worker in serving.status()["workers"]}
    assert {"w1", "w2", "w3", "w4"} < names


def test_a_daemon_does_not_inherit_the_lock(serving: Sandbox, tmp_path: Path) -> None:
    probe = tmp_path / "systemctl"
    text = probe.read_text().replace("echo", "ls -l /proc/$$/fd >>open-files\necho", 1)
    probe.write_text(text)
    serving.do(*ADD)
    assert str(serving.lock) not in (tmp_path / "open-files").read_text()


def _with_commands(sandbox: Sandbox, **commands: str) -> str:
    """A PATH on which these commands come first."""
    directory = sandbox.directory / "commands"
    directory.mkdir()
    for name, text in commands.items():
        (directory / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (directory / name).chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"


@pytest.fixture
def absent(fresh: Sandbox) -> Callable[[str], dict[str, str]]:
    """Take HAProxy away; the given apt-get text may end with ``$PUT`` to bring it."""
    program = fresh.directory / "haproxy-of-the-package"
    real = fresh.environment["LB_HAPROXY"]

    def prepare(apt_get: str) -> dict[str, str]:
        log = f'echo "$@ proxy=$https_proxy" >>{fresh.directory}/apt-calls\n'
        put = f"ln -s {real} {program}"
        path = _with_commands(fresh, **{"apt-get": log + apt_get.replace("$PUT", put)})
        return {"PATH": path, "LB_HAPROXY": str(program)}

    return prepare


def test_package_is_installed_when_haproxy_is_absent(
    fresh: Sandbox, absent: Callable[[str], dict[str, str]]
) -> None:
    environment = absent('[[ "$*" != *install* ]] || $PUT')
    result = fresh.run(
        *INSTALL, "--http-proxy", "-", stdin="http://u:p@proxy:3128\n", **environment
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "changed\n", "")
    update, install = (fresh.directory / "apt-calls").read_text().splitlines()
    assert " update proxy=http://u:p@proxy:3128" in update
    assert " install --no-install-recommends haproxy" in install


def test_another_apt_get_is_waited_for(
    fresh: Sandbox, absent: Callable[[str], dict[str, str]]
) -> None:
    environment = absent(
        f"cd {fresh.directory}; if (($(wc -l <apt-calls) < 3)); then\n"
        "echo 'E: Could not get lock /var/lib/apt/lists/lock' >&2; exit 100; fi\n"
        '[[ "$*" != *install* ]] || $PUT'
    )
    assert fresh.run(*INSTALL, **environment).returncode == 0


@pytest.mark.parametrize(
    ("apt_get", "said"),
    [
        pytest.param(
            "echo 'W: warn'; echo 'E: Unable to locate package haproxy' >&2; exit 100",
            "E: Unable to locate package haproxy",
            id="no package",
        ),
        pytest.param(
            "echo 'E: Could not get lock /x' >&2; exit 100",
            "E: Could not get lock /x",
            id="locked for ever",
        ),
        pytest.param("exit 0", "still not there", id="says yes and does nothing"),
    ],
)
def test_failed_package_installation_is_a_failure(
    fresh: Sandbox,
    absent: Callable[[str], dict[str, str]],
    apt_get: str,
    said: str,
) -> None:
    line = fresh.refused(*INSTALL, **absent(apt_get), LB_APT_TRIES="3")
    assert said in line
    assert fresh.written() == {}


def test_package_manager_is_left_alone_when_haproxy_is_there(fresh: Sandbox) -> None:
    path = _with_commands(fresh, **{"apt-get": "exit 1", "dnf": "exit 1"})
    assert fresh.run(*INSTALL, PATH=path).returncode == 0


@pytest.mark.parametrize(("state", "asked"), [("off", True), ("on", False)])
def test_selinux_lets_haproxy_use_any_port(
    fresh: Sandbox, state: str, asked: bool
) -> None:
    path = _with_commands(
        fresh,
        selinuxenabled="exit 0",
        getsebool=f"echo '$1 --> {state}'",
        setsebool=f'echo "$*" >{fresh.directory}/setsebool-called',
    )
    assert fresh.run(*INSTALL, PATH=path).returncode == 0
    called = fresh.directory / "setsebool-called"
    assert called.exists() is asked
    assert not asked or called.read_text() == "-P haproxy_connect_any on\n"
