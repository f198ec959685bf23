# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab host``: look at the lab's hosts, and harm them.

The verbs are those of ``python3 -m lab.cloud``, which this runs inside the lab.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab import releases
from lab.settings import ROOT, SYSTEM_PYTHON

if TYPE_CHECKING:
    from lab.manager import Lab


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser("host", help="list, cut, kill or enter a host")
    verbs = parser.add_subparsers(dest="host_verb", required=True, metavar="VERB")
    add_verbs(verbs)
    parser.set_defaults(run=run)


def add_verbs(verbs: Any) -> None:
    """Add what people do with hosts."""
    listing = verbs.add_parser("list", help="show every host")
    listing.add_argument("--json", action="store_true", help="for programs")
    one = "name, address or beginning of the id"
    for verb, text in (
        ("cut", "pull the network cables of a host"),
        ("restore", "plug them in again"),
        ("kill", "switch a host off; its files are lost"),
        ("delete-server", "delete it as Nova does, behind Heat: ports are unbound"),
    ):
        verbs.add_parser(verb, help=text).add_argument("host", help=one)
    more = verbs.add_parser("add-address", help="give the port of a host another one")
    more.add_argument("host", help=one)
    more.add_argument("address", help="in the subnet of one of its ports")
    acting = verbs.add_parser(
        "kubespray", help="have the stand-in for kubespray act as a release"
    )
    acting.add_argument("release", choices=releases.RELEASES)
    for verb, text in (
        ("refuse", "neither build nor delete the VMs of these names"),
        ("admit", "do so again"),
    ):
        refusing = verbs.add_parser(verb, help=text)
        refusing.add_argument("host", metavar="pattern", help="such as '*externalLB*'")
    console = verbs.add_parser("exec", help="run a command as root on a host's console")
    console.add_argument("host", help=one)
    console.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND")


def command_of(argv: Sequence[str]) -> list[str]:
    """The command to run on a console: without its separator; a shell when empty."""
    return list(argv[argv[:1] == ["--"] :]) or ["bash"]


def run(lab: "Lab", args: argparse.Namespace) -> None:
    """Become the same verb inside the lab."""
    arguments = [args.host_verb]
    if args.host_verb == "list":
        arguments += ["--json"] if args.json else []
    else:
        kubespray = args.host_verb == "kubespray"
        arguments.append(args.release if kubespray else args.host)
    if args.host_verb == "add-address":
        arguments.append(args.address)
    if args.host_verb == "exec":
        arguments += ["--", *command_of(args.argv)]
    python = ["env", f"PYTHONPATH={ROOT}", SYSTEM_PYTHON]
    lab.execute([*python, "-m", "lab.cloud", *arguments])
