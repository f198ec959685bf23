# SPDX-License-Identifier: Apache-2.0
"""The load-balancer script with a HAProxy that really runs, on loopback, as any user.

systemctl's stand-in starts and reloads it as the distribution's unit does: in
master-worker mode, with SIGUSR2.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, parse_status
from tests.helpers.backends import free_ports
from tests.unit.balancer.sandbox import Sandbox

SYSTEMCTL = """#!/usr/bin/env bash
cd "$(dirname "$0")" || exit
echo "$*" >>calls
case $1 in
    is-active) [[ -e pid ]] && kill -0 "$(<pid)" ;;
    enable)
        rm -f started
        "$LB_HAPROXY" -W -p "$PWD/started" -f "$LB_HAPROXY_CFG" 2>>log &
        echo $! >pid
        until [[ -s started ]]; do kill -0 $! && sleep 0.05 || exit; done ;;
    reload) kill -USR2 "$(<pid)" ;;
esac
"""


class Live(Sandbox):
    """A sandbox whose HAProxy really runs."""

    def __init__(
        self, directory: Path, haproxy: str, systemctl: str = SYSTEMCTL
    ) -> None:
        super().__init__(directory, haproxy, systemctl)
        self.api_port, stats_port = free_ports(2)
        self.environment |= {
            "LB_BIND": "127.0.0.1",
            "LB_STATS_PORT": str(stats_port),
            "LB_VERIFY_SECONDS": "10",
        }

    def report(self) -> BalancerStatus:
        return parse_status(self.do("status"))

    def do_reload(self) -> None:
        """Have HAProxy take the file that is in place."""
        assert self._systemctl("reload") == 0

    def start_service(self) -> bool:
        """Start HAProxy with the file that is in place; whether it runs then."""
        return self._systemctl("enable") == 0

    def _systemctl(self, verb: str) -> int:
        asked = [self.environment["LB_SYSTEMCTL"], verb]
        done = subprocess.run(
            asked, env=self.environment, capture_output=True, timeout=60
        )
        return done.returncode

    def stop(self) -> None:
        pid_file = self.directory / "pid"
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text().split()[0])
        pid_file.unlink()

        def gone() -> bool:
            # Said again each time: a master that just starts may miss it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            return not runs(pid)

        wait_until(gone)


def runs(pid: int) -> bool:
    """Whether it still does; it is not our child, someone else buries it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.05)
