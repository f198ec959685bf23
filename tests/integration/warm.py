# SPDX-License-Identifier: Apache-2.0
"""Console programs of the environment in processes that have their modules already.

``openstack`` takes more than a second of processor time to import its modules. Here a
server for each program imports them, and forks itself for each call; what stands in the
program's place in ``PATH`` hands on arguments, environment and files, and returns the
exit code. What a call has imported in addition, the server imports before the next one,
but nothing of Tacker: that changes modules of Python itself, for eventlet.

As a script: the server. Argument: what stands in the program's place.
"""

import atexit
import contextlib
import ctypes
import importlib
import marshal
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

PROGRAMS = ("openstack", "tacker-k8s-mgmt")
#: It starts for each call, so it imports what is there without a file.
CLIENT = """\
#!/usr/bin/python3 -IS
import _socket, marshal, os, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect("{path}")
call = marshal.dumps((sys.argv[0], sys.argv[1:], os.getcwd(), dict(os.environ)))
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
with_files = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)]
server.sendmsg([len(call).to_bytes(4, "big")], with_files)
server.sendall(call)
sys.exit(int(server.recv(4) or b"70"))
"""
#: Modules that each call imports itself, and what imports them.
TACKER = re.compile(r"(tacker|eventlet|tacker_k8s_mgmt\.hooks)(\.|$)")
START_LIMIT = 30.0
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def programs(place: Path) -> Iterator[Path]:
    """A directory for ``PATH`` with the programs.

    :param place: an empty directory, with a path of less than 90 characters.
    """
    with contextlib.ExitStack() as servers:
        for name in PROGRAMS:
            servers.enter_context(_served(place / name))
        yield place


@contextlib.contextmanager
def _served(program: Path) -> Iterator[None]:
    path = _socket_of(program)
    program.write_text(CLIENT.format(path=path))
    program.chmod(0o755)
    with program.with_suffix(".log").open("w") as log:
        # -P: modules beside this one have names of others.
        argv = [sys.executable, "-P", __file__, str(program)]
        server = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_LIMIT
        while not path.exists():
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield
    finally:
        server.terminate()
        server.wait()


def _socket_of(program: Path) -> Path:
    return program.with_suffix(".socket")


class Server:
    """Forks itself for each call."""

    def __init__(self, program: Path) -> None:
        every = entry_points(group="console_scripts")
        (self._program,) = (one for one in every if one.name == program.name)
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        path = _socket_of(program)
        new = path.with_suffix(".new")
        self._listener.bind(str(new))
        self._listener.listen()
        new.rename(path)
        self._await(self._listener, self._accept)

    def run(self) -> None:
        """Serve until the process is ended; in a call's process: perform it."""
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _await(self, source: Any, then: Any) -> None:
        self._selector.register(source, selectors.EVENT_READ, then)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        head, files, _, _ = socket.recv_fds(client, 4, 3)
        with client.makefile("rb") as stream:
            sent = stream.read(int.from_bytes(head, "big"))
        name, arguments, directory, environment = marshal.loads(sent)  # noqa: S302  ours
        # Modules look at its name.
        sys.argv = [name, *arguments]
        self._program.load()
        modules = os.memfd_create("modules")
        pid = os.fork()
        if not pid:
            for number, file in enumerate(files):
                os.dup2(file, number)
            _perform(self._program, directory, environment, modules)
        for file in files:
            os.close(file)
        self._await(client, partial(self._hang_up, client, pid))
        end = os.pidfd_open(pid)
        self._await(end, partial(self._end, client, pid, end, modules))

    def _hang_up(self, client: socket.socket, pid: int) -> None:
        """End a call whose client has gone."""
        # It may just have ended by itself.
        with contextlib.suppress(KeyError, ProcessLookupError):
            self._selector.unregister(client)
            os.kill(pid, signal.SIGTERM)

    def _end(self, client: socket.socket, pid: int, end: int, modules: int) -> None:
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(KeyError):
            self._selector.unregister(client)
        self._selector.unregister(end)
        with contextlib.suppress(BrokenPipeError), client:
            code = os.waitstatus_to_exitcode(status)
            client.sendall(str(code if code >= 0 else 128 - code).encode())
        os.close(end)
        with open(modules) as stream:
            stream.seek(0)
            names = stream.read().split()
        for name in names:
            if not TACKER.match(name):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


def _perform(
    program: EntryPoint,
    directory: str,
    environment: dict[str, str],
    modules: int,
) -> None:
    """Be the program, and end.

    :param modules: file for the names of those that it imports.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    known = set(sys.modules)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115  open to the end
    sys.stderr = open(2, "w", 1)  # noqa: SIM115
    code: Any = 1
    try:
        code = program.load()()
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    atexit._run_exitfuncs()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    os.write(modules, "\n".join(n for n in sys.modules if n not in known).encode())
    os._exit(code or 0)


if __name__ == "__main__":
    Server(Path(sys.argv[1])).run()
