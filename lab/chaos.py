# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab chaos``: a fault campaign, which ``tests/chaos`` carries out.

It drives clusters as the integration tests do, so it is with them, and is only started
from here.
"""

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import environments
from lab.settings import ROOT, SYSTEM_PYTHON, from_environment

if TYPE_CHECKING:
    from lab.manager import Lab

MODULE = "tests.chaos"
_STAMP = "%Y%m%dT%H%M%S"


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "chaos", help="operations of real clusters, with a fault in each"
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a campaign."""
    parser.add_argument(
        "--seed", type=int, default=1, help="which plan (default: %(default)s)"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=30,
        help="no new step after them (default: %(default)s)",
    )
    parser.add_argument(
        "--steps", type=int, metavar="N", help="at most so many, whatever they take"
    )
    parser.add_argument(
        "--clusters",
        default="v1,v2",
        help="side by side, of v1, v2, v1-plain, v2-plain, which have no load balancer"
        " (default: %(default)s)",
    )
    parser.add_argument(
        "--faults", default="", help="only these, by their names, with commas"
    )
    parser.add_argument(
        "--plan", action="store_true", help="only print what it would do"
    )
    parser.add_argument(
        "--real",
        action="store_true",
        help="in the laboratory with the real kubespray, or its plan"
        " (default: by the laboratory that is up)",
    )
    parser.add_argument(
        "--replay", type=Path, metavar="RECORD", help="do what a record says was done"
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        default=Path(f"chaos-{time.strftime(_STAMP)}.jsonl"),
        help="JSON lines; the page is beside it (default: chaos-TIME.jsonl)",
    )


def words(args: argparse.Namespace) -> list[str]:
    """The same on the command line of :data:`MODULE`."""
    given = ["--seed", str(args.seed), "--minutes", str(args.minutes)]
    given += ["--clusters", args.clusters, "--record", str(args.record)]
    if args.steps:
        given += ["--steps", str(args.steps)]
    if args.faults:
        given += ["--faults", args.faults]
    if args.replay:
        given += ["--replay", str(args.replay)]
    given += ["--real"] if args.real else []
    return [*given, *(["--plan"] if args.plan else [])]


def run(lab: "Lab", args: argparse.Namespace) -> None:
    """Start the lab and become the campaign in it; a plan needs no lab."""
    settings = from_environment(args.state, args.cache)
    path = ["env", f"PYTHONPATH={ROOT}", "PYTHONDONTWRITEBYTECODE=1"]
    if args.plan:
        path.append(f"LAB_STATE={settings.state}")
        os.execvp("env", [*path, SYSTEM_PYTHON, "-m", MODULE, *words(args)])  # noqa: S606
    lab.up()
    python = environments.program(settings, "tacker", "python")
    lab.execute([*path, str(python), "-m", MODULE, *words(args)])
