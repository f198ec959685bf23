# SPDX-License-Identifier: Apache-2.0
"""Prints tables and the progress of operations, on a terminal or into a pipe."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import rich.box
import rich.console
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tacker_k8s_mgmt.model.playbooks import Look
from tacker_k8s_mgmt.model.timeline import (
    UNNEEDED,
    Operation,
    Step,
    Timeline,
    clock,
    in_words,
)
from tacker_k8s_mgmt.text import printable

_SIZE = re.compile("[1-9][0-9]{0,3}")
_PIPE_SECONDS = 10.0
_BAR_WIDTH = 30
_SLOWEST = 3
_STYLES = {"failed": "bold red", "completed": "bold green"}


class Console(rich.console.Console):
    """A console that raises a broken pipe instead of ending the process."""

    def __init__(self, **options: Any) -> None:
        # Rich takes any digits for a width, as many as there are.
        usable = {
            name: value
            for name, value in os.environ.items()
            if name not in ("COLUMNS", "LINES") or _SIZE.fullmatch(value)
        }
        super().__init__(_environ=usable, **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def say(self, text: str, style: str = "") -> None:
        """Print one line as it is, however long."""
        self.print(
            printable(text),
            style=style or None,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=True,
        )

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
        """Print a table; in a pipe it has neither colours nor lines."""
        for cell in (cell for row in rows for cell in row):
            # Names and states come from other hosts.
            cell.plain = printable(cell.plain)
        if self.is_terminal:
            table = Table(*heads, box=rich.box.SIMPLE_HEAD)
            for row in rows:
                table.add_row(*row)
            self.print(table)
            return
        texts = [heads, *([cell.plain for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        for line in texts:
            padded = (
                text.ljust(width) for text, width in zip(line, widths, strict=True)
            )
            self.say("  ".join(padded).rstrip())


class Reporter:
    """Prints what is added to a timeline, one line for each step.

    On a terminal the step that is under way is shown live below the lines; in a pipe
    its progress is a line of its own every ten seconds at most. To be used as a
    context: its end removes the live part.
    """

    def __init__(self, console: Console, timeline: Timeline) -> None:
        self._console = console
        self._timeline = timeline
        self._progress_at = 0.0
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self._live = Live(
                console=console,
                get_renderable=self._picture,
                refresh_per_second=5,
                transient=True,
            )

    def __enter__(self) -> "Reporter":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def report(self, operation: Operation, event: str) -> None:
        """Print what *event* has changed in *operation*."""
        match event:
            case "operation-start":
                self.begin(operation)
            case "progress" if operation.current and not self._live:
                self._progress(operation.current)
            case "note" if operation.current:
                self.notes(operation.current.notes[-1:])
            case "step-end":
                self.step(operation.steps[-1])
            case "operation-end":
                self.end(operation)

    def say(self, text: str, style: str = "") -> None:
        """Print one line."""
        self._console.say(text, style)

    def begin(self, operation: Operation) -> None:
        """Print the start of an operation."""
        at = clock(operation.started)
        steps = "1 step" if operation.total == 1 else f"{operation.total} steps"
        self.say(f"{operation.hook_name}  {at}  ({steps})", "bold")

    def notes(self, texts: Sequence[str]) -> None:
        """Print what delays a step."""
        for text in texts:
            self.say(f"{'':>7} {text}", "yellow")

    def step(self, step: Step) -> None:
        """Print how a step has ended; not one that had nothing to do."""
        if step.outcome == UNNEEDED:
            return
        self.say(
            f"{step.place:>7} {step.name:<48} {step.outcome:<10} "
            f"{in_words(step.seconds):>12}",
            "red" if step.failed else "",
        )
        slow = [task for task in step.summary.slowest if task.seconds >= 1][:_SLOWEST]
        if slow:
            listed = "; ".join(f"{task.task} {in_words(task.seconds)}" for task in slow)
            self.say(f"{'':>7} slowest tasks: {listed}", "dim")

    def _progress(self, step: Step) -> None:
        look = step.looks[-1]
        if look.time - self._progress_at >= _PIPE_SECONDS:
            self._progress_at = look.time
            text = "; ".join(filter(None, (look.text, look.estimate)))
            self.say(f"{step.place:>7} {step.name}: {text}")

    def end(self, operation: Operation) -> None:
        """Print how an operation has ended, and what Tacker does then."""
        took = in_words(operation.seconds)
        self.say(
            f"{operation.hook_name} {operation.outcome} after {took}",
            _STYLES.get(operation.outcome, ""),
        )
        unneeded = sum(step.outcome == UNNEEDED for step in operation.steps)
        if unneeded:
            steps = "1 step" if unneeded == 1 else f"{unneeded} steps"
            self.say(f"{steps} had nothing to do.", "dim")
        if operation.error:
            self.say(operation.error, "red")
        if operation.meanwhile:
            self.say(f"{operation.meanwhile}.", "dim")

    # The live part

    def _picture(self) -> RenderableType:
        operation = self._timeline.last
        if operation is None or operation.final:
            return ""
        if operation.ended is not None:
            return self._head(f"waiting for {operation.next_hook}", operation.ended)
        step = operation.current
        if step is None:
            return self._head(operation.hook_name, operation.started)
        head = self._head(
            f"{operation.hook_name} {step.place} {step.name}", step.started
        )
        return Group(head, *_progress(step.looks[-1])) if step.looks else head

    def _head(self, text: str, since: float) -> RenderableType:
        return _row(self._spinner, f"{text}  {in_words(time.time() - since)}")


def _progress(look: Look) -> Iterator[RenderableType]:
    """Counters first: names may be longer than the screen is wide."""
    bar = ProgressBar(look.plays or None, max(look.play - 1, 0), width=_BAR_WIDTH)
    texts = (look.place, f"{look.results} results of hosts", look.estimate)
    yield _row(" ", bar, ", ".join(filter(None, texts)))
    yield _row(" ", f"{look.play_name}: {look.task}" if look.task else look.play_name)


def _row(*cells: RenderableType) -> RenderableType:
    row = Table.grid(padding=(0, 1))
    row.add_row(
        *(
            Text(cell, overflow="ellipsis", no_wrap=True)
            if isinstance(cell, str)
            else cell
            for cell in cells
        )
    )
    return row
