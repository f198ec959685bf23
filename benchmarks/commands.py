# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.commands``: how long commands and the start of hooks take.

Each is a process of its own. Those that ask Tacker read a database of SQLite with a few
VNF instances. Runs in the Tacker environment, without a laboratory.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lab.settings import ROOT
from tacker_k8s_mgmt.tools.csar import parts
from tests.contract import tacker_configuration

_RUNS = 5
#: Seconds that are the targets, on a quiet machine with two cores.
AT_ONCE, SOON = 0.5, 3.0
_COMMANDS = ("-m", "tacker_k8s_mgmt.tools.cli")


@dataclass(frozen=True)
class Start:
    """One process.

    :param words: of Python.
    :param target: seconds; 0 for none.
    """

    name: str
    words: Sequence[str]
    target: float = 0.0


@dataclass(frozen=True)
class Times:
    """Medians in seconds: on the clock, and of the processor."""

    start: Start
    clock: float
    processor: float


def starts(config: str, cluster: str) -> tuple[Start, ...]:
    """What is measured.

    :param config: Tacker's configuration.
    :param cluster: id of a VNF instance that is a cluster, whose hosts do not answer.
    """

    def command(name: str, *words: str, target: float = AT_ONCE) -> Start:
        return Start(name, (*_COMMANDS, *name.split(), *words), target)

    request = str(parts.samples() / "requests" / "instantiate-simple.json")
    tacker = ("--config-file", config)
    nothing = ("--config-file", "/nonexistent")
    return (
        command("--help"),
        command("cluster check --help"),
        command("cluster chek"),
        command("runs list", *tacker),
        command("runs list /none", *nothing),
        command("params check", request, target=1.0),
        command("cluster list", *nothing, target=SOON),
        command("cluster list", *tacker, target=SOON),
        command("cluster check", cluster, *tacker, target=0.0),
        Start(
            "imports of the v1 driver", ("-c", "import tacker_k8s_mgmt.hooks.v1.driver")
        ),
        Start(
            "imports of the v2 driver", ("-c", "import tacker_k8s_mgmt.hooks.v2.driver")
        ),
    )


def measured(start: Start, runs: int) -> Times:
    """Start it so many times."""
    clock, processor = [], []
    for _ in range(runs):
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, *start.words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        clock.append(time.monotonic() - began)
        processor.append(usage.ru_utime + usage.ru_stime)
    return Times(start, statistics.median(clock), statistics.median(processor))


def main() -> int:
    """Measure, and print a table."""
    top = argparse.ArgumentParser(prog="python -m benchmarks.commands")
    top.add_argument("--runs", type=int, default=_RUNS, metavar="N")
    top.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    args = top.parse_args()
    with tempfile.TemporaryDirectory() as place:
        config = tacker_configuration.configured(Path(place))
        known = tacker_configuration.database(Path(place), config, port=1)
        found = [measured(one, args.runs) for one in starts(config, known["cluster"])]
    table = Table(title=f"Medians of {args.runs} runs, in seconds")
    for name in ("command", "clock", "processor", "target"):
        table.add_column(name, justify="left" if name == "command" else "right")
    for one in found:
        target = f"{one.start.target:g}" if one.start.target else ""
        table.add_row(
            one.start.name, f"{one.clock:.2f}", f"{one.processor:.2f}", target
        )
    Console().print(table)
    if args.json:
        rows = [[one.start.name, one.clock, one.processor] for one in found]
        args.json.write_text(json.dumps(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
