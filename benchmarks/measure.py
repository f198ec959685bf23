# SPDX-License-Identifier: Apache-2.0
"""Measures the chosen cases and reports; ``python3 -m benchmarks`` starts it."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import figures, laboratory, machine, many_nodes, report
from benchmarks.figures import OperationFigures

#: Instantiation level and default number of runs of the cases in the lab.
LAB = {"1+2": ("instantiation_level_1", 3), "1+10": ("instantiation_level_2", 1)}
FAKES = "fakes"
_RUNS_OF_FAKES = 3
#: By how many workers the cases in the lab scale.
BY = (1, 10)


@dataclass(frozen=True)
class Case:
    """What was measured of one case.

    :param machine: the machine before it, see :func:`.machine.description`.
    :param failures: what ended runs early.
    """

    name: str
    machine: dict[str, Any]
    operations: list[OperationFigures]
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The case for programs."""
        return {
            "case": self.name,
            "machine": self.machine,
            "operations": [figures.as_json(operation) for operation in self.operations],
            "failures": self.failures,
        }


def tell(text: str) -> None:
    """Progress, apart from the table."""
    print(text, file=sys.stderr, flush=True)


def cases(args: argparse.Namespace) -> Iterator[Case]:
    """Each case that was chosen, measured."""
    for name in args.only:
        if not machine.wait_until_quiet(args.patience):
            tell("The machine is busy with other work; the figures will show it.")
        if name == FAKES:
            for size in many_nodes.SIZES:
                before = machine.description()
                found = many_nodes.measure(*size, args.runs or _RUNS_OF_FAKES)
                yield Case("fakes {}+{}".format(*size), before, found)
            continue
        level, default = LAB[name]
        before = machine.description()
        with tempfile.TemporaryDirectory() as scratch:
            tell(f"{name}:")
            found, failures = laboratory.measure(
                level, args.runs or default, args.by or BY, Path(scratch), tell
            )
        yield Case(name, before, found, failures)


def main() -> int:
    """Measure; the exit code, 1 if an operation failed."""
    top = argparse.ArgumentParser()
    top.add_argument("--only", action="append", default=[])
    top.add_argument("--by", action="append", type=int)
    top.add_argument("--runs", type=int)
    top.add_argument("--json", type=Path)
    top.add_argument("--patience", type=float, default=machine.PATIENCE)
    args = top.parse_args()
    done: list[Case] = []
    for case in cases(args):
        done.append(case)
        if args.json:
            text = json.dumps([one.as_json() for one in done], indent=2)
            args.json.write_text(text + "\n")
    rows = [row for case in done for row in figures.rows(case.name, case.operations)]
    growing = [
        growth
        for small, large in (("1+2", "1+10"), ("fakes 1+2", "fakes 3+500"))
        for growth in report.growths(rows, small, large)
    ]
    report.tell(Console(), rows, growing)
    return 1 if any(case.failures for case in done) else 0


if __name__ == "__main__":
    sys.exit(main())
