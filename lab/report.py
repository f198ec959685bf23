# SPDX-License-Identifier: Apache-2.0
"""Steps of a command: reported, and run in parallel where their order allows."""

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

QUIET = 4.0
TICK = 15.0
WIDTH = 28


class Report:
    """Writes one line for each step that ended, and a sign of life for long ones.

    Usable from several threads.

    :param quiet: seconds after which a step that continues is announced.
    :param tick: seconds between later signs of life.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: float = QUIET,
        tick: float = TICK,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stdout
        self._quiet = quiet
        self._tick = tick
        self._clock = clock
        self._lock = threading.Lock()

    def line(self, text: str) -> None:
        """A line of its own."""
        with self._lock:
            print(text, file=self._stream, flush=True)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what happens inside; a step that fails has no closing line."""
        began = self._clock()
        ended = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(name, began, ended), daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            ended.set()
        self.line(f"  {name:<{WIDTH}} {self._clock() - began:6.1f} s")

    def _watch(self, name: str, began: float, ended: threading.Event) -> None:
        if ended.wait(self._quiet):
            return
        self.line(f"  {name} ...")
        while not ended.wait(self._tick):
            self.line(f"  {name} ... {self._clock() - began:.0f} s")


@dataclass(frozen=True)
class Task:
    """A piece of work.

    :ivar needs: names of tasks that must have ended before.
    """

    name: str
    run: Callable[[], object]
    needs: tuple[str, ...] = ()


def run_all(tasks: Sequence[Task]) -> None:
    """Run tasks, each as soon as what it needs has ended.

    The first exception is raised at once: nothing new is started then, and what still
    runs is left to end with the program.

    :raises ValueError: tasks wait for each other, or for one that is not there.
    """
    waiting = list(tasks)
    done: set[str] = set()
    ended: queue.Queue[tuple[Task, BaseException | None]] = queue.Queue()
    running = 0
    while waiting or running:
        for task in [t for t in waiting if done.issuperset(t.needs)]:
            waiting.remove(task)
            threading.Thread(target=_run, args=(task, ended), daemon=True).start()
            running += 1
        if not running:
            names = ", ".join(task.name for task in waiting)
            raise ValueError(f"these can never start: {names}")
        task, error = ended.get()
        running -= 1
        if error:
            raise error
        done.add(task.name)


def _run(task: Task, ended: "queue.Queue[tuple[Task, BaseException | None]]") -> None:
    try:
        task.run()
    except BaseException as error:
        ended.put((task, error))
    else:
        ended.put((task, None))
