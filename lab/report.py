# SPDX-License-Identifier: Apache-2.0
"""Progress for people: plain lines with seconds, nothing for what is quick."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

QUIET = 4.0
TICK = 15.0
WIDTH = 28


class Report:
    """Writes one line for each step that ended, and a sign of life for long ones.

    Usable from several threads.

    :param quiet: seconds after which a step that goes on is announced.
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
