# SPDX-License-Identifier: Apache-2.0
"""What became of each step of a record, and of each fault in each operation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos import plan, record


@dataclass
class Done:
    """A step that was taken.

    :ivar began: seconds since the epoch, as all of its times.
    :ivar rested: when its operation was in a final state for the last time.
    :ivar outcome: "" while it is under way.
    :ivar seconds: from the fault until everything held.
    :ivar course: what was sent and done, in its order.
    """

    plan: plan.Step
    began: float
    ended: float = 0.0
    requested: float = 0.0
    rested: float = 0.0
    struck: float = 0.0
    fixed: float = 0.0
    missed: bool = False
    outcome: str = ""
    seconds: float = 0.0
    course: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


def of(events: Iterable[dict[str, Any]]) -> list[Done]:
    """The steps of a record."""
    steps: list[Done] = []
    for event in events:
        if event["event"] == record.STEP:
            steps.append(Done(plan.of_document(event["plan"]), event["time"]))
        elif steps and event["step"] == steps[-1].plan.number:
            _add(steps[-1], event)
    return steps


def _add(step: Done, event: dict[str, Any]) -> None:
    now = step.ended = float(event["time"])
    match event["event"]:
        case record.REQUEST if not event.get("prepares") and not event.get("second"):
            step.requested = step.requested or now
        case record.FAULT:
            step.struck = now
        case record.MENDED:
            step.fixed = now
        case record.MISSED:
            step.missed = True
        case record.STATE if event["state"] in ("COMPLETED", "FAILED", "ROLLED_BACK"):
            step.rested = now
            step.course.append(event["state"])
        case record.STATE if event["state"] == "FAILED_TEMP":
            step.course.append("FAILED_TEMP")
        case record.VERB:
            step.course.append(f"{event['verb']} ({event['source']})")
        case record.ACTION:
            step.course.append(f"{event['text']} ({event['source']})")
        case record.VIOLATION:
            step.violations.append(event["text"])
        case record.FINDING:
            step.findings.append(event["text"])
        case record.OUTCOME:
            step.outcome, step.seconds = event["outcome"], event["seconds"]


@dataclass
class Cell:
    """What became of a fault in an operation, all times that it was tried.

    :ivar outcomes: how often each one came.
    :ivar slowest: seconds of the longest recovery.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    slowest: float = 0.0


#: The worst one comes first.
ORDER = ("violated", "abandoned", "recovered", "unharmed", "skipped")


def table(steps: Sequence[Done]) -> dict[str, dict[str, Cell]]:
    """The cells, by fault and operation."""
    found: dict[str, dict[str, Cell]] = {}
    for step in steps:
        if not step.outcome or step.missed:
            continue
        row = found.setdefault(step.plan.fault, {})
        cell = row.setdefault(step.plan.operation, Cell())
        cell.outcomes[step.outcome] = cell.outcomes.get(step.outcome, 0) + 1
        cell.slowest = max(cell.slowest, step.seconds)
    return {fault: found[fault] for fault in sorted(found)}


def worst(cell: Cell) -> str:
    """The worst outcome of a cell."""
    return next(one for one in ORDER if one in cell.outcomes)
