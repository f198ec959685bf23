# SPDX-License-Identifier: Apache-2.0
"""Input, output and exit code of one remote command over its SSH channel.

Both streams are read together, so neither can block the other. Standard output is kept
up to a cap, because it is parsed; of standard error the end is kept, to be shown. The
channel is a Protocol, so that paramiko stays in :mod:`.session` and :mod:`.login`.
"""

import re
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from tacker_k8s_mgmt.text import in_line

STDOUT_CAP = 8 * 1024 * 1024
STDERR_KEPT = 64 * 1024
_CHUNK = 64 * 1024
_TICK = 0.1  # seconds; an exit code alone sets no event
_SETTLE = 1.0  # seconds of silence after the exit code if a child holds the streams


class TooMuchOutput(Exception):
    """The command wrote more than :data:`STDOUT_CAP` bytes to standard output."""


class Channel(Protocol):
    """A paramiko channel, as far as it is used here."""

    closed: bool
    eof_received: int
    in_buffer: Any
    in_stderr_buffer: Any

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
    """The result of a command. The output may hold secrets, so ``repr`` omits it.

    ``rc`` is -1 if the channel ended without an exit code; ``stderr`` holds the last
    :data:`STDERR_KEPT` bytes.
    """

    rc: int
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)


def exchange(channel: Channel, stdin: bytes, limit: float) -> Result:
    """Send the command's input and collect its output until it ends.

    :param limit: seconds.
    :raises TimeoutError: the command was still running at the limit.
    :raises TooMuchOutput: standard output exceeded the cap.
    """
    state = _Exchange(channel, stdin)
    ends = time.monotonic() + limit
    # Not select on the channel's descriptor: with eventlet's, a reused number collides
    # with a waiter for its former owner.
    arrived = threading.Event()
    channel.in_buffer.set_event(arrived)
    channel.in_stderr_buffer.set_event(arrived)
    while not state.over():
        if time.monotonic() > ends:
            raise TimeoutError
        if state.move():
            continue
        if channel.eof_received or channel.closed:
            # The event stays set after the end of the streams.
            time.sleep(0.005)
        else:
            arrived.wait(_TICK)
    return Result(
        channel.recv_exit_status(),
        state.stdout.decode(errors="replace"),
        state.end_of_stderr().decode(errors="replace"),
    )


def last_lines(output: str, count: int = 6, chars: int = 800) -> str:
    """Return the end of an output as one line, for an error message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return in_line(" | ".join(lines[-count:])[-chars:])


class _Exchange:
    """The state of one exchange."""

    def __init__(self, channel: Channel, stdin: bytes) -> None:
        self._channel = channel
        self._pending = stdin
        self._moved = time.monotonic()
        self._ended = False
        self._stderr_is_cut = False
        self.stdout = bytearray()
        self.stderr = bytearray()
        if not stdin:
            channel.shutdown_write()

    def move(self) -> bool:
        """Transfer data without waiting; return whether there was any."""
        moved = False
        if self._channel.recv_ready():
            self.stdout += self._channel.recv(_CHUNK)
            if len(self.stdout) > STDOUT_CAP:
                raise TooMuchOutput
            moved = True
        if self._channel.recv_stderr_ready():
            self.stderr += self._channel.recv_stderr(_CHUNK)
            self._stderr_is_cut |= len(self.stderr) > STDERR_KEPT
            del self.stderr[:-STDERR_KEPT]
            moved = True
        if self._pending and self._channel.send_ready():
            self._feed()
            moved = True
        if moved:
            self._moved = time.monotonic()
        return moved

    def end_of_stderr(self) -> bytes:
        """What is kept of standard error, from the beginning of a word.

        In a part of a word, nobody would recognise a secret later.
        """
        if not self._stderr_is_cut:
            return bytes(self.stderr)
        words = re.split(rb"\s", self.stderr, maxsplit=1)
        return words[1] if len(words) > 1 else b"..."

    def over(self) -> bool:
        """Return whether the command has ended and its output was read."""
        if not self._channel.exit_status_ready():
            return False
        if not self._ended:
            # A server may send it before the last output of the command.
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
            # The command ended without reading all its input; the exit code counts.
            self._pending = b""
