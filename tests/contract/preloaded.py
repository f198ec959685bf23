# SPDX-License-Identifier: Apache-2.0
"""A Python that has imported already what programs need, to be started like Python.

Tacker's v2 API starts a process for every hook and for every user-data script; nearly
all that one costs is what it imports. :func:`running` gives a program to start instead
of :data:`sys.executable`: a script still runs in a new process, with its own arguments,
directory, environment and streams, but forked off one that has done the imports. What
only a process can show that begins with nothing is tested with Python itself.

Only the standard library is imported here: whoever asks is a process of its own, too.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_STREAMS = [0, 1, 2]
_ASKING = """\
#!{python} -BIS
import sys
sys.path.insert(0, {root!r})
from tests.contract import preloaded
sys.exit(preloaded.ask({address!r}))
"""


@contextlib.contextmanager
def running(modules: Sequence[str]) -> Iterator[str]:
    """The path of such a program, which has imported these modules, until the end."""
    # Not in pytest's directory: the address of a socket has about 100 characters.
    with (
        tempfile.TemporaryDirectory(prefix="preloaded-") as place,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        address = f"{place}/socket"
        listener.bind(address)
        listener.listen()
        program = Path(place, "python")
        program.write_text(
            _ASKING.format(python=sys.executable, root=str(ROOT), address=address)
        )
        program.chmod(0o700)
        served = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno()), *modules],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
        # Who asks one that has ended is refused, then, and does not wait.
        listener.close()
        try:
            yield str(program)
        finally:
            served.communicate()
    subprocess.CompletedProcess(served.args, served.returncode).check_returncode()


def ask(address: str) -> int:
    """Have what this process was started with be run there; its exit code."""
    told = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)])
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [b"\n"], _STREAMS)
        connection.sendall(told.encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile() as answer:
            return int(answer.read())


def serve(listener: socket.socket) -> None:
    """Fork for each who asks, one after the other, until standard input ends."""
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        with connection:
            process = os.fork()
            if not process:
                listener.close()
                given = _received(connection)
                break
            _, status = os.waitpid(process, 0)
            code = os.waitstatus_to_exitcode(status)
            connection.sendall(str(code).encode())
    else:
        return
    _become(*given)


def _received(connection: socket.socket) -> tuple[list[str], str, dict[str, str]]:
    """Take over the streams of who asks, and tell what is to be run."""
    _, streams, _, _ = socket.recv_fds(connection, 1, len(_STREAMS))
    for here, stream in zip(_STREAMS, streams, strict=True):
        os.dup2(stream, here)
        os.close(stream)
    # They know of what they stand for whether one can seek in it.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    with connection.makefile() as told:
        words, directory, environment = json.load(told)
    return words, directory, environment


def _become(words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Be the Python that was started with these words."""
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    if words[0] == "-m":
        _, module, *arguments = words
        sys.argv[:] = [module, *arguments]
        sys.path[0] = directory
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = words
        sys.path[0] = os.path.dirname(os.path.realpath(words[0]))
        runpy.run_path(words[0], run_name="__main__")


def main(number: str, *modules: str) -> None:
    """Import, then serve on the socket that was passed as this file."""
    for module in modules:
        importlib.import_module(module)
    # Most of what a fork costs is the end of what it was born with.
    gc.freeze()
    serve(socket.socket(fileno=int(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
