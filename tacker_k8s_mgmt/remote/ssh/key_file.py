# SPDX-License-Identifier: Apache-2.0
"""The file with the host keys of hosts that outlive clusters."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, RecordedKeys

#: The name of host key files: below ``[k8s_mgmt] state_path``, and per cluster.
KNOWN_HOSTS = "known_hosts"


class KeyFile:
    """The ``known_hosts`` file of Ansible servers and bastions on the conductor's host.

    These hosts outlive clusters, so their keys are kept with the journals, not in a
    cluster's directory. Concurrent hooks share the file, so access is locked.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def load(self) -> HostKeys:
        """Return the recorded keys."""
        with self._locked() as file:
            return HostKeys(file.read(), self._path)

    def add(self, keys: HostKeys) -> None:
        """Store the keys that were learnt since *keys* was loaded."""
        with self._locked() as file:
            known = file.read()
            recorded = {line.strip() for line in known.splitlines()}
            learnt = (line.strip() for line in keys.text().splitlines())
            new = [line for line in learnt if line not in recorded]
            # The last line of a file that was edited by hand may lack its newline.
            start = "\n" if new and known and not known.endswith("\n") else ""
            file.write(start + "".join(f"{line}\n" for line in new))

    @contextmanager
    def _locked(self) -> Iterator[TextIO]:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


class ReadOnlyKeyFile(KeyFile):
    """The same file, which is neither created nor changed."""

    def load(self) -> RecordedKeys:
        """Return the recorded keys; none if there is no file."""
        try:
            with open(self._path, encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return RecordedKeys(file.read(), self._path)
        except FileNotFoundError:
            return RecordedKeys("", self._path)

    def add(self, keys: HostKeys) -> None:
        """Leave the file as it is."""
