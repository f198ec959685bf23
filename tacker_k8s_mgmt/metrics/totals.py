# SPDX-License-Identifier: Apache-2.0
"""The totals of all operations, added up from journals."""

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.timeline import Operation, Step, Timeline
from tacker_k8s_mgmt.text import in_line

OUTCOMES = ("completed", "failed", "cut_off")
_COMPLETED, _, _CUT_OFF = OUTCOMES
_BUCKETS = (1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
#: Upper limits of the buckets of durations, in seconds.
LIMITS = (*(str(float(limit)) for limit in _BUCKETS), "+Inf")

_UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")

Key = tuple[str, ...]
Sums = defaultdict[Key, float]


def _sums() -> Sums:
    return defaultdict(float)


@dataclass(frozen=True)
class Totals:
    """What is added up, by the values of its labels.

    :ivar runs: hooks that have ended, by operation, hook and outcome.
    :ivar buckets: completed hooks, by operation, hook and upper limit of the duration.
    :ivar seconds: their durations, by operation and hook.
    :ivar playbook_seconds: of these, those of the steps that ran playbooks.
    :ivar steps: steps that were done, by hook and step.
    :ivar step_seconds: their durations.
    :ivar step_failures: steps that failed, likewise.
    """

    runs: Sums = field(default_factory=_sums)
    buckets: Sums = field(default_factory=_sums)
    seconds: Sums = field(default_factory=_sums)
    playbook_seconds: Sums = field(default_factory=_sums)
    steps: Sums = field(default_factory=_sums)
    step_seconds: Sums = field(default_factory=_sums)
    step_failures: Sums = field(default_factory=_sums)

    @classmethod
    def read(cls, document: Any) -> "Totals":
        """The totals of a JSON document; what is not as it should be is left out."""
        totals = cls()
        for name, counter in totals._named():
            with suppress(AttributeError, TypeError, ValueError):
                for *labels, value in document.get(name, ()):
                    counter[tuple(in_line(str(one)) for one in labels)] = (
                        untrusted.number(value)
                    )
        return totals

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            name: [[*labels, value] for labels, value in sorted(counter.items())]
            for name, counter in self._named()
        }

    def _named(self) -> Iterator[tuple[str, Sums]]:
        for each in fields(self):
            yield each.name, getattr(self, each.name)

    def add(self, timeline: Timeline, known: Iterable[str]) -> list[str]:
        """Add the hooks of a journal that have ended.

        :param known: ids of the runs that were added before.
        :returns: the ids of those of the journal that are added now.
        """
        added, before = [], frozenset(known)
        for operation in timeline.operations:
            # The next one begins only when this one is over.
            if operation.ended is None and operation is timeline.last:
                continue
            if operation.run not in before:
                self._add(operation)
            added.append(operation.run)
        return added

    def _add(self, operation: Operation) -> None:
        place = _without_ids(operation.name), _without_ids(operation.hook)
        outcome = operation.outcome if operation.ended is not None else _CUT_OFF
        if outcome not in OUTCOMES:
            return
        self.runs[(*place, outcome)] += 1
        if outcome == _COMPLETED:
            self.seconds[place] += operation.seconds
            self.playbook_seconds[place] += sum(
                step.seconds for step in operation.steps if step.looks
            )
            self.buckets[(*place, _limit(operation.seconds))] += 1
        for step in operation.steps:
            self._add_step(place[1], step)

    def _add_step(self, hook: str, step: Step) -> None:
        # Former releases did not record the kind, and names have no limited number.
        if not step.kind:
            return
        if step.failed:
            self.step_failures[hook, step.kind] += 1
        elif step.outcome == "done":
            self.steps[hook, step.kind] += 1
            self.step_seconds[hook, step.kind] += step.seconds


def _without_ids(name: str) -> str:
    """A name of a limited number: work for a CNF has the id of its VNF instance."""
    return _UUID.sub("", name).rstrip()


def _limit(seconds: float) -> str:
    return LIMITS[bisect.bisect_left(_BUCKETS, seconds)]


def latest(timeline: Timeline) -> Mapping[str, Any] | None:
    """What is known of a VNF instance's last operation; None once it is terminated."""
    last = timeline.last
    if last is None or (last.name == "terminate" and last.final and not last.failed):
        return None
    return {
        "name": timeline.vnf_name,
        "failed": last.failed,
        "under_way": not last.final and not last.failed,
        "seconds": last.seconds,
        "last": last.last,
    }
