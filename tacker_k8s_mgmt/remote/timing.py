# SPDX-License-Identifier: Apache-2.0
"""Time: growing pauses between attempts, time limits for calls, the real clock."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Backoff:
    """Pauses between attempts; the time limit counts from construction.

    :param limit: seconds.
    :param first: the first pause in seconds; each later one doubles it.
    :param longest: the longest pause in seconds.
    """

    def __init__(self, limit: float, first: float = 0.2, longest: float = 5.0) -> None:
        self._limit = limit
        self._pause = first
        self._longest = longest
        self._started = time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since construction."""
        return time.monotonic() - self._started

    def spent(self) -> bool:
        """Return whether the next pause would end after the limit."""
        return self.elapsed() + self._pause > self._limit

    def pause(self) -> None:
        """Sleep, each time longer."""
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, self._longest)


@contextmanager
def closing_after(
    seconds: float, close: Callable[[], None]
) -> Iterator[threading.Event]:
    """Call ``close`` if the body takes longer, and set the event that is yielded."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        close()

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


def is_unknown_name(error: BaseException) -> bool:
    """Return whether the host name does not exist, so that a retry cannot succeed."""
    return isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN


def reason(error: BaseException) -> str:
    """Return why a connection failed, as text."""
    # paramiko's SFTP client wraps an EOFError and keeps its empty text.
    if isinstance(error, EOFError) or isinstance(error.__context__, EOFError):
        return "the host closed the connection"
    return str(error) or type(error).__name__


class Clock:
    """Time as operations use it."""

    def now(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Pause this thread."""
        time.sleep(seconds)
