# SPDX-License-Identifier: Apache-2.0
"""The load-balancer script in a directory of its own, for any user.

``systemctl`` is a stand-in that writes down what it was asked. What it should do wrong
is said by files in the directory: ``reload-fails``, ``start-fails``, ``reload-hangs``.
"""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab import suites
from lab.settings import from_environment

SCRIPT = Path(__file__).parents[3] / "scripts" / "install_external_lb.sh"
HAPROXIES = {
    "system": shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin"),
    "newest": str(suites.path(from_environment(), suites.HAPROXY_NEWEST)),
}
if given := os.environ.get("HAPROXY"):
    HAPROXIES = {"given": given}
# For what HAProxy itself does: how it runs, and whether it takes a configuration. The
# script does not look at its version.
each_haproxy = pytest.mark.parametrize("haproxy", HAPROXIES, indirect=True)

SYSTEMCTL = """#!/usr/bin/env bash
cd "$(dirname "$0")" || exit
echo "$*" >>calls
case $1 in
    is-active | is-enabled) [[ -e active ]] ;;
    enable)
        if [[ -e start-fails ]]; then echo "Job for haproxy failed." >&2; exit 1; fi
        touch active ;;
    reload)
        if [[ -e reload-hangs ]]; then rm reload-hangs; touch hanging; sleep 30; fi
        if [[ -e reload-fails ]]; then
            rm reload-fails
            printf 'Job for haproxy.service failed.\\nSee journalctl -xe.\\n' >&2
            exit 1
        fi ;;
esac
"""

STRICT = """#!/bin/sh
exec {} -dW "$@"
"""

CONTROL_PLANES = (
    "--control-plane",
    "control-plane-10-10-0-5=10.10.0.5",
    "--control-plane",
    "control-plane-fd00-6=[fd00::6]:7443",
)
WORKERS = (
    "--worker",
    "worker5=10.10.0.15",
    "--worker",
    "worker55=10.10.0.155",
    "--worker",
    "worker-fd00-7=fd00::7",
)
#: Everything of the system that the script may use: tools of every distribution.
TOOLS = (
    *("awk", "bash", "cat", "cmp", "cp", "dirname", "env", "flock", "grep", "ln"),
    *("mkdir", "mktemp", "mv", "rm", "sed", "sha256sum", "sleep", "sort", "sync"),
    *("timeout", "touch", "wc"),
)
INSTALL = ("install", "--api-port", "6443", *CONTROL_PLANES, *WORKERS)


def _default_signals() -> None:
    """What nohup or a background job ignores, a shell below it could not trap."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


class Sandbox:
    """One load-balancer VM, as far as the script can see.

    :param haproxy: the program; its warnings become errors.
    :ivar prefix: command that runs the script in another environment.
    """

    prefix: tuple[str, ...] = ()

    def __init__(
        self, directory: Path, haproxy: str, systemctl: str = SYSTEMCTL
    ) -> None:
        self.directory = directory
        self.haproxy = haproxy
        self.state = directory / "etc" / "load-balancer.state"
        self.config = directory / "haproxy" / "haproxy.cfg"
        self.original = directory / "haproxy" / "haproxy.cfg.before-tacker-k8s-mgmt"
        self.lock = directory / "lock"
        self.calls_file = directory / "calls"
        texts = {"systemctl": systemctl, "strict-haproxy": STRICT.format(haproxy)}
        for name, text in texts.items():
            program = directory / name
            program.write_text(text)
            program.chmod(0o755)
        self.environment = {
            **os.environ,
            "LB_STATE_FILE": str(self.state),
            "LB_HAPROXY_CFG": str(self.config),
            "LB_LOCK_FILE": str(self.lock),
            "LB_LOCK_SECONDS": "5",
            "LB_HAPROXY": str(directory / "strict-haproxy"),
            "LB_HAPROXY_USER": "",
            "LB_SYSTEMCTL": str(directory / "systemctl"),
            "LB_BIND": "::",
            "LB_VERIFY_SECONDS": "0",
            "LB_PACKAGE_SECONDS": "0",
            "LB_PACKAGE_PAUSE": "0",
        }

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start one call in a process group of its own."""
        return subprocess.Popen(
            [*self.prefix, "bash", str(SCRIPT), *arguments],
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_default_signals,
        )

    def run(
        self, *arguments: str, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """One call of the script."""
        return subprocess.run(
            [*self.prefix, "bash", str(SCRIPT), *arguments],
            env={**self.environment, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def do(self, *arguments: str) -> str:
        """One call that must end well and without a word on standard error."""
        result = self.run(*arguments)
        assert (result.returncode, result.stderr) == (0, ""), result.stderr
        return result.stdout.strip()

    def refused(self, *arguments: str, **environment: str) -> str:
        """One call that must fail; returns its one line."""
        result = self.run(*arguments, **environment)
        assert result.returncode != 0
        assert result.stdout == ""
        assert result.stderr.endswith("\n")
        assert len(result.stderr.splitlines()) == 1, result.stderr
        return result.stderr.strip()

    def path(self, **commands: str) -> str:
        """A PATH with nothing but :data:`TOOLS` and these commands, given as bash."""
        directory = self.directory / "commands"
        directory.mkdir()
        for name in set(TOOLS) - set(commands):
            (directory / name).symlink_to(shutil.which(name) or name)
        for name, text in commands.items():
            program = directory / name.replace("_", "-")
            program.write_text(f"#!/usr/bin/env bash\n{text}\n")
            program.chmod(0o755)
        return str(directory)

    def status(self) -> dict[str, Any]:
        """The status report."""
        report = json.loads(self.do("status"))
        assert isinstance(report, dict)
        return report

    def acts(self) -> list[str]:
        """What systemctl was asked to do since the last look, questions left out."""
        calls = self.calls_file.read_text() if self.calls_file.exists() else ""
        self.calls_file.unlink(missing_ok=True)
        return [line for line in calls.splitlines() if not line.startswith("is-")]

    def written(self) -> dict[str, str]:
        """Every file below the two directories that the script owns."""
        files = [*self.state.parent.glob("*"), *self.config.parent.glob("*")]
        return {path.name: path.read_text() for path in files}
