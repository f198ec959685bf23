"""The process that Tacker's v2 API starts for each hook: what goes in and out of it.

Tacker (``sol_refactored/conductor/vnflcm_driver_v2.py``) writes one pickle to standard
input, reads one from standard output, and shows all of standard error to the user when
the exit code is not 0. One word that a library prints would spoil either, so both are
kept aside from the beginning, and whoever writes to them, be it a child process, writes
to our log.
"""

import ctypes
import io
import os
import pickle
import signal
import sys
from collections.abc import Mapping
from typing import Any

_OUT, _ERR = 1, 2
_PR_SET_PDEATHSIG = 1


class Streams:
    """The standard streams of this process, each used for what Tacker wants there."""

    def __init__(self) -> None:
        self._out, self._err = os.dup(_OUT), os.dup(_ERR)
        self._point_to(os.open(os.devnull, os.O_WRONLY))

    def read(self) -> dict[str, Any]:
        """What Tacker passes to the hook."""
        # Tacker's own conductor has written it.
        given = pickle.load(sys.stdin.buffer)  # noqa: S301
        return dict(given)

    def divert(self, path: str) -> None:
        """Let whatever is printed go to the end of a file, made if need be."""
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._point_to(os.open(path, flags, 0o600))

    def reply(self, output: Mapping[str, Any]) -> None:
        """Hand the result to Tacker."""
        data = pickle.dumps(dict(output))
        with io.FileIO(self._out, "w") as stream:
            _write(stream, data)

    def fail(self, text: str) -> None:
        """Tell the user what is wrong: in one line, for Tacker shows `\\n` as such."""
        with io.FileIO(self._err, "w") as stream:
            _write(stream, " ".join(text.split()).encode())

    @staticmethod
    def _point_to(target: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(target, _OUT)
        os.dup2(target, _ERR)
        os.close(target)


def _write(stream: io.FileIO, data: bytes) -> None:
    while data:
        data = data[stream.write(data) :]


def end_with_conductor() -> None:
    """Have the kernel end this process when the conductor that started it has gone.

    Nobody would read its result, and its lock on the cluster would be in the way of the
    retry, which goes on where this one was: a playbook run outlives both.
    """
    conductor = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != conductor:
        sys.exit("The conductor has gone.")
