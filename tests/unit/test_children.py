# SPDX-License-Identifier: Apache-2.0
"""A signal to ``make test``, with real processes."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests.tree import ROOT

LIMIT = 60  # seconds without anything new
#: Stands for ``python3 -m lab``. Like a lab's init, what it starts outlives it.
LAB = """
import os, subprocess, sys, time
number, verb = sys.argv[1:3]
def leave():
    sleep = ["sleep", "1000"]
    return subprocess.Popen(sleep, start_new_session=True, stdout=subprocess.DEVNULL)
with open(f"lab-{number}", "a") as said:
    print(verb, file=said, flush=True)
    if verb == "up":
        leave()
    if verb == "down":
        # As a namespace does, which waits until all of its processes are reaped.
        while os.path.exists("/proc/" + open(f"orphan-{number}").read().strip()):
            time.sleep(0.05)
        print("gone", file=said)
    if verb == "exec":
        leave()
        # In the session that is ended, and an orphan then.
        orphan = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
        with open(f"orphan-{number}", "w") as file:
            print(orphan.pid, file=file)
        print("tests run", file=said, flush=True)
        leave().wait()
"""
#: ``python3 -m tests`` with that lab and with a check that never ends.
PROGRAM = """
import sys
from pathlib import Path
from tests import __main__ as checks, laboratories

what = sys.argv.pop()

def everything(processes):
    if what == "check":
        checks.Check("endless", (sys.executable, {lab!r}, "0", "exec")).run(processes)
    laboratories._command = lambda number: [sys.executable, {lab!r}, str(number)]
    laboratories.run(processes, sys.executable, 2, [Path("one"), Path("two")])

checks.JOBS["all"] = everything
checks.ROOT = laboratories.ROOT = Path({place!r})
laboratories.STATE = str(laboratories.ROOT / "state")
sys.exit(checks.main())
"""
TESTS_RUN = ["up", "exec", "tests run"]


class Run:
    """A run of the checks.

    :param place: a directory for its programs and for what the labs were called with.
    :param what: ``labs``, or ``check`` for a check before them.
    """

    def __init__(self, place: Path, what: str) -> None:
        self._place = place
        self._mark = f"CHILDREN_TEST={uuid.uuid4().hex}"
        program, lab = place / "program.py", place / "stand_in.py"
        lab.write_text(LAB)
        program.write_text(PROGRAM.format(lab=str(lab), place=str(place)))
        self.argv = [sys.executable, str(program), what]
        name, _, value = self._mark.partition("=")
        self.env = {**os.environ, "PYTHONPATH": str(ROOT), name: value}

    def through_make(self) -> None:
        """Let ``make test`` start it in place of the real checks."""
        python = self._place / "python"
        python.write_text(f"#!/bin/sh\nexec {shlex.join(self.argv)}\n")
        python.chmod(0o755)
        self.env["MAKEFLAGS"] = f"PYTHON={python}"

    def begin(self, argv: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            argv,
            env=self.env,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def labs(self) -> list[list[str]]:
        """What happened in each lab."""
        records = sorted(self._place.glob("lab-*"))
        return [record.read_text().splitlines() for record in records]

    def left(self) -> dict[int, str]:
        """Its processes that have not ended, and their programs."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._mark in (entry / "environ").read_text(errors="replace"):
                    found[int(entry.name)] = (entry / "cmdline").read_text()
        return found

    def wait_for(self, labs: list[list[str]], process: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + LIMIT
        while self.labs() != labs:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline, self.labs()
            time.sleep(0.05)


@pytest.fixture
def make_run(tmp_path):
    """Makes a run of which nothing is left when the test has ended."""
    made = []

    def make(what: str) -> Run:
        made.append(Run(tmp_path, what))
        return made[-1]

    yield make
    for pid in made[0].left():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=[signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def number(request):
    return request.param


def test_a_signal_ends_tests_and_labs(make_run, number):
    run = make_run("labs")
    process = run.begin(run.argv)
    run.wait_for([TESTS_RUN] * 2, process)
    # The second and third do not interrupt the cleanup.
    for _ in range(3):
        process.send_signal(number)
    output, _ = process.communicate(timeout=LIMIT)
    assert f"ended by {number.name}" in output
    assert process.returncode == 128 + number
    assert run.labs() == [[*TESTS_RUN, "down", "gone"]] * 2
    assert run.left() == {}


def test_a_signal_ends_a_check_with_what_it_left(make_run, number):
    run = make_run("check")
    process = run.begin(run.argv)
    run.wait_for([TESTS_RUN[1:]], process)
    process.send_signal(number)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + number
    assert run.labs() == [TESTS_RUN[1:]]
    assert run.left() == {}


def test_ci_passes_a_signal_on_and_waits_for_the_cleanup(make_run, number):
    run = make_run("labs")
    run.through_make()
    process = run.begin([str(ROOT / ".ci" / "run")])
    run.wait_for([TESTS_RUN] * 2, process)
    process.send_signal(number)
    process.communicate(timeout=LIMIT)
    assert process.returncode not in (0, -number)
    assert run.labs() == [[*TESTS_RUN, "down", "gone"]] * 2
    assert run.left() == {}


def test_ci_fails_as_the_checks_do(make_run):
    run = make_run("labs")
    run.argv[1:] = ["-c", "raise SystemExit(3)"]
    run.through_make()
    process = run.begin([str(ROOT / ".ci" / "run")])
    process.communicate(timeout=LIMIT)
    assert process.returncode == 2  # make's
