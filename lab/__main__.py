# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab``: start the lab, look at it, use it, take it away."""

import argparse
import os
import signal
import sys
from pathlib import Path

from lab import LabError, chaos, demo, pins, settings
from lab.artifacts import cli as artifacts
from lab.cloud import cli as hosts
from lab.manager import Lab
from lab.report import Report
from lab.settings import CACHE, STATE, Settings, from_environment


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python3 -m lab",
        description="A laboratory with a real Tacker and everything around it.",
    )
    top.add_argument("--state", help=f"directory of this lab ($LAB_STATE, {STATE})")
    top.add_argument("--cache", help=f"what labs share ($LAB_CACHE, {CACHE})")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    install = verbs.add_parser("install", help="install what is missing")
    what = install.add_mutually_exclusive_group()
    what.add_argument("--with-tests", action="store_true", help="test tools as well")
    what.add_argument("--docs", action="store_true", help="only what builds the docs")
    install.set_defaults(run=_install)
    databases = verbs.add_parser("databases", help="make what every new lab copies")
    databases.set_defaults(run=lambda lab, args: lab.make_databases())
    _add_up(verbs)
    status = verbs.add_parser("status", help="what runs, and what it takes")
    status.set_defaults(run=lambda lab, args: lab.status())
    down = verbs.add_parser("down", help="stop and remove the lab")
    down.add_argument(
        "--keep",
        action="store_true",
        help="keep what the services stored; hosts are switched off for good",
    )
    down.set_defaults(run=lambda lab, args: lab.down(keep=args.keep))
    _add_looking(verbs)
    hosts.add_parser(verbs)
    demo.add_parser(verbs)
    chaos.add_parser(verbs)
    artifacts.add_parser(verbs)
    _add_pins(verbs)
    return top


def _add_up(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    up = verbs.add_parser("up", help="install and start what is missing")
    up.add_argument(
        "--real",
        action="store_true",
        help="VMs boot systemd, for the real containerd, kubelet and etcd",
    )
    up.add_argument(
        "--memory",
        type=settings.bytes_of,
        metavar="SIZE",
        help="limit of such a VM (default: 3G)",
    )
    artifacts.add_kubespray(up)
    up.set_defaults(run=_up)


def _install(lab: Lab, args: argparse.Namespace) -> None:
    if args.docs:
        lab.install_docs()
    else:
        lab.install(with_tests=args.with_tests)


def _up(lab: Lab, args: argparse.Namespace) -> None:
    lab.up(real=args.real, memory=args.memory, kubespray=artifacts.wanted(args))


def _add_looking(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    logs = verbs.add_parser("logs", help="what the services say")
    logs.add_argument("service", nargs="?")
    logs.add_argument("-f", "--follow", action="store_true")
    logs.set_defaults(run=lambda lab, args: lab.logs(args.service, follow=args.follow))
    for verb, text in (("stop", "stop services"), ("restart", "and start them again")):
        ending = verbs.add_parser(verb, help=text)
        ending.add_argument("services", nargs="+")
        ending.add_argument("--kill", action="store_true", help="give them no time")
        ending.set_defaults(
            run=lambda lab, args: lab.end(args.verb, args.services, kill=args.kill)
        )
    execute = verbs.add_parser("exec", help="run a command inside the lab")
    execute.add_argument("argv", nargs="+", metavar="-- COMMAND")
    execute.set_defaults(run=lambda lab, args: lab.execute(args.argv))
    shell = verbs.add_parser("shell", help="a shell inside the lab")
    shell.set_defaults(
        run=lambda lab, args: lab.execute([os.environ.get("SHELL", "/bin/bash")])
    )


def _add_pins(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    renew = verbs.add_parser("pins", help="choose the environments' versions again")
    renew.add_argument("names", nargs="*", choices=[*pins.NAMES, []], metavar="NAME")
    renew.add_argument(
        "--upper-constraints", type=Path, help="OpenStack's whole list", metavar="FILE"
    )
    renew.set_defaults(
        run=lambda lab, args: lab.renew_pins(args.names, args.upper_constraints)
    )


def settings_of(args: argparse.Namespace) -> Settings:
    """Which lab a command is about."""
    return from_environment(args.state, args.cache)


def main() -> int:
    """Run one command; the exit code."""
    args = parser().parse_args()
    try:
        return args.run(Lab(settings_of(args), Report()), args) or 0
    except LabError as error:
        print(error, file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    # A plain end for `| head`, as other commands have it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
