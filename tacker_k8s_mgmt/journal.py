# SPDX-License-Identifier: Apache-2.0
"""The journal: what each operation did, as JSON lines.

One file per VNF instance: ``<state path>/journal/<VNF instance id>.jsonl``. Each line
is one record with the time (seconds since the epoch), the operation's run id, the
hook, Tacker's API and an event: ``operation-start``, ``step-start``, ``progress``,
``note``, ``step-end``, ``operation-end``. One that has completed names in
``followed_by`` the hook of the same operation that is recorded next, if there is one.
Texts are redacted by their sources.

A journal keeps the newest operations only. The rest is written to a new file, which
replaces the old one. Each writer locks the file and then checks that the path still
leads to it, so no record is lost when threads or conductors write at the same time.
"""

import contextlib
import fcntl
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tacker_k8s_mgmt.files import reason, replacing

#: How many operations of a VNF instance a journal keeps by default.
KEEP = 50
#: Bytes of a journal; older operations are dropped first, then older progress.
LIMIT = 16 * 1024 * 1024

_DIRECTORY = "journal"
_SUFFIX = ".jsonl"
# Age at which the journal of a terminated VNF instance is deleted.
_TERMINATED_SECONDS = 90 * 24 * 3600
_TAIL = 64 * 1024


def path_of(state_path: str, vnf_id: str) -> str:
    """The journal file of a VNF instance.

    :raises ValueError: the id is no UUID.
    """
    return os.path.join(state_path, _DIRECTORY, f"{uuid.UUID(vnf_id)}{_SUFFIX}")


class Journal:
    """Appends the records of one operation.

    An operation does not fail because of its journal: the first failure to write is
    passed to *warn*, and nothing is written after it.

    :param api: Tacker's API, ``v1`` or ``v2``.
    :param keep: how many operations stay in the file, this one included.
    :param limit: largest size of the file in bytes.
    """

    def __init__(
        self,
        state_path: str,
        vnf_id: str,
        hook: str,
        warn: Callable[[str], Any],
        *,
        api: str = "v1",
        keep: int = KEEP,
        limit: int = LIMIT,
    ) -> None:
        self._path = path_of(state_path, vnf_id)
        self._stamp = {"run": uuid.uuid4().hex[:12], "hook": hook, "api": api}
        self._warn = warn
        self._keep = keep
        self._limit = limit
        self._broken = False

    def record(self, event: str, **fields: Any) -> None:
        """Append one record."""
        if self._broken:
            return
        record = {"time": round(time.time(), 3), **self._stamp, "event": event}
        line = json.dumps({**record, **fields}).encode() + b"\n"
        begins = event == "operation-start"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with _locked(self._path) as file:
                _append(file, line)
                if begins or file.tell() > self._limit:
                    _trim(file, self._path, self._keep, self._limit)
            if begins:
                _drop_terminated(os.path.dirname(self._path))
        except OSError as exc:
            self._broken = True
            self._warn(f"The journal {self._path} cannot be written: {reason(exc)}")


@contextlib.contextmanager
def _locked(path: str) -> Iterator[BinaryIO]:
    """The file at *path*, locked against other writers."""
    while True:
        # The driver makes no links, so one here was planted.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file, path):
                yield file
                return


