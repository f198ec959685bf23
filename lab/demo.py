# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab demo``: the lab, and in it the journey of lab/demo_script.py."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from lab import environments
from lab.artifacts import cli as artifacts
from lab.artifacts import releases
from lab.settings import from_environment

if TYPE_CHECKING:
    from lab.manager import Lab


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "demo", help="instantiate a Kubernetes cluster VNF and show it"
    )
    parser.add_argument(
        "--real",
        action="store_true",
        help=f"with the real kubespray, {releases.DEFAULT} if none is given",
    )
    parser.add_argument(
        "--api",
        choices=("v1", "v2"),
        default="v2",
        help="of Tacker's, for the VNF (default: %(default)s)",
    )
    artifacts.add_kubespray(parser)
    parser.set_defaults(run=run)


def run(lab: "Lab", args: argparse.Namespace) -> None:
    """Start the lab and become the demo's script in it."""
    began = time.time()
    if args.real and not args.kubespray:
        args.kubespray = releases.DEFAULT
    lab.up(kubespray=artifacts.wanted(args))
    settings = from_environment(args.state, args.cache)
    python = environments.program(settings, "tacker", "python")
    command = "python3 -m lab" + (f" --state {args.state}" if args.state else "")
    lab.execute([str(python), "-m", "lab.demo_script", command, args.api, str(began)])
