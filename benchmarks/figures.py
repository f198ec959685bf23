# SPDX-License-Identifier: Apache-2.0
"""Figures of operations, computed from what was recorded of them. No I/O.

All times are seconds, or seconds since the epoch where they are points in time.
"""

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.model.timeline import Operation, Step

#: Kinds of steps that run playbooks, and of those that wait for VMs, nodes and pods.
PLAYBOOKS = frozenset(
    {
        *("install-kubernetes", "gather-facts", "join-workers", "join-control-planes"),
        *("remove-nodes", "renew-certificate", "upgrade-control-planes"),
        "upgrade-batch",
    }
)
WAITS = frozenset(
    {"wait-for-logins", "wait-for-nodes", "wait-for-api", "drain", "drain-batch"}
)
_ANSWERED = re.compile(r'(\d+\.\d+) "[A-Z]+ \S+ [^"]+" \d+')


@dataclass(frozen=True)
class PlaybookRun:
    """One run from its directory on the Ansible server: between lock and rc."""

    started: float
    ended: float


@dataclass(frozen=True)
class HookFigures:
    """One hook.

    :param playbooks: its steps that run playbooks.
    :param ansible: what the playbook runs took on the Ansible server; of fakes, which
        have none, the same as ``playbooks``.
    :param waits: its steps that wait: for VMs to boot, for nodes to become Ready, for
        pods to leave a node.
    :param heat_calls: requests that Heat's API answered meanwhile.
    :param logins: SSH logins of the conductor, by host.
    :param calls: of fakes: calls of the site, by the first word of their name.
    """

    hook: str
    seconds: float
    playbooks: float
    ansible: float
    waits: float
    heat_calls: int = 0
    logins: Mapping[str, int] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)

    @property
    def own(self) -> float:
        """Our own overhead: neither Ansible's work nor a wait.

        What it takes us to start a playbook and to notice its end counts as ours.
        """
        return self.seconds - self.ansible - self.waits

    @property
    def most_logins(self) -> int:
        """The most logins on one host."""
        return max(self.logins.values(), default=0)


@dataclass(frozen=True)
class OperationFigures:
    """One operation, its hooks together.

    :param seconds: from the request to the final state of the occurrence.
    """

    name: str
    seconds: float
    hooks: tuple[HookFigures, ...]

    def total(self, part: str) -> float:
        """The sum of a part over the hooks."""
        return float(sum(getattr(hook, part) for hook in self.hooks))

    @property
    def tacker(self) -> float:
        """What Tacker and Heat took."""
        return self.seconds - self.total("seconds")

    @property
    def heat_calls(self) -> int:
        """The most Heat calls of one hook."""
        return max((hook.heat_calls for hook in self.hooks), default=0)

    @property
    def logins(self) -> int:
        """The most logins of one hook on one host."""
        return max((hook.most_logins for hook in self.hooks), default=0)


@dataclass(frozen=True)
class Row:
    """Medians of the runs of one operation in one case; both named for people."""

    case: str
    name: str
    runs: int
    seconds: float
    tacker: float
    hooks: float
    ansible: float
    waits: float
    own: float
    heat_calls: int
    logins: int


def hook_figures(
    hook: Operation,
    runs: Sequence[PlaybookRun] = (),
    answered: Sequence[float] = (),
    logins: Mapping[str, int] | None = None,
    calls: Mapping[str, int] | None = None,
) -> HookFigures:
    """The figures of one hook.

    :param hook: as its journal tells.
    :param runs: playbook runs on the Ansible server, of any hook; none on fakes.
    :param answered: when Heat's API answered requests.
    """
    ended = hook.last if hook.ended is None else hook.ended
    playbooks = sum(_length(step) for step in hook.steps if step.kind in PLAYBOOKS)
    inside = [run for run in runs if hook.started <= run.started <= ended]
    ansible = sum(run.ended - run.started for run in inside)
    return HookFigures(
        hook=hook.hook,
        seconds=ended - hook.started,
        playbooks=playbooks,
        ansible=ansible if runs else playbooks,
        waits=sum(_length(step) for step in hook.steps if step.kind in WAITS),
        heat_calls=sum(hook.started <= at <= ended for at in answered),
        logins=logins or {},
        calls=calls or {},
    )


def _length(step: Step) -> float:
    # Not step.seconds, which is rounded for people.
    return 0.0 if step.ended is None else step.ended - step.started


def accepted(log: str, source: str) -> int:
    """How many logins from an address an sshd has accepted, by its log."""
    mark = f" from {source} port "
    return sum(
        line.startswith("Accepted ") and mark in line for line in log.splitlines()
    )


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What each counter has grown by; one that is new began at 0."""
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in grown.items() if count > 0}


def answers(log: str) -> list[float]:
    """When an API answered, by the access log of the lab."""
    found = (_ANSWERED.match(line) for line in log.splitlines())
    return [float(one[1]) for one in found if one]


def playbook_runs(listing: str) -> list[PlaybookRun]:
    """Runs of a listing with one line for each: what ``pid`` and ``rc`` hold.

    A run that is under way, or was lost, has no time of its end and is left out.
    """
    rows = (line.split() for line in listing.splitlines())
    return [PlaybookRun(float(row[3]), float(row[5])) for row in rows if len(row) == 6]


def rows(case: str, operations: Iterable[OperationFigures]) -> list[Row]:
    """Medians of each operation; of counts the most, which no run may exceed."""
    by_name: dict[str, list[OperationFigures]] = {}
    for operation in operations:
        by_name.setdefault(operation.name, []).append(operation)
    return [_row(case, name, found) for name, found in by_name.items()]


def _row(case: str, name: str, found: Sequence[OperationFigures]) -> Row:
    def median(values: Iterable[float]) -> float:
        return statistics.median(values)

    return Row(
        case=case,
        name=name,
        runs=len(found),
        seconds=median(one.seconds for one in found),
        tacker=median(one.tacker for one in found),
        hooks=median(one.total("seconds") for one in found),
        ansible=median(one.total("ansible") for one in found),
        waits=median(one.total("waits") for one in found),
        own=median(one.total("own") for one in found),
        heat_calls=max(one.heat_calls for one in found),
        logins=max(one.logins for one in found),
    )


def as_json(one: OperationFigures) -> dict[str, Any]:
    """The figures for programs."""
    return {
        "operation": one.name,
        "seconds": round(one.seconds, 3),
        "tacker_seconds": round(one.tacker, 3),
        "hooks": [
            {
                "hook": hook.hook,
                "seconds": round(hook.seconds, 3),
                "playbook_steps_seconds": round(hook.playbooks, 3),
                "ansible_seconds": round(hook.ansible, 3),
                "waits_seconds": round(hook.waits, 3),
                "own_seconds": round(hook.own, 3),
                "heat_calls": hook.heat_calls,
                "logins": dict(hook.logins),
                "calls": dict(hook.calls),
            }
            for hook in one.hooks
        ],
    }
