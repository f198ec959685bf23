"""``python3 -m lab demo``: the lab, and in it the journey of lab/tour.py."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from lab import environments
from lab.settings import from_environment

if TYPE_CHECKING:
    from lab.control import Lab


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "demo", help="instantiate a Kubernetes cluster VNF and show it"
    )
    parser.set_defaults(run=run)


def run(lab: "Lab", args: argparse.Namespace) -> None:
    """Start the lab and become the tour in it."""
    began = time.time()
    lab.up()
    settings = from_environment(args.state, args.cache)
    python = environments.program(settings, "tacker", "python")
    words = "python3 -m lab" + (f" --state {args.state}" if args.state else "")
    lab.execute([str(python), "-m", "lab.tour", words, str(began)])
