"""``tacker-k8s-mgmt``: what an operator does outside of Tacker.

Every group of commands is a module of this package with ``add_parser(subparsers)``,
which sets ``function`` (arguments in, exit code out) for each of its verbs, and is
listed in :data:`GROUPS`. Exit codes: 0 all is well, 1 problems were found, 2 the
command line is wrong.
"""

import argparse
import sys
from collections.abc import Sequence

from tacker_k8s_mgmt.cli import csar, runs
from tacker_k8s_mgmt.errors import K8sMgmtError

GROUPS = (csar, runs)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="tacker-k8s-mgmt",
        description="Kubernetes cluster VNFs with Tacker and kubespray.",
    )
    subparsers = top.add_subparsers(dest="group", required=True, metavar="GROUP")
    for group in GROUPS:
        group.add_parser(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    :param argv: arguments without the program's name; default: those of the process.
    :returns: the exit code.
    """
    args = parser().parse_args(argv)
    try:
        return int(args.function(args))
    except (K8sMgmtError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
