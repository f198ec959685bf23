"""Measures the chosen cases and tells; ``python3 -m benchmarks`` starts it."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import figures, laboratory, machine, many_nodes, report
from benchmarks.figures import OperationFigures, Row

#: Instantiation level and default number of runs of the cases in the lab.
LAB = {"1+2": ("instantiation_level_1", 3), "1+10": ("instantiation_level_2", 1)}
FAKES = "fakes"
_RUNS_OF_FAKES = 3


def tell(text: str) -> None:
    """Progress, apart from the table."""
    print(text, file=sys.stderr, flush=True)


def cases(
    only: Iterable[str], runs: int | None, patience: float
) -> Iterable[tuple[str, dict[str, Any], list[OperationFigures]]]:
    """Each case with the machine as it was and the figures of every run."""
    for name in only:
        if not machine.wait_until_quiet(patience):
            tell("The machine is busy with other work; the figures will show it.")
        if name == FAKES:
            for control_planes, workers in many_nodes.SIZES:
                found = many_nodes.measure(
                    control_planes, workers, runs or _RUNS_OF_FAKES
                )
                title = f"fakes {control_planes}+{workers}"
                yield title, machine.description(), found
            continue
        level, default = LAB[name]
        before = machine.description()
        with tempfile.TemporaryDirectory() as scratch:
            tell(f"{name}:")
            found = laboratory.measure(level, runs or default, Path(scratch), tell)
        yield name, before, found


def main() -> int:
    """Measure; the exit code."""
    top = argparse.ArgumentParser()
    top.add_argument("--only", action="append", default=[])
    top.add_argument("--runs", type=int)
    top.add_argument("--json", type=Path)
    top.add_argument("--patience", type=float, default=machine.PATIENCE)
    args = top.parse_args()
    written: list[dict[str, Any]] = []
    rows: list[Row] = []
    for name, before, found in cases(args.only, args.runs, args.patience):
        operations = [figures.as_json(one) for one in found]
        written.append({"case": name, "machine": before, "operations": operations})
        rows += figures.rows(name, found)
        if args.json:
            args.json.write_text(json.dumps(written, indent=2) + "\n")
    growing = [
        one
        for small, large in (("1+2", "1+10"), ("fakes 1+2", "fakes 3+500"))
        for one in report.growths(rows, small, large)
    ]
    report.tell(Console(), rows, growing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
