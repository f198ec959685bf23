# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt``: the operator's commands outside of Tacker.

The commands are in :mod:`.commands`, a module each; :mod:`.app` is the program around
them, made with cliff as ``openstack`` is, and :mod:`.osc` offers them there. The
conductor imports nothing of this package.
"""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

_INTERRUPTED = 130
_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    :param argv: arguments without the program's name; default: those of the process.
    :returns: the exit code.
    """
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        # Also while modules are imported, which takes a moment.
        code = _INTERRUPTED
    except BrokenPipeError:
        code = _BROKEN_PIPE
    except SystemExit as end:
        # From argparse, with all that it has printed.
        raise SystemExit(_written(int(end.code or 0))) from None
    return _written(code)


def _run(argv: list[str]) -> int:
    _prepare_streams()
    # Imported late: `openstack` loads this package at each start.
    from tacker_k8s_mgmt import text
    from tacker_k8s_mgmt.tools.cli.app import App

    text.forbid()
    return App().run(argv)


def _prepare_streams() -> None:
    """Have every text read and written, in each environment."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # It is closed. A file that is opened now would get its number.
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            errors = "surrogateescape" if mode == "r" else "backslashreplace"
            stream.reconfigure(errors=errors)


def _written(code: int) -> int:
    """The exit code, once all output has left the process."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _BROKEN_PIPE
    except OSError as error:
        from tacker_k8s_mgmt.tools.cli import base

        code = code or base.lost(error)
    if code == _BROKEN_PIPE:
        _drop(sys.stdout)
    try:
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)
    return code


def _drop(stream: Any) -> None:
    """Lose what could not be written; Python would try it again at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
