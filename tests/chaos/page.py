# SPDX-License-Identifier: Apache-2.0
"""A campaign as a page for a browser, in the style of the pages of operations.

It loads nothing, runs nothing, and every text in it is escaped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from tacker_k8s_mgmt.model.timeline import clock
from tests.chaos import operations, record, summary
from tests.chaos.summary import Done

#: Classes of the style, by outcome.
_PILLS = {
    "unharmed": "completed",
    "recovered": "under-way",
    "abandoned": "cut-off",
    "violated": "failed",
    "skipped": "cut-off",
}
_BARS = {"abandoned": "same", "violated": "failed"}


@dataclass(frozen=True)
class Bar:
    """A bar on a track; places in hundredths of it."""

    kind: str
    left: float
    width: float
    title: str


@dataclass(frozen=True)
class Row:
    """A step with its bars."""

    step: Done
    pill: str
    bars: tuple[Bar, ...]
    faults: tuple[Bar, ...]
    when: str


def render(events: Sequence[dict[str, Any]]) -> str:
    """The page of a record."""
    steps = summary.of(events)
    begun = next((one for one in events if one["event"] == record.CAMPAIGN), {})
    outcomes = [step.outcome for step in steps]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader("tests.chaos", ""),
                jinja2.PackageLoader("tacker_k8s_mgmt.tools.render", ""),
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("campaign.html.j2").render(
        seed=begun.get("seed", ""),
        clusters=begun.get("clusters", []),
        drawn=clock(events[-1]["time"], zone=True) if events else "",
        counts={one: outcomes.count(one) for one in summary.ORDER if one in outcomes},
        pills=_PILLS,
        rows=list(_rows(steps)),
        operations=[one for one in operations.OPERATIONS if _tried(steps, one)],
        table=summary.table(steps),
        worst=summary.worst,
        violations=[step for step in steps if step.violations],
        findings=[step for step in steps if step.findings],
    )


def _tried(steps: Sequence[Done], operation: str) -> bool:
    return any(step.plan.operation == operation for step in steps)


def _rows(steps: Sequence[Done]) -> Iterator[Row]:
    longest = max((step.ended - step.began for step in steps), default=1.0) or 1.0
    for step in steps:
        yield Row(
            step=step,
            pill=_PILLS.get(step.outcome, "under-way"),
            bars=tuple(_operation(step, longest)),
            faults=tuple(_fault(step, longest)),
            when=clock(step.began),
        )


def _operation(step: Done, longest: float) -> Iterator[Bar]:
    if step.requested:
        until = step.rested or step.ended
        kind = _BARS.get(step.outcome, "")
        yield _bar(step, kind, step.requested, until, "the operation", longest)
        if step.ended > until:
            yield _bar(step, "same", until, step.ended, "checks and remedies", longest)


def _fault(step: Done, longest: float) -> Iterator[Bar]:
    if step.struck:
        until = max(step.fixed or step.struck, step.struck + longest / 200)
        yield _bar(step, "failed", step.struck, until, step.plan.fault, longest)


def _bar(
    step: Done, kind: str, begin: float, end: float, what: str, longest: float
) -> Bar:
    return Bar(
        kind=kind,
        left=round(100 * max(0.0, begin - step.began) / longest, 2),
        width=round(100 * (end - begin) / longest, 2),
        title=f"{what}, {end - begin:.1f} s",
    )