def _is_at(file: BinaryIO, path: str) -> bool:
    """Whether the path still leads to this open file."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    return False


def _append(file: BinaryIO, line: bytes) -> None:
    size = file.seek(0, os.SEEK_END)
    if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
        # A writer was cut off within its line; this one starts a new line.
        line = b"\n" + line
    while line:
        line = line[file.write(line) :]


def _trim(file: BinaryIO, path: str, keep: int, limit: int) -> None:
    """Replace the file by one with the newest records if it is too long."""
    file.seek(0)
    lines = file.read().splitlines(keepends=True)
    kept = _newest(lines, keep, limit)
    if len(kept) < len(lines):
        with replacing(Path(path), mode=0o600) as new:
            new.write_bytes(b"".join(kept))


def _newest(lines: list[bytes], keep: int, limit: int) -> list[bytes]:
    """The lines of the newest operations that fit, and always of the last one."""
    records = [(record, line) for line in lines for record in _records(line)]
    sizes: dict[Any, int] = {}
    for record, line in records:
        run = record.get("run")
        # Moved to the end: runs are ordered by their last records.
        sizes[run] = sizes.pop(run, 0) + len(line)
    runs = list(sizes)[-keep:]
    while len(runs) > 1 and sum(sizes[run] for run in runs) > limit:
        del runs[0]
    kept = [(record, line) for record, line in records if record.get("run") in runs]
    if sum(len(line) for _, line in kept) > limit:
        # Every second progress record goes.
        progress = [record for record, _ in kept if record.get("event") == "progress"]
        dropped = {id(record) for record in progress[::2]}
        kept = [entry for entry in kept if id(entry[0]) not in dropped]
    return [line for _, line in kept]


def _drop_terminated(directory: str) -> None:
    """Delete old journals of terminated VNF instances."""
    oldest = time.time() - _TERMINATED_SECONDS
    for entry in os.scandir(directory):
        is_old = _is_journal(entry) and _changed(entry) < oldest
        if is_old and is_terminated(entry.path):
            Path(entry.path).unlink(missing_ok=True)


def is_terminated(path: str) -> bool:
    """Whether the last operation of a journal is a termination that completed.

    :param path: as :func:`path_of` has it.
    """
    last = _last_record(path)
    return last.get("outcome") == "completed" and _ends_termination(last)


def _ends_termination(last: dict[str, Any]) -> bool:
    hook = last.get("hook")
    # Former releases did not record what follows.
    return hook in ("terminate_start", "terminate_end") and not last.get(
        "followed_by", hook == "terminate_start"
    )


def _last_record(path: str) -> dict[str, Any]:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        return next(reversed([{}, *_records(file.read())]))
    return {}


def read(path: str, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The records of the file at *path* from byte *offset* on, and the next offset.

    A half-written last line is left for the next call; a missing file has no records.
    A :class:`JournalReader` also follows a file that is replaced.
    """
    try:
        with open(path, "rb") as file:
            lines, offset = _whole_lines(file, offset)
    except FileNotFoundError:
        return [], offset
    return list(_records(lines)), offset


def _whole_lines(file: BinaryIO, offset: int) -> tuple[bytes, int]:
    """The complete lines from *offset* on, and the offset after them."""
    file.seek(offset)
    data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return whole, offset + len(whole)


class JournalReader:
    """Reads a growing journal, also when old records are dropped from it.

    :param path: of a file that need not exist yet.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._offset = 0
        #: Hashes of the lines read, to recognize them in the file's replacement.
        self._known: set[int] = set()

    def __enter__(self) -> "JournalReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self) -> list[dict[str, Any]]:
        """The complete records that were added since the last call."""
        lines = self._more()
        if self._file is None or not _is_at(self._file, self._path):
            lines += self._of_new_file()
        return list(_records(b"".join(lines)))

    def _of_new_file(self) -> list[bytes]:
        self._close()
        try:
            self._file = open(self._path, "rb")  # noqa: SIM115  # stays open
        except FileNotFoundError:
            return []
        known, self._known, self._offset = self._known, set(), 0
        return [line for line in self._more() if hash(line) not in known]

    def _more(self) -> list[bytes]:
        if self._file is None:
            return []
        whole, self._offset = _whole_lines(self._file, self._offset)
        lines = whole.splitlines(keepends=True)
        self._known.update(map(hash, lines))
        return lines


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    """The records in *data*; other lines are skipped."""
    for line in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


def instances(state_path: str) -> list[str]:
    """Ids of the VNF instances that have a journal, the last changed one first."""
    directory = os.path.join(state_path, _DIRECTORY)
    try:
        files = [entry for entry in os.scandir(directory) if _is_journal(entry)]
    except FileNotFoundError:
        return []
    files.sort(key=_changed, reverse=True)
    return [entry.name.removesuffix(_SUFFIX) for entry in files]


def _changed(entry: os.DirEntry[str]) -> float:
    with contextlib.suppress(FileNotFoundError):
        return entry.stat().st_mtime
    return 0.0


def _is_journal(entry: os.DirEntry[str]) -> bool:
    stem = entry.name.removesuffix(_SUFFIX)
    with contextlib.suppress(ValueError):
        return entry.name == f"{uuid.UUID(stem)}{_SUFFIX}" and entry.is_file()
    return False
