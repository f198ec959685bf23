"""Talks to one remote command over its channel: both streams, input, limit, exit code.

Both streams are read together, so neither can block the other. Standard output is kept
whole up to a cap (it is parsed: JSON), of standard error only the end is kept (it is
shown). The channel is only described here: paramiko stays in :mod:`.session`.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

STDOUT_CAP = 8 * 1024 * 1024
STDERR_KEPT = 64 * 1024
_CHUNK = 64 * 1024
_TICK = 0.1  # seconds; an exit code alone does not wake us
_SETTLE = 1.0  # seconds of quiet after the exit code, when a child keeps the streams


class TooMuchOutput(Exception):
    """The command wrote more than :data:`STDOUT_CAP` bytes to standard output."""


class Buffer(Protocol):
    """One stream of a paramiko channel."""

    def set_event(self, event: threading.Event) -> None: ...


class Channel(Protocol):
    """What is needed of a paramiko channel."""

    closed: bool
    eof_received: int

    @property
    def in_buffer(self) -> Buffer: ...
    @property
    def in_stderr_buffer(self) -> Buffer: ...
    def recv_ready(self) -> bool: ...
    def recv(self, nbytes: int) -> bytes: ...
    def recv_stderr_ready(self) -> bool: ...
    def recv_stderr(self, nbytes: int) -> bytes: ...
    def send_ready(self) -> bool: ...
    def send(self, s: bytes) -> int: ...
    def shutdown_write(self) -> None: ...
    def exit_status_ready(self) -> bool: ...
    def recv_exit_status(self) -> int: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Result:
    """How a command ended. The output may hold secrets, so it is not shown.

    ``rc`` is -1 when the channel ended without an exit code. Of ``stderr`` the last
    :data:`STDERR_KEPT` bytes are there.
    """

    rc: int
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)


def exchange(channel: Channel, stdin: bytes, limit: float) -> Result:
    """Feed the command's input and collect its output until it ends.

    :param limit: seconds for all of it.
    :raises TimeoutError: the command was still running at the limit.
    :raises TooMuchOutput: standard output passed the cap.
    """
    talk = _Talk(channel, stdin)
    ends = time.monotonic() + limit
    # Not the channel's descriptor: where eventlet has patched select, a number that is
    # used again meets whoever still waits for its former owner.
    news = threading.Event()
    channel.in_buffer.set_event(news)
    channel.in_stderr_buffer.set_event(news)
    while not talk.over():
        if time.monotonic() > ends:
            raise TimeoutError
        if talk.move():
            continue
        if channel.eof_received or channel.closed:
            # The event stays set after the end of the streams.
            time.sleep(0.005)
        else:
            news.wait(_TICK)
    return Result(
        channel.recv_exit_status(),
        talk.stdout.decode(errors="replace"),
        talk.stderr.decode(errors="replace"),
    )


def last_lines(output: str, count: int = 6, chars: int = 800) -> str:
    """Return the end of an output as one line, for an error message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " | ".join(lines[-count:])[-chars:]


class _Talk:
    """The state of one exchange."""

    def __init__(self, channel: Channel, stdin: bytes) -> None:
        self._channel = channel
        self._pending = stdin
        self._moved = time.monotonic()
        self._ended = False
        self.stdout = bytearray()
        self.stderr = bytearray()
        if not stdin:
            channel.shutdown_write()

    def move(self) -> bool:
        """Move what can be moved without waiting; return whether there was anything."""
        moved = False
        if self._channel.recv_ready():
            self.stdout += self._channel.recv(_CHUNK)
            if len(self.stdout) > STDOUT_CAP:
                raise TooMuchOutput
            moved = True
        if self._channel.recv_stderr_ready():
            self.stderr += self._channel.recv_stderr(_CHUNK)
            del self.stderr[:-STDERR_KEPT]
            moved = True
        if self._pending and self._channel.send_ready():
            self._feed()
            moved = True
        if moved:
            self._moved = time.monotonic()
        return moved

    def over(self) -> bool:
        """Tell whether the command has ended and its output was read."""
        if not self._channel.exit_status_ready():
            return False
        if not self._ended:
            # A server may tell it before the output of a command that was long silent.
            self._ended, self._moved = True, time.monotonic()
        if self._channel.recv_ready() or self._channel.recv_stderr_ready():
            return False
        if self._channel.eof_received or self._channel.closed:
            return True
        return time.monotonic() - self._moved > _SETTLE

    def _feed(self) -> None:
        try:
            sent = self._channel.send(self._pending[:_CHUNK])
            self._pending = self._pending[sent:]
            if not self._pending:
                self._channel.shutdown_write()
        except OSError:
            # The command ended without reading all its input; its exit code tells.
            self._pending = b""
