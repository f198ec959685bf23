# SPDX-License-Identifier: Apache-2.0
"""The integration tests in laboratories of their own, several side by side.

The tests wait much of their time, so several labs take less than one after the other. A
file of tests is what a lab is given at a time: its tests share clusters.
"""

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from tests.children import Children

ROOT = Path(__file__).resolve().parent.parent
FILES = ROOT / "tests" / "integration"
STATE = "/var/lib/tacker-k8s-lab-test"
MOST = 5
MEMORY_OF_ONE = 3 * 2**30
#: They begin first, so that no lab is the only one that works in the end.
LONGEST = (
    "test_v2_upgrade.py",
    "test_v2_failures.py",
    "test_v2_life.py",
    "test_usable.py",
    "test_healing.py",
    "test_chaos.py",
    "test_ha.py",
    "test_scaling.py",
    "test_failures.py",
    "test_connectivity.py",
    "test_applications.py",
    "test_cluster_life.py",
    "test_profiles.py",
    "test_operator_server.py",
    "test_two_conductors.py",
)


def labs() -> int:
    """How many labs this machine runs side by side."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    processors = len(os.sched_getaffinity(0))
    return max(1, min(MOST, processors + 3, memory // MEMORY_OF_ONE))


def files() -> list[Path]:
    """The files of tests, in the order of their start."""
    found = {path.name: path for path in sorted(FILES.glob("test_*.py"))}
    return [found.pop(name) for name in LONGEST] + list(found.values())


def run(
    processes: Children, python: str, count: int, wanted: Iterable[Path]
) -> list[str]:
    """Run these files of tests in so many labs; the names of those that failed.

    No lab is left, whatever ends this.

    :param processes: what starts the programs.
    :param python: the interpreter of the Tacker environment.
    """
    waiting: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in wanted:
        waiting.put(path)
    failed: list[Path] = []

    def use(number: int) -> None:
        try:
            is_up = not processes.run([*_command(number), "up"], cwd=ROOT)[0]
        finally:
            prepared.set()
        if is_up:
            _work(processes, python, number, waiting, failed)

    # The first lab makes what all of them share, such as databases with their tables.
    prepared = threading.Event()
    threads = [threading.Thread(target=use, args=(one + 1,)) for one in range(count)]
    # Those of a run that was killed have networks and VMs in them.
    left = (n for n in range(1, count + 1) if Path(f"{STATE}-{n}").exists())
    _end(left)
    try:
        for thread in threads:
            thread.start()
            prepared.wait()
        for thread in threads:
            thread.join()
        _end(range(1, count + 1))
    except BaseException:
        processes.stop()
        _end(range(1, count + 1))
        raise
    while not waiting.empty():
        # No lab came up for them.
        failed.append(waiting.get())
    return sorted(path.name for path in failed)


def _work(
    processes: Children,
    python: str,
    number: int,
    waiting: "queue.SimpleQueue[Path]",
    failed: list[Path],
) -> None:
    """Run one file after the other in one lab."""
    while not processes.stopped:
        try:
            path = waiting.get_nowait()
        except queue.Empty:
            return
        if not _tested(processes, python, number, path):
            failed.append(path)


def _tested(processes: Children, python: str, number: int, path: Path) -> bool:
    """Run the tests of a file; whether all of them passed."""
    _say(f"lab {number}: {path.name} ...")
    began = time.monotonic()
    words = ["exec", "--", python, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    # Half of the start of pytest is Hypothesis, which nothing here uses.
    words += ["-p", "no:hypothesispytest", "-p", "no:xdist"]
    words += ["--durations=0", "--durations-min=5"]
    code, output = processes.run(
        [*_command(number), *words, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    how = "FAILED" if code else "passed"
    seconds = time.monotonic() - began
    _say(f"{output}lab {number}: {path.name} {how}, {seconds:.1f} s")
    return code == 0


def _end(numbers: Iterable[int]) -> None:
    """Take labs away."""
    for number in numbers:
        argv = [*_command(number), "down"]
        subprocess.run(argv, cwd=ROOT, start_new_session=True, check=False)


def _command(number: int) -> list[str]:
    state = f"{STATE}-{number}"
    return [sys.executable, "-m", "lab", "--state", state]


def _say(text: str) -> None:
    # One call, so that the blocks of two labs do not mix.
    print(f"    {text}\n", end="", flush=True)
