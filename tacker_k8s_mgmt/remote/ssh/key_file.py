# SPDX-License-Identifier: Apache-2.0
"""The files with the host keys of hosts that outlive clusters."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO
from urllib.parse import quote

from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, RecordedKeys

#: The name of host key files: below ``[k8s_mgmt] state_path``, and per cluster.
KNOWN_HOSTS = "known_hosts"
_APART = "known_hosts.d"


def paths(state_path: str, project_id: str, vnf_id: str) -> tuple[str, str]:
    """Return the file of a project, and the operator's own that counts for all.

    A request of one project must not have a say in which hosts another one trusts.

    :param project_id: "" where it is not known: then the file is the VNF instance's.
    """
    owner = f"project-{project_id}" if project_id else f"vnf-{vnf_id}"
    own = os.path.join(state_path, _APART, quote(owner, safe=""))
    return own, os.path.join(state_path, KNOWN_HOSTS)


class KeyFile:
    """A ``known_hosts`` file of Ansible servers and bastions on the conductor's host.

    These hosts outlive clusters, so their keys are kept with the journals, not in a
    cluster's directory. Concurrent hooks share the file, so access is locked.

    :param path: the file.
    :param former: a file whose keys count, too, until this one has some of a host; it
        is never written. Earlier releases recorded all keys there.
    """

    def __init__(self, path: str, former: str = "") -> None:
        self._path = path
        self._former = former

    def load(self) -> HostKeys:
        """Return the recorded keys."""
        former = self._read_former()
        with self._locked() as file:
            return HostKeys(file.read(), self._path, former)

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

    def _read_former(self) -> tuple[RecordedKeys, ...]:
        if not self._former:
            return ()
        return (RecordedKeys(_read(self._former), self._former),)

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
        return RecordedKeys(_read(self._path), self._path, self._read_former())

    def add(self, keys: HostKeys) -> None:
        """Leave the file as it is."""


def load_all(state_path: str) -> HostKeys:
    """Return the keys in all files; a host must show one that each file has of it.

    :raises OSError: a file cannot be read.
    """
    found = [os.path.join(state_path, KNOWN_HOSTS)]
    apart = os.path.join(state_path, _APART)
    with suppress(FileNotFoundError):  # no operation has recorded a key yet
        found += sorted(entry.path for entry in os.scandir(apart))
    keys = [RecordedKeys(_read(path), path) for path in found]
    return HostKeys("", found[0], keys)


def _read(path: str) -> str:
    """Return the text of a file; "" if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return file.read()
    except FileNotFoundError:
        return ""
