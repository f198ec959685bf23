# SPDX-License-Identifier: Apache-2.0
"""A service as a process: start it, wait for it, look at it, stop it.

Each service is a session of its own, and all it says goes to one log file. A record
says which process it is and what it was started with, so that a later ``up`` finds it
again, and starts it again when its program or configuration has changed.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab import LabError, command, files
from lab.namespace import clean_environment, start_time
from lab.settings import Settings, places

POLL = 0.05
PAUSE = 0.1
KILL_LIMIT = 10.0
USAGE_LIMIT = 30.0


@dataclass(frozen=True)
class Service:
    """What is run, and how.

    :ivar ready: whether it serves, given what it has said since it was started.
    :ivar vacant: whether nothing of its former process is left that could be taken for
        the next one's.
    :ivar environment: variables beyond those that every program of the lab gets.
    :ivar files: it is started again when their contents change.
    :ivar limit: seconds without a word from it until it must be ready.
    :ivar patience: seconds that it gets to stop by itself.
    """

    name: str
    argv: Sequence[str]
    ready: Callable[[str], bool]
    vacant: Callable[[], bool] = lambda: True
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[Path] = ()
    limit: float = 120.0
    patience: float = 5.0

    def digest(self) -> str:
        """What it is started with, in short."""
        parts = [*self.argv, *(f"{k}={v}" for k, v in sorted(self.environment.items()))]
        return files.digest(self.files, *parts)


@dataclass(frozen=True)
class Record:
    """A service that was started.

    :ivar offset: where in the log it began.
    """

    pid: int
    started: str
    digest: str
    offset: int


@dataclass(frozen=True)
class Usage:
    """What a service's processes take.

    :ivar memory: proportional set size in MiB: shared pages count once.
    """

    processes: int
    memory: float
    seconds: int


class Processes:
    """The processes of one lab's services."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def log(self, name: str) -> Path:
        """All output of a service."""
        return self._settings.log / f"{name}.log"

    def record(self, name: str) -> Record | None:
        """A service's record, while its process lives."""
        try:
            record = Record(**json.loads(self._file(name).read_text()))
        except (FileNotFoundError, ValueError):
            return None
        return record if start_time(record.pid) == record.started else None

    def is_current(self, service: Service) -> bool:
        """Whether a service runs, with what it would be started with now."""
        record = self.record(service.name)
        return record is not None and record.digest == service.digest()

    def start(self, service: Service) -> None:
        """Start a service unless it runs, and wait until it is ready.

        :raises LabError: it ended, or is not ready in time; with the end of its log.
        """
        if not self.is_current(service):
            self.stop(service.name, service.patience)
            self._wait_until_vacant(service)
            self._launch(service)
        output = ""
        deadline = time.monotonic() + service.limit
        while True:
            record = self.record(service.name)
            if record is None:
                raise self._failure(service.name, "ended")
            before, output = output, self._said(service.name, record)
            if service.ready(output):
                return
            if output != before:
                deadline = time.monotonic() + service.limit
            if time.monotonic() > deadline:
                raise self._failure(
                    service.name,
                    f"is not ready, and silent for {service.limit:.0f} s",
                )
            time.sleep(PAUSE)

    def _wait_until_vacant(self, service: Service) -> None:
        log = self.log(service.name)
        if not log.exists():
            # It has never run.
            return
        deadline = time.monotonic() + service.limit
        while not service.vacant():
            if time.monotonic() > deadline:
                raise self._failure(
                    service.name,
                    "has ended, but is still known to others as its former process",
                )
            time.sleep(PAUSE)

    def stop(self, name: str, patience: float) -> None:
        """End a service and all of its processes.

        :param patience: seconds that it gets to do so by itself; 0: none.
        """
        record = self.record(name)
        if record:
            if patience:
                _signal(record.pid, signal.SIGTERM)
                self._wait(name, patience)
            _signal(record.pid, signal.SIGKILL)
            self._wait(name, KILL_LIMIT)
        self._file(name).unlink(missing_ok=True)

    def usage(self, name: str) -> Usage | None:
        """What a running service takes."""
        record = self.record(name)
        if record is None:
            return None
        said = command.run(
            ["ps", "-s", str(record.pid), "-o", "pss=,etimes="], limit=USAGE_LIMIT
        )
        rows = [tuple(map(int, line.split())) for line in said.splitlines()]
        return Usage(
            processes=len(rows),
            memory=sum(memory for memory, _ in rows) / 1024,
            seconds=max((seconds for _, seconds in rows), default=0),
        )

    def _launch(self, service: Service) -> None:
        with self.log(service.name).open("ab") as log:
            offset = log.tell()
            process = subprocess.Popen(
                list(service.argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self._settings.run,
                env={
                    **clean_environment(),
                    **places(self._settings),
                    **service.environment,
                },
            )
        started = start_time(process.pid) or ""
        record = Record(process.pid, started, service.digest(), offset)
        self._file(service.name).write_text(json.dumps(vars(record)))

    def _said(self, name: str, record: Record) -> str:
        with self.log(name).open("rb") as log:
            log.seek(record.offset)
            return log.read().decode(errors="replace")

    def _failure(self, name: str, what: str) -> LabError:
        tail = command.tail(self.log(name).read_text(errors="replace"))
        return LabError(f"{name} {what} (all of it: {self.log(name)}):\n{tail}")

    def _wait(self, name: str, limit: float) -> None:
        deadline = time.monotonic() + limit
        while self.record(name) and time.monotonic() < deadline:
            time.sleep(POLL)

    def _file(self, name: str) -> Path:
        return self._settings.run / f"{name}.json"


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
