# SPDX-License-Identifier: Apache-2.0
"""``make test-real``: the scenarios, each in its turn, and a report of them.

A scenario is a file of tests. What has passed with a release of kubespray is not run
again, so a run that was stopped continues where it was; ``--again`` starts again.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lab import environments
from lab.artifacts import releases
from lab.settings import ROOT, Settings, from_environment
from tests import children
from tests.real.report import Report

STATE = "/var/lib/tacker-k8s-lab-real-test"
#: Environment variable with the requests' ``ansible.strategy``.
STRATEGY = "TEST_REAL_STRATEGY"
#: In this order: the life of a cluster says most.
SCENARIOS = ("v1_life", "v2_life", "platform", "upgrade", "ha", "faults", "usable")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python3 -m tests.real", description=__doc__)
    top.add_argument(
        "--kubespray",
        default=releases.DEFAULT,
        help="checkout, REPOSITORY@REFERENCE or release (default: %(default)s)",
    )
    sources = top.add_mutually_exclusive_group()
    sources.add_argument("--mirror", help="directory of files and images")
    sources.add_argument("--artifacts", help="where they come from: internet or build")
    top.add_argument(
        "--also",
        help="release whose Kubernetes an upgrade starts from (default:"
        f" {releases.FORMER}; with a mirror none)",
    )
    top.add_argument(
        "--strategy", help="ansible.strategy of the requests (default: none is given)"
    )
    top.add_argument("--again", action="store_true", help="run what has passed, too")
    top.add_argument("--keep", action="store_true", help="leave the laboratory")
    top.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []])
    return top


def main() -> int:
    """Run the scenarios; the exit code."""
    args = parser().parse_args()
    settings = from_environment(state=STATE)
    processes = children.Children()
    try:
        children.stop_on_signals()
        return everything(args, settings, processes)
    except children.Stopped as stopped:
        processes.stop()
        return 128 + stopped.number


def everything(
    args: argparse.Namespace, settings: Settings, processes: children.Children
) -> int:
    """Start the laboratory, run what is wanted in it, take it away."""
    lab = [sys.executable, "-m", "lab", "--state", str(settings.state)]
    also = args.also or (None if args.mirror else releases.FORMER)
    options = ["--kubespray", args.kubespray]
    options += ["--also", also] if also else []
    options += ["--mirror", args.mirror] if args.mirror else []
    options += ["--artifacts", args.artifacts] if args.artifacts else []
    if processes.run([*lab, "up", *options], cwd=ROOT)[0]:
        return 1
    try:
        return run(args, settings, lab, processes)
    finally:
        if not args.keep:
            processes.run([*lab, "down"], cwd=ROOT)


def run(
    args: argparse.Namespace,
    settings: Settings,
    lab: Sequence[str],
    processes: children.Children,
) -> int:
    """Run scenarios and report each as soon as it has ended."""
    report = Report.of(settings)
    python = str(environments.program(settings, environments.TACKER, "python"))
    strategy = args.strategy or ""
    titles = {
        name: f"{name}{strategy and f', {strategy}'}"
        for name in args.scenarios or SCENARIOS
    }
    for name, title in titles.items():
        if report.has_passed(title) and not args.again:
            print(f"==> {title}: passed before", flush=True)
            continue
        print(f"==> {title}", flush=True)
        began = time.time()
        result = settings.state / f"{name}.xml"
        result.unlink(missing_ok=True)
        words = ["-m", "pytest", "-v", "-p", "no:cacheprovider"]
        words += [f"--junitxml={result}", str(Path("tests/real", f"test_{name}.py"))]
        ended, _ = processes.run(
            [*lab, "exec", "--", python, *words],
            cwd=ROOT,
            env={**os.environ, STRATEGY: strategy},
        )
        report.add(title, began, result, ended == 0)
        if processes.stopped:
            break
    print(report.text())
    print(f"The report: {report.path}")
    return 0 if all(map(report.has_passed, titles.values())) else 1


if __name__ == "__main__":
    sys.exit(main())
