"""What every operation did, as JSON lines that people and programs can follow.

One file per VNF instance: ``<state path>/journal/<VNF instance id>.jsonl``. Each line
is one record with the time (seconds since the epoch), the operation's run id, the
hook and an event: ``operation-start``, ``step-start``, ``progress``, ``step-end``,
``operation-end``. Texts come redacted from their sources; no secret is ever handed in.
"""

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterator
from typing import Any

_DIRECTORY = "journal"
_SUFFIX = ".jsonl"


def path_of(state_path: str, vnf_id: str) -> str:
    """The journal file of a VNF instance.

    :raises ValueError: the id is no UUID.
    """
    return os.path.join(state_path, _DIRECTORY, f"{uuid.UUID(vnf_id)}{_SUFFIX}")


class Journal:
    """Appends the records of one operation.

    A journal that cannot be written must not fail an operation that goes well, so the
    first failure to write is told to *warn* and the operation goes on without it.
    """

    def __init__(self, state_path: str, vnf_id: str, hook: str, warn: Any) -> None:
        self._path = path_of(state_path, vnf_id)
        self._stamp = {"run": uuid.uuid4().hex[:12], "hook": hook}
        self._warn = warn
        self._broken = False

    def record(self, event: str, **fields: Any) -> None:
        """Append one record."""
        if self._broken:
            return
        line = {"time": round(time.time(), 3), **self._stamp, "event": event, **fields}
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(self._path, flags, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as exc:
            self._broken = True
            self._warn(f"The journal {self._path} cannot be written: {exc}")


def read(path: str, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The whole records of the file at *path* from byte *offset* on, and the next one.

    A half-written last line is left for the next call; a missing file has no records.
    """
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return list(_records(whole)), offset + len(whole)


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def instances(state_path: str) -> list[str]:
    """The ids of the VNF instances that have a journal, the last changed one first."""
    directory = os.path.join(state_path, _DIRECTORY)
    with contextlib.suppress(FileNotFoundError):
        files = [entry for entry in os.scandir(directory) if _is_journal(entry)]
        files.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
        return [entry.name.removesuffix(_SUFFIX) for entry in files]
    return []


def _is_journal(entry: os.DirEntry[str]) -> bool:
    stem = entry.name.removesuffix(_SUFFIX)
    with contextlib.suppress(ValueError):
        return entry.name == f"{uuid.UUID(stem)}{_SUFFIX}" and entry.is_file()
    return False
