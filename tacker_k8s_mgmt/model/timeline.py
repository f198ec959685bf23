# SPDX-License-Identifier: Apache-2.0
"""Operations from a VNF instance's journal, as values to be shown.

A journal may be of an older release, cut off or damaged: every field of a record may be
missing or of another type.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.model import playbooks, untrusted
from tacker_k8s_mgmt.model.playbooks import Look, RunSummary, TaskFailure

FAILED = "failed"
DONE = "done"
UNNEEDED = "nothing to do"
#: Outcomes as former releases recorded them.
_FORMERLY = {"already so": UNNEEDED}
#: In place of a time that is not recorded.
UNKNOWN = "unknown time"

_HEAT: Mapping[str, str] = {
    "instantiate": "create the VMs",
    "terminate": "delete the VMs",
    "heal": "rebuild the VMs",
    "scale": "change the number of VMs",
    "change_external_connectivity": "change the stack",
    "change_current_package": "change the stack",
    "instantiate_rollback": "delete the VMs",
    "scale_rollback": "delete the new VMs",
}


@dataclass
class Step:
    """One step of an operation.

    :param ended: None while it is under way, and for good if it was cut off.
    :param kind: its stable name; in journals of former releases the step's name without
        those of nodes, or "".
    :param outcome: ``done``, ``nothing to do`` or ``failed``; "" until it has ended.
    :param seconds: its duration by the operation's own clock.
    :param summary: of its playbook's runs that have ended.
    :param notes: what delayed it, and what its playbook's runs say.
    """

    number: int
    total: int
    name: str
    started: float
    kind: str = ""
    ended: float | None = None
    outcome: str = ""
    seconds: float = 0.0
    looks: list[Look] = field(default_factory=list)
    summary: RunSummary = field(default_factory=RunSummary)
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.outcome == FAILED

    @property
    def place(self) -> str:
        """Its number and the number of the operation's steps."""
        return f"{self.number}/{self.total}"


@dataclass
class Operation:
    """The work of one hook.

    :param run: the id of its records.
    :param api: Tacker's, ``v1`` or ``v2``.
    :param last: time of the last record; 0 as long as none has one, as ``started``.
    :param outcome: ``completed`` or ``failed``; "" until it has ended.
    :param next_hook: of the same operation, which is recorded next; "" for none, and
        until it has ended.
    :param failed_tasks: of the playbook that failed.
    :param problems: one sentence each; what failed otherwise.
    :param advice: what to do next; it is a part of ``error``, too.
    :param verbs: Tacker's for an operation that failed, those that the advice is to
        send; None in journals of former releases.
    :param scale: direction, aspect and number of steps of a scale, in words.
    :param subject: what a heal or a modification is about, in words.
    :param vnf_name: of the VNF instance.
    :param cnf_name: of the CNF's VNF instance, if the operation is one of a CNF.
    :param occurrence: id of Tacker's LCM operation occurrence.
    """

    run: str
    hook: str
    api: str
    started: float
    last: float
    total: int = 0
    steps: list[Step] = field(default_factory=list)
    ended: float | None = None
    outcome: str = ""
    seconds: float = 0.0
    error: str = ""
    next_hook: str = ""
    failed_tasks: tuple[TaskFailure, ...] = ()
    problems: tuple[str, ...] = ()
    advice: str = ""
    verbs: tuple[str, ...] | None = None
    scale: str = ""
    subject: str = ""
    vnf_name: str = ""
    cnf_name: str = ""
    occurrence: str = ""

    @property
    def name(self) -> str:
        """Tacker's name of the operation that the hook belongs to.

        With the CNF behind it, if the operation is one of a CNF on the cluster.
        """
        hook, *more = self.hook.split(" ", 1)
        return " ".join([hook.removesuffix("_start").removesuffix("_end"), *more])

    @property
    def title(self) -> str:
        """Its name for people, with what is recorded of its purpose."""
        name = self.in_names(self.name.replace("_", " ")) or "unknown operation"
        subject = f": {self.subject}" if self.subject else ""
        return f"{name[0].upper()}{name[1:]} {self.scale}".rstrip() + subject

    @property
    def cnf(self) -> str:
        """VNF instance of the CNF that it was for; "" for the cluster's own."""
        return self.hook.partition(" of CNF ")[2]

    @property
    def hook_name(self) -> str:
        """The hook for people: with the CNF's name, if it is one of a CNF."""
        return self.in_names(self.hook)

    def in_names(self, hook: str) -> str:
        """A hook of this operation with the CNF's name in place of its id."""
        return hook.replace(self.cnf, self.cnf_name) if self.cnf_name else hook

    @property
    def is_start(self) -> bool:
        """Whether Tacker's own work comes after it."""
        return self.hook.partition(" ")[0].endswith("_start")

    @property
    def failed(self) -> bool:
        return self.outcome == FAILED

    def sign_of_life(self, now: float) -> str:
        """How long ago the last record was written, in words."""
        ago = f"{in_words(now - self.last)} ago" if self.last else f"at an {UNKNOWN}"
        return f"last sign of life {ago}"

    @property
    def final(self) -> bool:
        """Whether it has ended and no other hook of its operation follows."""
        return self.ended is not None and not self.next_hook

    @property
    def meanwhile(self) -> str:
        """What Tacker does after this hook, in words; "" if nothing."""
        if self.failed or not self.is_start:
            return ""
        work, after = _HEAT.get(self.name), self.in_names(self.next_hook)
        if work is None:
            return f"{after} follows" if after else ""
        return f"Tacker now has Heat {work}; {after or 'no hook'} follows"

    @property
    def current(self) -> Step | None:
        """The step that has started last, if it has not ended."""
        if self.steps and self.steps[-1].ended is None:
            return self.steps[-1]
        return None

    @property
    def position(self) -> str:
        """Progress of the current step's playbook at the last look; "" without one."""
        looks = self.current.looks[-1:] if self.current else ()
        texts = (text for look in looks for text in (look.place, look.estimate))
        return ", ".join(filter(None, texts))


