"""What every operation did, as JSON lines that people and programs can follow.

One file per VNF instance: ``<state path>/journal/<VNF instance id>.jsonl``. Each line
is one record with the time (seconds since the epoch), the operation's run id, the
hook, Tacker's API and an event: ``operation-start``, ``step-start``, ``progress``,
``step-end``, ``operation-end``. Texts come redacted from their sources; no secret is
ever handed in.

A journal holds the newest operations only. What is too old is taken out by writing the
rest to a new file that takes the old one's place. Every writer locks the file and then
looks whether it is still the one of that name, so no record is lost, whichever threads
of whichever conductors write at the same time.
"""

import contextlib
import fcntl
import json
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

#: How many operations of a VNF instance a journal keeps where no option says so.
KEEP = 50
#: Bytes that a journal may have; older operations go first, then older progress.
LIMIT = 16 * 1024 * 1024

_DIRECTORY = "journal"
_SUFFIX = ".jsonl"
#: The journal of a terminated VNF instance goes when it has not changed for so long.
_TERMINATED_SECONDS = 90 * 24 * 3600
_TAIL = 64 * 1024


def path_of(state_path: str, vnf_id: str) -> str:
    """The journal file of a VNF instance.

    :raises ValueError: the id is no UUID.
    """
    return os.path.join(state_path, _DIRECTORY, f"{uuid.UUID(vnf_id)}{_SUFFIX}")


class Journal:
    """Appends the records of one operation.

    A journal that cannot be written must not fail an operation that goes well, so the
    first failure to write is told to *warn* and the operation goes on without it.

    :param api: Tacker's, ``v1`` or ``v2``: they differ in the hooks that they call.
    :param keep: how many operations of the VNF instance stay in the file, this one
        included.
    :param limit: bytes that the file may have.
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
            self._warn(f"The journal {self._path} cannot be written: {exc}")


@contextlib.contextmanager
def _locked(path: str) -> Iterator[BinaryIO]:
    """The file at *path*, which nobody else writes or replaces meanwhile."""
    while True:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        with os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file, path):
                yield file
                return


def _is_at(file: BinaryIO, path: str) -> bool:
    """Whether an open file is still the one of that name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    return False


def _append(file: BinaryIO, line: bytes) -> None:
    size = file.seek(0, os.SEEK_END)
    if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
        # A writer was cut off within its line; this one must not be lost with it.
        line = b"\n" + line
    while line:
        line = line[file.write(line) :]


def _trim(file: BinaryIO, path: str, keep: int, limit: int) -> None:
    """Put a file with the newest records in its place if it has become too long."""
    file.seek(0)
    lines = file.read().splitlines(keepends=True)
    kept = _newest(lines, keep, limit)
    if len(kept) < len(lines):
        _replace(path, b"".join(kept))


def _newest(lines: list[bytes], keep: int, limit: int) -> list[bytes]:
    """The lines of the newest operations that fit, at least those of the last one."""
    records = [(record, line) for line in lines for record in _records(line)]
    sizes: dict[Any, int] = {}
    for record, line in records:
        run = record.get("run")
        # Back to the end: the order is that of the last signs of life.
        sizes[run] = sizes.pop(run, 0) + len(line)
    runs = list(sizes)[-keep:]
    while len(runs) > 1 and sum(sizes[run] for run in runs) > limit:
        del runs[0]
    kept = [(record, line) for record, line in records if record.get("run") in runs]
    if sum(len(line) for _, line in kept) > limit:
        kept = _thinned(kept)
    return [line for _, line in kept]


def _thinned(
    records: list[tuple[dict[str, Any], bytes]],
) -> list[tuple[dict[str, Any], bytes]]:
    """Every second one of the records that only say how far a playbook is."""
    progress = [one for one in records if one[0].get("event") == "progress"]
    spare = {id(one) for one in progress[::2]}
    return [one for one in records if id(one) not in spare]


def _replace(path: str, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".journal-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _drop_terminated(directory: str) -> None:
    """Delete the journals of VNF instances that are gone for long."""
    oldest = time.time() - _TERMINATED_SECONDS
    for entry in os.scandir(directory):
        if _is_journal(entry) and _changed(entry) < oldest:
            last = _last_record(entry.path)
            ended = last.get("hook") == "terminate_end"
            if ended and last.get("outcome") == "completed":
                Path(entry.path).unlink(missing_ok=True)


def _last_record(path: str) -> dict[str, Any]:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        return next(reversed([{}, *_records(file.read())]))
    return {}


def read(path: str, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The whole records of the file at *path* from byte *offset* on, and the next one.

    A half-written last line is left for the next call; a missing file has no records.
    Where the file may be replaced meanwhile, use a :class:`Reader`.
    """
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return list(_records(whole)), offset + len(whole)


class Reader:
    """Reads a journal on and on, also when old records are taken out of it.

    :param path: of a file that need not exist yet.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._offset = 0
        #: What was read of the file, to know it again in the one that replaces it.
        self._known: set[int] = set()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self) -> list[dict[str, Any]]:
        """The whole records that have come since the last call."""
        lines = self._more()
        if self._file is None or not _is_at(self._file, self._path):
            lines += self._of_new_file()
        return list(_records(b"".join(lines)))

    def _of_new_file(self) -> list[bytes]:
        self.close()
        try:
            self._file = open(self._path, "rb")  # noqa: SIM115  # stays open
        except FileNotFoundError:
            return []
        known, self._known, self._offset = self._known, set(), 0
        return [line for line in self._more() if hash(line) not in known]

    def _more(self) -> list[bytes]:
        if self._file is None:
            return []
        self._file.seek(self._offset)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        lines = whole.splitlines(keepends=True)
        self._known.update(map(hash, lines))
        return lines


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    """The records in *data*; lines that are none are passed over."""
    for line in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


def instances(state_path: str) -> list[str]:
    """The ids of the VNF instances that have a journal, the last changed one first."""
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
