# SPDX-License-Identifier: Apache-2.0
"""``python3 -m tests.chaos.report``: what several campaigns together say, as tables.

They are those of doc/source/reliability.rst. Steps whose fault did not come, or that
were skipped, do not count.
"""

import argparse
import csv
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from tests.chaos import record, summary
from tests.chaos.summary import Done

_OUTCOMES = ("unharmed", "recovered", "abandoned", "violated")
_TIMES = ("median", "90 %", "longest")
_ALL = "all"


def steps_of(paths: Iterable[Path]) -> list[Done]:
    """The steps of records that count."""
    return [
        step
        for path in paths
        for step in summary.of(record.read(path))
        if step.outcome in _OUTCOMES and not step.missed
    ]


def rows(
    steps: Sequence[Done], of: Callable[[Done], str], title: str
) -> Iterator[list[str]]:
    """A table with a row for each value of *of*, and one of all steps.

    Times are seconds from a fault until everything held again.
    """
    yield [title, "steps", *_OUTCOMES, *_TIMES]
    for name in sorted({of(step) for step in steps}):
        yield _row(name, [step for step in steps if of(step) == name])
    yield _row(_ALL, steps)


def _row(name: str, steps: Sequence[Done]) -> list[str]:
    outcomes = [step.outcome for step in steps]
    counts = [str(outcomes.count(one) or "") for one in _OUTCOMES]
    return [name, str(len(steps)), *counts, *times(steps)]


def times(steps: Sequence[Done]) -> list[str]:
    """Median, 90th percentile and longest, in whole seconds."""
    seconds = sorted(step.seconds for step in steps)
    if not seconds:
        return ["", "", ""]
    cuts = statistics.quantiles(seconds, n=10, method="inclusive") if steps[1:] else []
    ninth = cuts[-1] if cuts else seconds[0]
    return [f"{one:.0f}" for one in (statistics.median(seconds), ninth, seconds[-1])]


def write(steps: Sequence[Done], by: str, file: TextIO) -> None:
    """Write the table by ``fault`` or by ``operation``, as CSV."""
    of = (lambda s: s.plan.fault) if by == "fault" else (lambda s: s.plan.operation)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows(rows(steps, of, by.capitalize()))


def main() -> int:
    """Print a table of records."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.chaos.report", description="campaigns as a table, in CSV"
    )
    parser.add_argument("--by", choices=("fault", "operation"), default="fault")
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    args = parser.parse_args()
    write(steps_of(args.records), args.by, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
