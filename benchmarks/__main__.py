# SPDX-License-Identifier: Apache-2.0
"""``python3 -m benchmarks``: a lab, the measurements in it, and the lab's end.

Runs on the system's Python with the standard library only, as ``python3 -m lab`` does;
the measurements run in the Tacker environment, inside the lab's namespaces.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import environments
from lab.settings import ROOT, SYSTEM_PYTHON, from_environment

STATE = "/var/lib/tacker-k8s-lab-benchmarks"
#: Names for ``--only``, and whether they need the lab.
CASES = {"1+2": True, "1+10": True, "fakes": False}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python3 -m benchmarks",
        description="Measure operations in a laboratory and on fakes.",
    )
    top.add_argument(
        "--only",
        action="append",
        choices=tuple(CASES),
        help="control planes + workers in the lab, or the fakes; may be repeated",
    )
    top.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    top.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help="runs of each case; default: 3 of 1+2 and of the fakes, 1 of 1+10",
    )
    top.add_argument(
        "--by",
        type=int,
        action="append",
        metavar="N",
        help="workers to scale by in the lab; may be repeated, and then only the first "
        "run does more than the first of it; default: 1 and 10",
    )
    top.add_argument(
        "--patience",
        type=float,
        metavar="SECONDS",
        help="how long to wait for a busy machine to become quiet; default: 180",
    )
    top.add_argument(
        "--state",
        metavar="DIR",
        help="state directory of a lab that is up, and stays up; default: one of its "
        "own, started and taken away",
    )
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit code."""
    args = parser().parse_args(argv)
    chosen = args.only or list(CASES)
    words = [word for name in chosen for word in ("--only", name)]
    words += ["--json", str(args.json.absolute())] if args.json else []
    words += ["--runs", str(args.runs)] if args.runs else []
    words += [word for by in args.by or () for word in ("--by", str(by))]
    patient = args.patience is not None
    words += ["--patience", str(args.patience)] if patient else []
    settings = from_environment(args.state or STATE)
    python = str(environments.program(settings, "tacker", "python"))
    measure = [python, "-m", "benchmarks.measure", *words]
    if not any(CASES[name] for name in chosen):
        return _run(measure)
    lab = [SYSTEM_PYTHON, "-m", "lab", "--state", str(settings.state)]
    if args.state:
        return _run([*lab, "exec", "--", *measure])
    try:
        return _run([*lab, "up"]) or _run([*lab, "exec", "--", *measure])
    finally:
        _run([*lab, "down"])


def _run(command: Sequence[str]) -> int:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
