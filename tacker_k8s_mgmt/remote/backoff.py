"""How we wait: pauses that grow up to a limit, calls that must end, and what for."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Backoff:
    """Pauses between tries until a number of seconds has passed since its making.

    :param limit: seconds.
    :param first: the first pause in seconds; each later one doubles it.
    :param longest: no pause is longer than this.
    """

    def __init__(self, limit: float, first: float = 0.2, longest: float = 5.0) -> None:
        self._limit = limit
        self._pause = first
        self._longest = longest
        self._started = time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since the making."""
        return time.monotonic() - self._started

    def spent(self) -> bool:
        """Tell whether the next pause would end after the limit."""
        return self.elapsed() + self._pause > self._limit

    def pause(self) -> None:
        """Wait a little, each time longer."""
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, self._longest)


@contextmanager
def closing_after(
    seconds: float, close: Callable[[], None]
) -> Iterator[threading.Event]:
    """Call ``close`` if the body takes longer; the event tells whether it did."""
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
    """Whether waiting is in vain: the host's name does not exist."""
    return isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN


def reason(error: BaseException) -> str:
    """Why a connection failed, in words."""
    # paramiko's SFTP client wraps it, with its empty text.
    if isinstance(error, EOFError) or isinstance(error.__context__, EOFError):
        return "the host closed the connection"
    return str(error) or type(error).__name__
