# SPDX-License-Identifier: Apache-2.0
"""The namespaces of one lab, seen from the machine: make, enter, end.

Network, mounts, processes, IPC and host name of a lab are its own. They hang on one
process, its init; see init.py.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from lab import LabError, environments
from lab.settings import (
    PATH,
    ROOT,
    SOCKETS,
    SYSTEM_PYTHON,
    Settings,
    credentials,
    places,
)

INIT = Path(__file__).with_name("init.py")
END_LIMIT = 30.0
FLAGS = ("--net", "--mount", "--pid", "--ipc", "--uts")


class Namespace:
    """The namespaces of one lab."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def pid(self) -> int | None:
        """The init process's number on the machine, while it runs."""
        try:
            pid, started = self._settings.init.read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return int(pid) if start_time(int(pid)) == started else None

    def start(self) -> None:
        """Make the namespaces, unless they are there.

        :raises LabError: the kernel refused.
        """
        if self.pid():
            return
        errors = self._settings.state / "anchor.log"
        # Mounts stay shared until init changes that: unshare cannot in a chroot.
        make = ["unshare", *FLAGS, "--fork", "--propagation", "unchanged"]
        init = [SYSTEM_PYTHON, "-I", str(INIT), str(self._settings.init)]
        with errors.open("w") as log:
            process = subprocess.Popen(
                [*make, *init],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=clean_environment(),
            )
        with cast("IO[bytes]", process.stdout) as output:
            ready = output.readline() == b"READY\n"
        if not ready:
            self.end()
            reason = errors.read_text().strip().splitlines()
            raise LabError(
                f"The lab's namespaces: {reason[-1] if reason else 'no reason given'}."
                " It needs root with the right to make namespaces and to mount"
                " (a container must be privileged)",
                2,
            )

    def end(self) -> None:
        """Kill all processes of the lab, and wait for their end.

        :raises LabError: something does not end.
        """
        pid = self.pid()
        if pid is None:
            return
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + END_LIMIT
        while self.pid():
            if time.monotonic() > deadline:
                raise LabError(f"Process {pid} (the lab's init) does not end")
            time.sleep(0.02)
        self._settings.init.unlink(missing_ok=True)

    def argv(self, command: Sequence[str], cwd: Path = Path("/")) -> list[str]:
        """What runs a command in the namespaces.

        :raises LabError: the lab does not run.
        """
        pid = self.pid()
        if pid is None:
            raise LabError("The lab does not run: python3 -m lab up", 3)
        nsenter = shutil.which("nsenter", path=PATH) or "nsenter"
        # --root and --wd: the machine may itself be a chroot. --wd leads to the
        # init's directory, so env has to change to the one that is wanted.
        enter = [nsenter, "--target", str(pid), *FLAGS, "--root", "--wd", "--"]
        return [*enter, "env", "-C", str(cwd), *command]

    def run(self, command: Sequence[str], env: Mapping[str, str]) -> int:
        """Run a command of the project in the namespaces; its exit code."""
        argv = self.argv(command, ROOT)
        return subprocess.run(argv, env=dict(env), check=False).returncode


def start_time(pid: int, proc: Path = Path("/proc")) -> str | None:
    """When a process started, in clock ticks since boot; None when it has ended.

    Together with its number that names a process for good: numbers are used again.
    """
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # A zombie has ended; its parent has not looked yet.
    return None if fields[0] in "ZX" else fields[19]


def clean_environment() -> dict[str, str]:
    """The environment of a program of the lab, for any user that starts the lab.

    Without proxies above all: the lab reaches nothing but itself.
    """
    return {
        "PATH": PATH,
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "TMPDIR": str(SOCKETS / "tmp"),
        "PYTHONWARNINGS": "ignore",
        # Environments have their byte code; a user's source tree shall get none.
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def user_environment(
    settings: Settings, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """What a user's command inside the lab gets: the user's own, and the lab's."""
    own = {k: v for k, v in environ.items() if not k.lower().endswith("_proxy")}
    programs = environments.path(settings, "tacker") / "bin"
    path = [str(programs), str(settings.programs), own.get("PATH", ""), PATH]
    return {
        "KUBECONFIG": str(settings.state / "kubeconfig"),
        **own,
        **credentials(),
        **places(settings),
        "TACKER_K8S_MGMT_CONFIG": str(settings.etc / "tacker.conf"),
        "PATH": os.pathsep.join(filter(None, path)),
        "PYTHONWARNINGS": "ignore",
    }
