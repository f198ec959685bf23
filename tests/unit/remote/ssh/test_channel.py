# SPDX-License-Identifier: Apache-2.0
"""Talking to a command over its channel, frame by frame."""

import time

from tacker_k8s_mgmt.remote.ssh import channel


class Stream:
    def set_event(self, event):
        """Nobody is woken: the ticks suffice."""


class LateOutput:
    """The channel of a command that was silent for long.

    The server tells its exit code first, and what it printed at its end a little later,
    as OpenSSH may.
    """

    closed = False
    eof_received = 0
    in_buffer = in_stderr_buffer = Stream()

    def __init__(self, ends: float, tells: float) -> None:
        now = time.monotonic()
        self._ends, self._tells = now + ends, now + tells
        self._output = b"its result"

    def recv_ready(self):
        return bool(self._output) and time.monotonic() > self._tells

    def recv(self, nbytes):
        told, self._output = self._output, b""
        return told

    def recv_stderr_ready(self):
        return False

    def exit_status_ready(self):
        return time.monotonic() > self._ends

    def recv_exit_status(self):
        return 0

    def shutdown_write(self):
        """There is no input."""


def test_output_that_comes_after_the_exit_code_is_not_lost(monkeypatch):
    # The command is silent for longer than the streams may take to settle.
    monkeypatch.setattr(channel, "_SETTLE", 0.5)
    result = channel.exchange(LateOutput(ends=0.7, tells=0.9), b"", limit=10)
    assert (result.rc, result.stdout) == (0, "its result")
