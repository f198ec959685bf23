# SPDX-License-Identifier: Apache-2.0
"""``make test``: set up, run every check, print one summary.

Runs on the system's Python with the standard library only, because it is what builds
the environment that the checks run in. Where it may not become root it leaves out what
needs the lab and reports that.
"""

import argparse
import contextlib
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab import environments
from lab.settings import Settings, from_environment
from tests import children, laboratories, tree
from tests.documents import browser
from tests.tree import ROOT

SOURCES = (
    *("tacker_k8s_mgmt", "lab", "benchmarks", "tests", "samples", "doc"),
    "setup.py",
)
LEFT_OUT = "left out: needs root"
DATABASES = "databases of the lab"
LOWEST, LOWEST_CONTRACT = "lowest versions", "lowest, with Tacker"
#: What ``make test-quick`` leaves to ``make test``, besides the laboratories.
NOT_QUICK = (DATABASES, LOWEST, LOWEST_CONTRACT)
#: What runs with the lowest versions, too: tests of the code that calls the packages
#: which pyproject.toml bounds. The operations and the other contract
#: tests come to the same calls in more ways; the rest of the tests makes none. What is
#: ignored tests scripts, Ansible, kubectl and Helm through the same few calls of
#: paramiko, the models of pydantic with values of which there is no end, the command
#: line on full disks and closed streams, or a reader of our own.
VERSIONED = (
    *("tests/unit/tools/cli", "tests/unit/hooks", "tests/unit/remote"),
    *("tests/unit/tools/csar", "tests/unit/metrics"),
    *("tests/unit/status", "tests/unit/topology", "tests/unit/kubespray"),
    *("tests/unit/request", "tests/unit/model"),
    "--ignore=tests/unit/tools/cli/test_openstack.py",
    "--ignore=tests/unit/tools/cli/test_surroundings.py",
    "--ignore=tests/unit/request/test_params_properties.py",
    "--ignore=tests/unit/request/test_inert_texts.py",
    "--ignore=tests/unit/model/test_json_text.py",
    "--ignore=tests/unit/remote/test_application_faults.py",
    "--ignore=tests/unit/remote/test_applications.py",
    "--ignore=tests/unit/remote/kubernetes/test_rows.py",
    "--ignore=tests/unit/remote/kubernetes/test_tenants.py",
    "--ignore=tests/unit/remote/kubernetes/test_manifests.py",
    "--ignore=tests/unit/remote/kubernetes/test_person_access.py",
    "--ignore=tests/unit/remote/kubernetes/test_pod_network.py",
    "--ignore=tests/unit/remote/kubernetes/test_services.py",
    "--ignore=tests/unit/remote/kubernetes/test_node_settings.py",
    "--ignore=tests/unit/remote/kubernetes/test_drain.py",
    "--ignore=tests/unit/remote/kubernetes/test_node_cleanup.py",
    "--ignore=tests/unit/remote/ansible/test_events_plugin.py",
    "--ignore=tests/unit/remote/kubernetes/test_cluster.py",
    "--ignore=tests/unit/remote/ansible/test_runner.py",
    "--ignore=tests/unit/remote/ansible/test_work_directory.py",
    "--ignore=tests/unit/remote/ansible/test_run_with_ansible.py",
    "--ignore=tests/unit/remote/ansible/test_k8s_linear.py",
    "--ignore=tests/unit/remote/ansible/test_resolve.py",
    "--ignore=tests/unit/remote/ansible/test_strategies.py",
    "--ignore=tests/unit/remote/ssh/test_connector.py",
)

#: Apart from these, for they have Tacker's patches of eventlet in the whole process.
VERSIONED_CONTRACT = (
    "tests/contract/test_package.py",
    *("tests/contract/test_v1_life.py", "tests/contract/test_v2_life.py"),
)

#: A quick test that hangs is ended and named, and the others continue. The slowest take
#: seconds, so a loaded machine does not come near it.
STUCK = (
    *("-o", "faulthandler_timeout=900"),
    *("-o", "faulthandler_exit_on_timeout=true"),
)


