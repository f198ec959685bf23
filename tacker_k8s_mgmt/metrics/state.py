# SPDX-License-Identifier: Apache-2.0
"""The file with the totals, which all processes of a host share."""

import fcntl
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from oslo_log import log as logging
from pydantic import BaseModel, ConfigDict, TypeAdapter

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.files import as_owner_of, naming, open_regular, replacing
from tacker_k8s_mgmt.metrics.totals import Totals, latest
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.timeline import Timeline

LOG = logging.getLogger(__name__)

_DIRECTORY = "metrics"
_FILE, _LOCK = "totals.json", "lock"
_LOCK_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
_LARGEST = 64 * 1024 * 1024


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True)


class _Last(_Stored):
    name: str
    failed: bool
    under_way: bool
    seconds: float
    last: float


class _Vnf(_Stored):
    stamp: list[int]
    runs: list[str]
    last: _Last | None


class _Check(_Stored):
    time: float
    differences: dict[str, float]
    unread: list[str]


_VNFS, _CHECKS = TypeAdapter(dict[str, _Vnf]), TypeAdapter(dict[str, _Check])


@dataclass
class State:
    """What is known of all VNF instances.

    :ivar vnfs: by id: ``stamp`` of the journal that was read last, the ids of the
        ``runs`` in it that are in the totals, and what is known of the ``last`` one.
    :ivar checks: by id: ``time``, number of ``differences`` by source, and the sources
        that could not be read (``unread``) of the last comparison.
    """

    totals: Totals = field(default_factory=Totals)
    vnfs: dict[str, dict[str, Any]] = field(default_factory=dict)
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add_journals(self, state_path: str) -> None:
        """Add what the journals have had since the last time."""
        found = journal.instances(state_path)
        for vnf_id in found:
            with suppress(FileNotFoundError):
                self._add_journal(vnf_id, journal.path_of(state_path, vnf_id))
        for vnf_id in self.vnfs.keys() - found:
            del self.vnfs[vnf_id]
        for vnf_id, vnf in self.vnfs.items():
            if vnf["last"] is None:
                self.checks.pop(vnf_id, None)

    def _add_journal(self, vnf_id: str, path: str) -> None:
        status = os.stat(path)
        stamp = [status.st_mtime_ns, status.st_size]
        known = self.vnfs.setdefault(vnf_id, {"stamp": [], "runs": [], "last": None})
        if known["stamp"] != stamp:
            timeline = Timeline(journal.read(path)[0])
            runs = self.totals.add(timeline, known["runs"])
            last = latest(timeline)
            self.vnfs[vnf_id] = {"stamp": stamp, "runs": runs, "last": last}

    def record_check(
        self, vnf_id: str, differences: Mapping[str, int], unread: Collection[str]
    ) -> None:
        """Record a comparison of a cluster's sources.

        :param differences: their number by source.
        :param unread: the sources that could not be read.
        """
        self.checks[vnf_id] = {
            "time": round(time.time(), 3),
            "differences": dict(differences),
            "unread": list(unread),
        }

    @classmethod
    def read(cls, text: str) -> "State":
        """The state as it was stored; a new one if the text is damaged."""
        try:
            document = untrusted.parse_json(text)
            # Half a character, which JSON may have, cannot be written for Prometheus.
            json.dumps(document, ensure_ascii=False).encode()
            totals = Totals.read(document["totals"])
            vnfs, checks = document["vnfs"], document["checks"]
            _VNFS.validate_python(vnfs)
            _CHECKS.validate_python(checks)
            return cls(totals, vnfs, checks)
        except (ValueError, KeyError, TypeError, AttributeError):
            LOG.warning("The totals for metrics are damaged and begin anew")
            return cls()

    def text(self) -> str:
        """The state to be stored."""
        return json.dumps({**vars(self), "totals": self.totals.document()})


@contextmanager
def changed(state_path: str) -> Iterator[State]:
    """The state, which is stored at the end; other processes wait meanwhile.

    :raises OSError: it cannot be read or written, another process keeps it, or there is
        no such directory.
    """
    # The conductor's user owns what root creates, and root follows no link of it.
    place = Path(state_path, _DIRECTORY)
    with as_owner_of(state_path) as held, _directory(place, held) as directory:

        def opened(path: str, flags: int) -> int:
            return open_regular(Path(path), flags, directory=directory)

        with open(place / _LOCK, "a", opener=opened) as lock:
            _acquire(lock)
            path, state = place / _FILE, State()
            with (
                suppress(FileNotFoundError),
                open(path, errors="replace", opener=opened) as file,
            ):
                state = State.read(file.read(_LARGEST))
            yield state
            with replacing(path, mode=0o600) as new:
                new.write_text(state.text())


@contextmanager
def _directory(path: Path, above: int) -> Iterator[int]:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with naming(path):
        with suppress(FileExistsError):
            os.mkdir(path.name, 0o700, dir_fd=above)
        descriptor = os.open(path.name, flags, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(lock: TextIO) -> None:
    """Wait for other processes of this host, which need only moments.

    :raises OSError: it takes too long.
    """
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise
        time.sleep(_PAUSE_SECONDS)
