# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt``: the operator's commands outside of Tacker.

The commands are in :mod:`.commands`, a module each; :mod:`.app` is the program around
them, made with cliff as ``openstack`` is, and :mod:`.osc` offers them there. The
conductor imports nothing of this package.
"""

import io
import os
import sys
from collections.abc import Sequence

_INTERRUPTED = 130
_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    :param argv: arguments without the program's name; default: those of the process.
    :returns: the exit code.
    """
    # Imported late: `openstack` loads this package at each start.
    from tacker_k8s_mgmt.cli.app import App
    from tacker_k8s_mgmt.model import core_dumps

    core_dumps.forbid()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = App().run(sys.argv[1:] if argv is None else list(argv))
        print(end="", flush=True)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        code = _BROKEN_PIPE
    if code == _BROKEN_PIPE:
        # The reader has closed the pipe; Python would flush into it again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