@dataclass
class Check:
    """One line of the summary.

    :ivar shown: its output is shown as it comes, not only when it fails.
    """

    name: str
    argv: Sequence[str]
    shown: bool = False
    env: dict[str, str] = field(default_factory=dict)
    outcome: str = "not run"
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether it passed; what was left out on purpose has passed."""
        return self.outcome in ("passed", LEFT_OUT)

    def run(self, processes: children.Children) -> None:
        """Run it and print its outcome."""
        _say(f"==> {self.name}")
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as captured:
            output = None if self.shown else captured
            code, _ = processes.run(
                self.argv,
                cwd=ROOT,
                env={**os.environ, **self.env},
                stdout=output,
                stderr=output,
            )
            captured.seek(0)
            why = captured.read() if code else ""
        self.seconds = time.monotonic() - began
        self.outcome = "FAILED" if code else "passed"
        _say(f"{why}    {self.name}: {self.outcome}, {self.seconds:.1f} s")


def run_all(checks: Sequence[Check], processes: children.Children) -> None:
    """Run checks: first those that are quiet, side by side, then each of the others."""
    waiting: queue.SimpleQueue[Check] = queue.SimpleQueue()
    for check in checks:
        if not check.shown:
            waiting.put(check)

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while not processes.stopped:
                waiting.get_nowait().run(processes)

    threads = [threading.Thread(target=work) for _ in os.sched_getaffinity(0)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for check in checks:
            if check.shown:
                check.run(processes)
    except BaseException:
        # Nothing uses what the caller now throws away.
        processes.stop()
        raise


def _say(text: str) -> None:
    # One call, so that the lines of two checks do not mix.
    print(f"{text}\n", end="", flush=True)


def scripts() -> list[str]:
    """Every shell script of the project."""
    return [name for name in tree.files(ROOT) if is_shell(ROOT / name)]


def is_shell(path: Path) -> bool:
    """Whether the file is a program for a shell."""
    with path.open("rb") as file:
        first = file.readline(80).rstrip()
    return first.startswith(b"#!") and first.endswith((b"bash", b"/sh"))


def byte_code(scratch: str) -> dict[str, str]:
    """Variables that have each module compiled once, not by each of many processes.

    Not into another user's tree, see lab/__init__.py; a place that is not the tree has
    no byte code of environments either, at first.
    """
    ours = ROOT.stat().st_uid == os.geteuid()
    place = "" if ours else f"{scratch}/bytecode"
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": place}


def variables(settings: Settings, scratch: str, name: str) -> dict[str, str]:
    """What a check runs with in an environment.

    :param scratch: see :func:`quick_checks`.
    """
    programs = environments.path(settings, name) / "bin"
    ansible = environments.path(settings, "ansible") / "bin"
    path = os.pathsep.join([str(programs), os.environ["PATH"], str(ansible)])
    return {
        "PATH": f"{path}{os.pathsep}/usr/sbin{os.pathsep}{settings.programs}",
        **byte_code(scratch),
    }


def lint_checks(env: dict[str, str]) -> list[Check]:
    """What ``make lint`` runs, and the hook of pre-commit."""
    return [
        Check("ruff check", ("ruff", "check", "--no-cache", *SOURCES), env=env),
        Check(
            "ruff format",
            ("ruff", "format", "--no-cache", "--check", *SOURCES),
            env=env,
        ),
        Check("mypy", ("mypy", "--cache-dir=/dev/null"), env=env),
        Check("import-linter", ("lint-imports", "--no-cache"), env=env),
        Check("shellcheck", ("shellcheck", *scripts()), env=env),
    ]


def docs_check(settings: Settings, scratch: str, target: str, *options: str) -> Check:
    """The documentation, in an environment of its own; warnings are errors.

    Where there is no browser, its pages are not looked at, which a note says.

    :param target: the directory that gets the pages.
    :param options: more for the program that builds and looks.
    """
    argv = ("python", "-m", "tests.documents.rendered", target, *options)
    check = Check("docs", argv, env=variables(settings, scratch, environments.DOCS))
    if not browser.is_installed():
        check.notes.append(f"pages not looked at: needs {browser.PROGRAM}")
    return check


def quick_checks(settings: Settings, scratch: str) -> list[Check]:
    """Lint, documentation, unit and contract tests.

    :param scratch: a directory that is thrown away.
    """
    env = variables(settings, scratch, environments.TACKER)
    lowest = variables(settings, scratch, environments.LOWEST)
    # Some of their time is spent waiting for something.
    parallel = ("-n", "3", "--dist", "worksteal")
    options = ("-q", "-p", "no:cacheprovider", *parallel, *STUCK)
    pytest = ("python", "-m", "pytest", *options)
    # The first lab would make them, and all others would wait for it.
    databases = Check(DATABASES, (sys.executable, "-m", "lab", "databases"))
    return [
        *([databases] if os.geteuid() == 0 else []),
        *lint_checks(env),
        docs_check(settings, scratch, f"{scratch}/docs"),
        Check("unit tests", (*pytest, "tests/unit"), shown=True, env=env),
        Check("contract tests", (*pytest, "tests/contract"), shown=True, env=env),
        Check(LOWEST, (*pytest, *VERSIONED), shown=True, env=lowest),
        Check(
            LOWEST_CONTRACT,
            (*pytest, *VERSIONED_CONTRACT),
            shown=True,
            env=lowest,
        ),
    ]


def in_labs(settings: Settings, processes: children.Children) -> Check:
    """Run the tests that need the lab."""
    check = Check("integration tests", ())
    if os.geteuid() != 0:
        check.outcome = LEFT_OUT
        return check
    count = laboratories.labs()
    print(f"==> {check.name}, in {count} lab(s) at once", flush=True)
    began = time.monotonic()
    python = str(environments.program(settings, "tacker", "python"))
    failed = laboratories.run(processes, python, count, laboratories.files())
    check.seconds = time.monotonic() - began
    check.outcome = "FAILED" if failed else "passed"
    check.notes = [f"failed: {name}" for name in failed]
    return check


def summary(checks: Sequence[Check]) -> int:
    """Print the summary; the exit code of the whole run."""
    print("\nsummary")
    for check in checks:
        print(f"  {check.name:<20} {check.outcome:<24} {check.seconds:>7.1f} s")
        for note in check.notes:
            print(f"    {note}")
    if any(check.outcome == LEFT_OUT for check in checks):
        print("  The lab's tests need root: `sudo make test` runs all of them.")
    failed = [check.name for check in checks if not check.ok]
    print(f"  FAILED: {', '.join(failed)}" if failed else "  all passed")
    return 1 if failed else 0


def install(*options: str) -> Check:
    """Have the lab install what checks run in."""
    argv = (sys.executable, "-m", "lab", "install", *options)
    return Check("install", argv, shown=True)


def everything(processes: children.Children) -> int:
    """Set up and run every check; the exit code."""
    installed = install("--with-tests")
    installed.run(processes)
    if not installed.ok:
        return summary([installed])
    settings = from_environment()
    with tempfile.TemporaryDirectory() as scratch:
        checks = quick_checks(settings, scratch)
        run_all(checks, processes)
    return summary([installed, *checks, in_labs(settings, processes)])


def lint(processes: children.Children) -> int:
    """Set up and run the linters alone; the exit code."""

    def checks(settings: Settings, scratch: str) -> list[Check]:
        return lint_checks(variables(settings, scratch, environments.TACKER))

    return some(processes, checks)


def quick(processes: children.Children) -> int:
    """Set up and run what needs neither a laboratory nor other versions."""

    def checks(settings: Settings, scratch: str) -> list[Check]:
        every = quick_checks(settings, scratch)
        return [one for one in every if one.name not in NOT_QUICK]

    return some(processes, checks)


def some(
    processes: children.Children, make: Callable[[Settings, str], list[Check]]
) -> int:
    """Set up and run some checks; the exit code.

    :param make: the checks, from settings and a scratch directory.
    """
    installed = install("--with-tests")
    installed.run(processes)
    if not installed.ok:
        return summary([installed])
    with tempfile.TemporaryDirectory() as scratch:
        checks = make(from_environment(), scratch)
        run_all(checks, processes)
    return summary(checks)


def docs(processes: children.Children) -> int:
    """Set up what builds the documentation, and build it; the exit code."""
    target = ROOT / "doc" / "build" / "html"
    shots = target.parent / "screenshots"

    def check(settings: Settings, scratch: str) -> Check:
        options = ("--screenshots", str(shots))
        made = docs_check(settings, scratch, str(target), *options)
        if browser.is_installed():
            made.notes.append(f"screenshots: {shots}")
        return made

    return documents(processes, check, target / "index.html")


def changelog(processes: children.Children) -> int:
    """Write the release notes of all versions into one file; the exit code."""
    target = ROOT / "CHANGELOG.rst"
    argv = ("reno", "report", "--output", str(target), str(ROOT))

    def check(settings: Settings, scratch: str) -> Check:
        env = variables(settings, scratch, environments.DOCS)
        return Check("changelog", argv, env=env)

    return documents(processes, check, target)


def documents(
    processes: children.Children, make: Callable[[Settings, str], Check], target: Path
) -> int:
    """Set up what builds the documentation, and use it; the exit code.

    :param make: the check that makes *target*, from settings and a scratch directory.
    """
    installed = install("--docs")
    installed.run(processes)
    if not installed.ok:
        return summary([installed])
    with tempfile.TemporaryDirectory() as scratch:
        check = make(from_environment(), scratch)
        check.run(processes)
    for note in check.notes:
        _say(f"    {note}")
    if check.ok:
        _say(str(target))
    return 0 if check.ok else 1


JOBS = {
    "all": everything,
    "quick": quick,
    "lint": lint,
    "docs": docs,
    "changelog": changelog,
}


def main() -> int:
    """Run everything, or what is named; the exit code, as of a shell at a signal."""
    parser = argparse.ArgumentParser(prog="python3 -m tests")
    parser.add_argument("job", nargs="?", choices=JOBS, default="all")
    job = JOBS[parser.parse_args().job]
    processes = children.Children()
    try:
        children.stop_on_signals()
        return job(processes)
    except children.Stopped as stopped:
        processes.stop()
        children.kill_descendants()
        print(f"{stopped}: the checks and their laboratories are gone", flush=True)
        return 128 + stopped.number


if __name__ == "__main__":
    sys.exit(main())
