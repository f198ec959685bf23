# SPDX-License-Identifier: Apache-2.0
"""Command lines as processes of their own, started by fork from one that has imports.

As a program: reads cases as a line of JSON each, with their working directory and their
variables, and writes the end of each likewise.
"""

import atexit
import functools
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

#: In place of the name of a file.
CLOSED, BROKEN = "closed", "broken"
_LIMIT = 60  # seconds of a command
ROOT = Path(__file__).resolve().parents[4]


@dataclass(frozen=True)
class Case:
    """A command line with its surroundings.

    :param stdin: a file, or CLOSED; "" is empty.
    :param stdout: a device, CLOSED, or BROKEN (a pipe that nobody reads); "" is kept.
    :param stderr: likewise.
    """

    words: tuple[str, ...]
    stdin: str = ""
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True)
class End:
    """How a process ended; a negative code is the signal's."""

    code: int
    out: str
    err: str


def run(cases, directory, env=None):
    """How each case ends, in this working directory.

    :param env: more variables, for all of them.
    """
    around = {"cwd": str(directory), "env": {**os.environ, **(env or {})}}
    return [End(**_ask({**asdict(case), **around})) for case in cases]


def _ask(question):
    server = _server()
    server.stdin.write(json.dumps(question).encode() + b"\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    assert answer, f"the server of the cases ended with {server.wait(_LIMIT)}"
    return json.loads(answer)


@functools.cache
def _server():
    """The process that forks, for all tests; imports take it longer than a case."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.tools.cli.processes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )

    def end():
        server.stdin.close()
        server.wait(_LIMIT)

    atexit.register(end)
    return server


def _opened(name, number):
    """Put a file at a descriptor."""
    if name == CLOSED:
        os.close(number)
        return
    if name == BROKEN:
        reading, writing = os.pipe()
        opened, other = (writing, reading) if number else (reading, writing)
        os.close(other)
    else:
        opened = os.open(name, os.O_WRONLY if number else os.O_RDONLY)
    os.dup2(opened, number)
    os.close(opened)


def _child(case, around, out, err):
    os.chdir(around["cwd"])
    os.environ.clear()
    os.environ.update(around["env"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if wanted := getattr(case, name):
            _opened(wanted, number)
            if wanted == CLOSED:
                setattr(sys, name, None)
                setattr(sys, f"__{name}__", None)
    signal.alarm(_LIMIT)
    from tacker_k8s_mgmt.tools.cli import main

    # As the console script does it.
    sys.exit(main(list(case.words)))


def _serve():
    from tacker_k8s_mgmt.tools.cli.app import Commands

    for _, command in Commands():
        command.load()
    # It takes seconds.
    sys.modules["tacker"] = None
    gc.freeze()
    for line in sys.stdin.buffer:
        fields = json.loads(line)
        around = {name: fields.pop(name) for name in ("cwd", "env")}
        case = Case(**{**fields, "words": tuple(fields["words"])})
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if not child:
                _child(case, around, out, err)
            _, status = os.waitpid(child, 0)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="backslashreplace"))
        end = End(os.waitstatus_to_exitcode(status), *texts)
        os.write(1, json.dumps(asdict(end)).encode() + b"\n")


if __name__ == "__main__":
    _serve()
