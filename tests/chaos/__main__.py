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
from tests.chaos import catalogue, plan, record


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


def _steps(args: argparse.Namespace) -> tuple[list[str], Any]:
    """The clusters, and the plan or the replayed one."""
    if args.replay:
        events = record.read(args.replay)
        return record.clusters(events), list(record.steps(events))
    clusters = _names(args.clusters, plan.CLUSTERS, "cluster")
    faults = _names(args.faults, catalogue.FAULTS, "fault")
    steps = plan.endless(args.seed, clusters, faults)
    return clusters, islice(steps, args.steps) if args.steps else steps


def main() -> int:
    """Plan, or carry out; 1 if something did not hold."""
    args = parser().parse_args()
    clusters, steps = _steps(args)
    if args.plan:
        count = args.steps or max(1, round(args.minutes * 60 / plan.USUAL))
        print("\n".join(plan.lines(list(islice(steps, count)))))
        return 0
    # They need the laboratory.
    from tests.chaos import running

    # So that a campaign that is ended leaves the lab as it was.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return running.run(args.record, args.seed, clusters, steps, args.minutes)


if __name__ == "__main__":
    sys.exit(main())
