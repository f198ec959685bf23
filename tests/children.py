# SPDX-License-Identifier: Apache-2.0
"""The processes that ``make test`` starts, and the end of all of them when it must end.

Each leads a session of its own, so that Ctrl-C in a terminal reaches only the program
that started them, which ends them in order.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: Seconds that processes get to end by themselves.
PATIENCE = 5.0
KILL_LIMIT = 30.0
_PAUSE = 0.05
_SET_CHILD_SUBREAPER = 36  # prctl(2)


class Stopped(BaseException):
    """This program got a signal to end.

    :ivar number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


def stop_on_signals() -> None:
    """Raise :class:`Stopped` in the main thread at the first signal to end.

    Later ones are ignored, since they would interrupt the cleanup. From now on a
    process that outlives its parent becomes a child of this program.
    """

    def stop(number: int, _frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    for each in SIGNALS:
        signal.signal(each, stop)
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Children:
    """Processes of this program; several threads may start them.

    :ivar stopped: nothing is started any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []
        self.stopped = False

    def run(self, argv: Sequence[str], **options: Any) -> tuple[int, str]:
        """Run a program until it ends.

        :param options: more for :class:`subprocess.Popen`.
        :returns: the exit code (that of a terminated process when nothing is started
            any more) and what the program wrote to a pipe.
        """
        with self._lock:
            if self.stopped:
                return -signal.SIGTERM, ""
            process = subprocess.Popen(
                argv, text=True, errors="replace", start_new_session=True, **options
            )
            self._running.append(process)
        output, _ = process.communicate()
        with self._lock:
            self._running.remove(process)
        return process.returncode, output or ""

    def stop(self) -> None:
        """End the processes of all threads, and start no more."""
        with self._lock:
            self.stopped = True
            running = list(self._running)
        started = {process.pid for process in running}
        threading.Thread(target=reap_orphans, args=(started,), daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            deadline = time.monotonic() + PATIENCE
            while any(one.poll() is None for one in running):
                if time.monotonic() > deadline:
                    break
                time.sleep(_PAUSE)


def reap_orphans(started: set[int]) -> None:
    """Reap children that this program did not start, for as long as it runs.

    A laboratory's namespace does not end before each process in it is reaped.

    :param started: the children that :meth:`Children.run` waits for.
    """
    own = str(os.getpid())
    while True:
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, parent = entry.read_text().rpartition(")")[2].split()[:2]
                pid = int(entry.parent.name)
                if state == "Z" and parent == own and pid not in started:
                    os.waitpid(pid, os.WNOHANG)
        time.sleep(_PAUSE)


def kill_descendants() -> None:
    """Kill every process below this one, also those in sessions of their own."""
    deadline = time.monotonic() + KILL_LIMIT
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)


def descendants(pid: int, proc: Path = Path("/proc")) -> set[int]:
    """The processes below *pid* that have not ended."""
    parents: dict[int, int] = {}
    for entry in proc.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents[int(entry.parent.name)] = int(parent)
    below = {pid}
    while more := {one for one, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {pid}
