"""``tacker-k8s-mgmt``: the operator's commands outside of Tacker.

Every group of commands is a module of ``commands``, listed in :data:`GROUPS`, with its
``NAME``, the ``EXAMPLES`` of each of its verbs, and ``add_parser(subparsers)``, which
sets ``function`` (arguments in, exit code out) for each of them. A command imports only
its own group: all of them take half a second.
"""

import argparse
import importlib
import importlib.metadata
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.errors import K8sMgmtError

GROUPS = ("csar", "params", "inventory", "preflight", "cluster", "runs")
_INTERRUPTED = 130
_BROKEN_PIPE = 141


def groups(arguments: Sequence[str] = ()) -> list[Any]:
    """The modules of the groups; with a command's arguments, only its own."""
    names = arguments[:1] if arguments and arguments[0] in GROUPS else GROUPS
    return [importlib.import_module(f"{__name__}.commands.{name}") for name in names]


def parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The whole command line, or the part that a command's words need."""
    top = argparse.ArgumentParser(
        prog=common.PROGRAM,
        description="Kubernetes cluster VNFs with Tacker and kubespray.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    subparsers = top.add_subparsers(metavar="GROUP", title="groups of commands")
    for group in groups(arguments):
        group.add_parser(subparsers)
    return top


_EPILOG = """examples:
  tacker-k8s-mgmt csar build simple -o simple.zip
  tacker-k8s-mgmt runs follow
  tacker-k8s-mgmt csar check --help
"""


def _version() -> str:
    try:
        return importlib.metadata.version("tacker-k8s-mgmt")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    :param argv: arguments without the program's name; default: those of the process.
    :returns: the exit code.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        print(end="", flush=True)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe; Python would flush into it again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return code


def _run(arguments: Sequence[str]) -> int:
    top = parser(arguments)
    known = {group.NAME: tuple(group.EXAMPLES) for group in groups(arguments)}
    try:
        if text := common.unknown(arguments, known):
            raise common.UsageError(text)
        args = top.parse_args(arguments)
        if not hasattr(args, "function"):
            top.print_help(sys.stderr)
            return common.USAGE
        return int(args.function(args))
    except common.UsageError as error:
        common.complain(str(error))
        return common.USAGE
    except BrokenPipeError:
        raise
    except (K8sMgmtError, OSError) as error:
        common.complain(str(error))
        return common.PROBLEMS
