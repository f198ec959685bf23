# SPDX-License-Identifier: Apache-2.0
"""Members of the real etcd that form a cluster."""

import os
import shutil
import subprocess
from pathlib import Path

from lab import settings
from tests.helpers.backends import free_ports

_PROGRAMS = settings.from_environment().programs
ETCD = shutil.which("etcd", path=f"{_PROGRAMS}{os.pathsep}{os.environ['PATH']}")
_QUICK = ("--heartbeat-interval", "50", "--election-timeout", "300")


class Ensemble:
    """Members on loopback; they stop and start again as machines do."""

    def __init__(self, directory: Path, count: int) -> None:
        self._directory = directory
        self.names = [f"etcd{number}" for number in range(1, count + 1)]
        ports = free_ports(2 * count)
        self._clients = dict(zip(self.names, map(_url, ports[:count]), strict=True))
        self._peers = dict(zip(self.names, map(_url, ports[count:]), strict=True))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.start(*self.names)

    @property
    def endpoints(self) -> tuple[str, ...]:
        return tuple(self._clients.values())

    def start(self, *names: str) -> None:
        members = ",".join(f"{name}={url}" for name, url in self._peers.items())
        for name in names:
            client, peer = self._clients[name], self._peers[name]
            argv = [
                *(ETCD or "etcd", "--name", name, "--log-level", "error", *_QUICK),
                *("--data-dir", str(self._directory / name)),
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", members),
            ]
            self._running[name] = subprocess.Popen(argv, stderr=subprocess.DEVNULL)

    def stop(self, *names: str) -> None:
        for name in names or tuple(self._running):
            self._running[name].kill()
            self._running.pop(name).wait()


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"
