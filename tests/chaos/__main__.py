# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab chaos`` runs this in the laboratory, with Tacker's Python.

With ``--plan`` it needs neither.
"""

import argparse
import signal
import sys
from itertools import islice
from typing import Any

from lab import chaos
from lab.real.site import Site
from lab.settings import from_environment
from tests.chaos import catalogue, plan, record
from tests.chaos.pace import PACES


def parser() -> argparse.ArgumentParser:
    """The command line, which ``python3 -m lab chaos`` has, too."""
    top = argparse.ArgumentParser(prog="python3 -m lab chaos")
    chaos.add_arguments(top)
    return top


def _names(text: str, known: Any, what: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(
            f"No {what} {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    return names


def _lab(args: argparse.Namespace) -> str:
    """The kind of laboratory that is meant, or that is there."""
    is_real = Site.find(from_environment().state) is not None
    if args.real and not is_real and not args.plan:
        raise SystemExit("--real: the laboratory that is up has no real kubespray")
    return catalogue.REAL if args.real or is_real else catalogue.QUICK


def _steps(args: argparse.Namespace, lab: str) -> tuple[list[str], Any]:
    """The clusters, and the plan or the replayed one."""
    if args.replay:
        events = record.read(args.replay)
        return record.clusters(events), list(record.steps(events))
    clusters = _names(args.clusters, plan.CLUSTERS, "cluster")
    faults = _names(args.faults, catalogue.of_lab(lab), "fault")
    steps = plan.endless(args.seed, clusters, faults, lab)
    return clusters, islice(steps, args.steps) if args.steps else steps


def main() -> int:
    """Plan, or carry out; 1 if something did not hold."""
    args = parser().parse_args()
    lab = _lab(args)
    clusters, steps = _steps(args, lab)
    if args.plan:
        count = args.steps or max(1, round(args.minutes * 60 / PACES[lab].usual))
        print("\n".join(plan.lines(list(islice(steps, count)))))
        return 0
    # They need the laboratory.
    from tests.chaos import running

    # So that a campaign that is ended leaves the lab as it was.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return running.run(args.record, args.seed, clusters, steps, args.minutes, lab)


if __name__ == "__main__":
    sys.exit(main())