class Timeline:
    """The operations of one VNF instance, in the order in which they began."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._runs: dict[str, Operation] = {}
        self._latest = 0.0
        for record in records:
            self.add(record)

    @property
    def operations(self) -> list[Operation]:
        return list(self._runs.values())

    @property
    def last(self) -> Operation | None:
        """The operation that began last."""
        return next(reversed(self._runs.values()), None)

    @property
    def vnf_name(self) -> str:
        """The latest recorded name of the VNF instance."""
        names = (operation.vnf_name for operation in reversed(self.operations))
        return next(filter(None, names), "")

    def occurrences(self) -> list[list[Operation]]:
        """The hooks of each operation together, with those of its retries.

        Journals know hooks only. A hook belongs to the previous one if both have the
        same operation, which the previous one has not completed. Between those of a CNF
        there may be others, of the cluster or of other CNFs.
        """
        occurrences: list[list[Operation]] = []
        for operation in self.operations:
            recent = occurrences if operation.cnf else occurrences[-1:]
            same = (one for one in reversed(recent) if one[-1].name == operation.name)
            begun = next(same, None)
            if begun is None or (begun[-1].final and not begun[-1].failed):
                occurrences.append(begun := [])
            begun.append(operation)
        return occurrences

    def durations(self) -> dict[tuple[str, str], float]:
        """How long steps took, by hook and kind: those of the last hook that did any.

        :returns: in seconds; the mean where a hook has done several of a kind.
        """
        found: dict[tuple[str, str], float] = {}
        for operation in self.operations:
            done: dict[str, list[float]] = {}
            for step in operation.steps:
                if step.kind and step.outcome == DONE:
                    done.setdefault(step.kind, []).append(step.seconds)
            for kind, seconds in done.items():
                found[operation.hook, kind] = sum(seconds) / len(seconds)
        return found

    def add(self, record: Mapping[str, Any]) -> Operation:
        """Add one record; an unknown event only shows that the operation is alive.

        :returns: the operation that it belongs to.
        """
        # Without a time of its own it came right after the record before.
        at = self._latest = untrusted.moment_of(record) or self._latest
        operation = self._operation(record)
        operation.started = operation.started or at
        operation.last = max(operation.last, at)
        record = {**record, "time": at}
        match record.get("event"):
            case "operation-start":
                operation.vnf_name = untrusted.text_of(record, "vnf_name")
                operation.cnf_name = untrusted.text_of(record, "cnf_name")
                operation.occurrence = untrusted.text_of(record, "lcm_op_occ_id")
                operation.scale = _scale(record)
                operation.subject = untrusted.text_of(record, "subject")
                operation.total = int(untrusted.number_of(record, "steps"))
            case "step-start":
                operation.steps.append(_step(record))
                # Their number may be known only after the first ones.
                operation.total = max(operation.total, operation.steps[-1].total)
            case "progress":
                if operation.current:
                    operation.current.looks.append(playbooks.look(record))
                    operation.current.summary += RunSummary.read(record)
            case "note" if operation.current:
                operation.current.notes.append(untrusted.text_of(record, "text"))
            case "step-end":
                _end_step(operation, record)
            case "operation-end":
                operation.ended = operation.last
                operation.outcome = untrusted.text_of(record, "outcome")
                operation.seconds = untrusted.number_of(record, "seconds")
                operation.error = untrusted.text_of(record, "error")
                operation.next_hook = _next_hook(operation, record)
                operation.failed_tasks = tuple(playbooks.failed_tasks(record))
                operation.problems = tuple(untrusted.texts_of(record, "problems"))
                operation.advice = untrusted.text_of(record, "advice")
                if "verbs" in record:
                    operation.verbs = tuple(untrusted.texts_of(record, "verbs"))
        return operation

    def _operation(self, record: Mapping[str, Any]) -> Operation:
        run = untrusted.text_of(record, "run")
        if run not in self._runs:
            hook, api = (
                untrusted.text_of(record, "hook"),
                untrusted.text_of(record, "api") or "v1",
            )
            self._runs[run] = Operation(run, hook, api, started=0.0, last=0.0)
        return self._runs[run]


def _scale(record: Mapping[str, Any]) -> str:
    scale = record.get("scale")
    if not isinstance(scale, Mapping):
        return ""
    steps, aspect = (
        int(untrusted.number_of(scale, "steps")),
        untrusted.text_of(scale, "aspect"),
    )
    number = f"{steps} step" if steps == 1 else f"{steps} steps"
    return f"{untrusted.text_of(scale, 'direction')} by {number} of {aspect}"


def _step(record: Mapping[str, Any]) -> Step:
    number, total = (
        int(untrusted.number_of(record, key)) for key in ("number", "total")
    )
    name, kind = untrusted.text_of(record, "step"), untrusted.text_of(record, "kind")
    return Step(number, total, name, untrusted.number_of(record, "time"), kind)


def _end_step(operation: Operation, record: Mapping[str, Any]) -> None:
    if operation.current is None:
        operation.steps.append(_step(record))
    step = operation.steps[-1]
    step.ended = untrusted.number_of(record, "time")
    outcome = untrusted.text_of(record, "outcome")
    step.outcome = _FORMERLY.get(outcome, outcome)
    step.seconds = untrusted.number_of(record, "seconds")


def _next_hook(operation: Operation, record: Mapping[str, Any]) -> str:
    if operation.failed or not operation.is_start:
        return ""
    # Former releases did not record it. The v1 API has scale_start for a scale-in only.
    is_last = (operation.api, operation.hook) == ("v1", "scale_start") or operation.cnf
    formerly = "" if is_last else f"{operation.name}_end"
    return untrusted.text_of({"followed_by": formerly, **record}, "followed_by")


def in_words(seconds: float) -> str:
    """A duration to be read: ``4.2 s``, ``42 s``, ``3 min 20 s``, ``1 h 5 min``."""
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    parts = (f"{minutes} min" if minutes else "", f"{rest} s" if rest else "")
    return " ".join(filter(None, parts))


def clock(at: float, *, zone: bool = False) -> str:
    """A local time, on request with its zone; :data:`UNKNOWN` for 0 or none."""
    if not at:
        return UNKNOWN
    try:
        local = time.localtime(at)
    except (OverflowError, OSError, ValueError):
        return UNKNOWN
    return time.strftime(f"%Y-%m-%d %H:%M:%S{' %Z' * zone}", local)
