# SPDX-License-Identifier: Apache-2.0
"""The laboratory's Kubernetes API beside it, with the same certificates."""

import threading
from dataclasses import replace
from pathlib import Path

from lab.kubeapi.etcd import Files
from lab.kubeapi.server import Server, start, stop
from lab.kubeapi.settings import Listener, Replication, Settings
from tests.real.differential.real import NODE_GRACE, free_port
from tests.real.differential.site import ADMIN_TOKEN

#: Times as at the real site, where hollow kubelets start and end pods without a delay;
#: the laboratory's own are shorter.
AS_REAL = Settings(
    node_grace=NODE_GRACE,
    orphan_grace=40.0,
    start_delay=0.0,
    stop_delay=0.1,
    ready_after=1.0,
)
_START_TIME = 2.0  # seconds from the start of a kube-apiserver until it listens


class Emulator:
    """An emulator that can be restarted.

    :param directory: with :func:`~tests.real.differential.real.make_certificates`'
        files.
    :param version: what it claims to be, with a leading ``v``.
    """

    def __init__(self, directory: Path, version: str) -> None:
        self._directory = directory
        self._settings = replace(AS_REAL, version=version)
        self._server: Server | None = None
        self._listener = Listener(
            port=free_port(),
            certificate=str(directory / "server.crt"),
            key=str(directory / "server.key"),
            ca=str(directory / "ca.crt"),
            admin_tokens=frozenset({ADMIN_TOKEN}),
        )
        self.url = f"https://127.0.0.1:{self._listener.port}"

    def start(self) -> None:
        """Start it with what it kept."""
        state = self._directory / "state.json"
        self._server = start(self._listener, self._settings, state)

    def restart(self) -> None:
        """Start it again, and wait for nothing."""
        threading.Timer(_START_TIME, self.start).start()

    def stop(self) -> None:
        """End it, if it runs; the state is kept."""
        if self._server:
            stop(self._server)
            self._server = None

    def lose_etcd(self) -> None:
        """Go on as an API server whose etcd does not answer."""
        self.stop()
        nobody = (f"https://127.0.0.1:{free_port()}",)
        files = [str(self._directory / f"server.{kind}") for kind in ("crt", "key")]
        etcd = Files(str(self._directory / "ca.crt"), *files)
        alone = Replication(self.url, nobody, etcd)
        settings = replace(self._settings, ready_after=0.0)
        self._server = start(self._listener, settings, replication=alone)
