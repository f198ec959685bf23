# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab.services``: called by the lab's outside, inside its namespaces."""

import argparse
import sys

from lab import LabError
from lab.report import Report
from lab.services.control import Control
from lab.settings import from_environment


def main() -> int:
    """Run one verb; the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m lab.services")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("is-up", "up", "status", "create-databases"):
        verbs.add_parser(name)
    for name, count in (("stop", "*"), ("restart", "+")):
        verb = verbs.add_parser(name)
        verb.add_argument("--kill", action="store_true")
        verb.add_argument("services", nargs=count)
    args = parser.parse_args()
    control = Control(from_environment(), Report())
    try:
        match args.verb:
            case "is-up":
                return 0 if control.is_up() else 1
            case "up":
                control.up()
            case "stop":
                control.stop(args.services, kill=args.kill)
            case "status":
                return 0 if control.status() else 1
            case "create-databases":
                control.create_databases()
            case "restart":
                control.restart(args.services, kill=args.kill)
    except LabError as error:
        print(error, file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
