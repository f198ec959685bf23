# SPDX-License-Identifier: Apache-2.0
"""Operations as charts: bars, the texts beside them, and why a hook has failed.

A bar has a begin and an end. A failure is a list, with the commands that an operator
may send next.
"""

import bisect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tacker_k8s_mgmt.model.playbooks import Look, TaskFailure, TaskTime
from tacker_k8s_mgmt.model.timeline import (
    UNNEEDED,
    Operation,
    Step,
    Timeline,
    clock,
    in_words,
)

_VERBS = ("retry", "rollback", "fail")
# As the hooks write them in their advice.
_VERB = re.compile(f"`({'|'.join(_VERBS)})`")
_SAME_HOSTS = 20


@dataclass(frozen=True)
class GroupedFailure:
    """A task that failed with one message on several hosts.

    :param hosts: on which it did.
    :param more: how many others there are.
    """

    hosts: tuple[str, ...]
    more: int
    task: str
    message: str


@dataclass(frozen=True)
class HookFailure:
    """What failed.

    :param step: the last one, with its place.
    :param tasks: of a playbook.
    :param problems: one sentence each, for another failure.
    :param text: all of it, as Tacker shows it.
    :param advice: what to do next, if it is not only in the text.
    :param commands: whole command lines.
    """

    step: str
    tasks: tuple[GroupedFailure, ...]
    problems: tuple[str, ...]
    text: str
    advice: str
    commands: tuple[str, ...]


def of(hook: Operation, vnf_id: str = "") -> HookFailure | None:
    """The failure of a hook; None if it did not fail.

    :param vnf_id: the VNF instance, if its operation waits for what is sent next.
    """
    if not hook.error:
        return None
    step = hook.steps[-1] if hook.steps else None
    return HookFailure(
        step=f"{hook.hook_name}, step {step.place}: {step.name}"
        if step
        else hook.hook_name,
        tasks=tuple(_grouped(hook.failed_tasks)),
        problems=hook.problems,
        text=hook.error,
        advice=hook.advice,
        commands=tuple(_commands(hook, vnf_id)) if vnf_id else (),
    )


def _grouped(tasks: Iterable[TaskFailure]) -> Iterator[GroupedFailure]:
    """Most playbooks fail for one reason on many hosts."""
    groups: dict[tuple[str, str], list[str]] = {}
    for task in tasks:
        groups.setdefault((task.task, task.message), []).append(task.host)
    for (name, message), hosts in groups.items():
        shown = tuple(hosts[:_SAME_HOSTS])
        yield GroupedFailure(shown, len(hosts) - len(shown), name, message)


def _commands(hook: Operation, vnf_id: str) -> Iterator[str]:
    verbs = _verbs(hook)
    if not verbs:
        return
    version = " --os-tacker-api-version 2" if hook.api == "v2" else ""
    command = "openstack vnflcm op"
    if not hook.occurrence:
        # Journals of former releases do not name it, nor do hooks of CNFs.
        instance = hook.cnf or vnf_id
        yield f"{command} list --filter '(eq,vnfInstanceId,{instance})'{version}"
    for verb in verbs:
        yield f"{command} {verb} {hook.occurrence or 'OPERATION_ID'}{version}"


def _verbs(hook: Operation) -> list[str]:
    """What an operator may send, in the order of the advice."""
    advised: Iterable[str] | None = hook.verbs
    if advised is None:
        # Journals of former releases have them in the text only.
        advised = _VERB.findall(hook.advice or hook.error)
    return [verb for verb in dict.fromkeys(advised) if verb in _VERBS]


_SLOWEST = 8
_LEAST_TICKS = 4
_TICKS = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600),
    *(7200, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600),
)
_KINDS = {"": "running", UNNEEDED: "same", "failed": "failed"}
_UNDER_WAY = "under way"
_CUT_OFF = "cut off"


@dataclass(frozen=True)
class Bar:
    """A bar on an axis; in per cent of its length.

    :param kind: done, same, failed, running, play or task.
    """

    left: float
    width: float
    kind: str
    title: str


@dataclass(frozen=True)
class Row:
    """One line of a chart: a step, a play or a task.

    :param plays: the plays of the playbook that the step runs.
    :param remarks: what else is recorded of the step.
    """

    label: str
    took: str
    bar: Bar
    note: str = ""
    plays: tuple["Row", ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Consecutive steps.

    :param folded: what stands for them until they are unfolded; "" shows them.
    """

    rows: tuple[Row, ...]
    folded: str = ""


@dataclass(frozen=True)
class HookChart:
    """The work of one hook.

    :param title: number of the try; "" for the first.
    :param gap: between the previous hook and this one, in words.
    :param share: its part of the whole operation in per cent.
    :param ticks: place in per cent and label of each line of the axis.
    :param tasks: the slowest ones of its playbooks.
    """

    name: str
    title: str
    state: str
    took: str
    started: str
    failure: HookFailure | None
    gap: str
    share: float
    ticks: tuple[tuple[float, str], ...]
    steps: tuple[Rows, ...]
    tasks: tuple[Row, ...]


@dataclass(frozen=True)
class OperationChart:
    """One operation with all its hooks and retries.

    :param anchor: its place in the page.
    :param note: the progress of an operation that has not ended.
    :param occurrence: id of Tacker's LCM operation occurrence, if it is known.
    :param failure: of its last hook, if that failed.
    """

    anchor: str
    name: str
    state: str
    took: str
    started: str
    note: str
    occurrence: str
    failure: HookFailure | None
    hooks: tuple[HookChart, ...]


def draw(vnf_id: str, timeline: Timeline, now: float) -> tuple[OperationChart, ...]:
    """The charts of all operations, the newest first.

    :param now: seconds since the epoch, for what is under way.
    """
    charts = [
        _operation(vnf_id, hooks, timeline, now) for hooks in timeline.occurrences()
    ]
    return tuple(reversed(charts))


def _operation(
    vnf_id: str, hooks: Sequence[Operation], timeline: Timeline, now: float
) -> OperationChart:
    last = hooks[-1]
    is_newest = last is timeline.last
    total = sum(map(_length, hooks))
    return OperationChart(
        anchor=_anchor(hooks[0].run),
        name=last.title,
        state=_UNDER_WAY if is_newest and not last.final else _state(last, is_newest),
        took=in_words(last.last - hooks[0].started),
        started=clock(hooks[0].started, zone=True),
        note=_note(last, is_newest, now),
        occurrence=last.occurrence,
        failure=of(last, vnf_id if is_newest else ""),
        hooks=tuple(
            _hook(hooks, number, 100 * _length(hook) / total, hook is timeline.last)
            for number, hook in enumerate(hooks)
        ),
    )


def _anchor(run: str) -> str:
    """Journals may be damaged: whatever the id is, one word."""
    return "o-" + "".join(filter(str.isalnum, run))


def _length(hook: Operation) -> float:
    return max(hook.seconds, hook.last - hook.started, 0.001)


def _state(hook: Operation, is_newest: bool) -> str:
    if hook.ended is not None:
        return hook.outcome
    return _UNDER_WAY if is_newest else _CUT_OFF


def _note(last: Operation, is_newest: bool, now: float) -> str:
    if last.final:
        return ""
    ago = last.sign_of_life(now) if is_newest else ""
    position = last.position if is_newest else ""
    text = position if last.ended is None else last.meanwhile
    return "; ".join(filter(None, (text, ago)))


def _hook(
    hooks: Sequence[Operation], number: int, share: float, is_newest: bool
) -> HookChart:
    hook, before = hooks[number], hooks[:number]
    tries = 1 + sum(other.hook == hook.hook for other in before)
    # All tries have one scale, so that their bars can be compared.
    scale = max(_length(other) for other in hooks if other.hook == hook.hook)
    axis = _Axis(hook.started, scale)
    return HookChart(
        name=hook.hook_name,
        title=f"try {tries}" if tries > 1 else "",
        state=_state(hook, is_newest),
        took=in_words(_length(hook)),
        started=clock(hook.started, zone=True),
        failure=None if hook is hooks[-1] else of(hook),
        gap=_gap(before[-1], hook) if before else "",
        share=round(share, 3),
        ticks=tuple(axis.ticks()),
        steps=tuple(_folded([_step(step, axis, hook) for step in hook.steps])),
        tasks=tuple(_tasks(hook)),
    )


def _gap(before: Operation, hook: Operation) -> str:
    seconds = in_words(hook.started - before.last)
    if before.ended is None or before.failed:
        return f"{seconds} until the retry"
    return f"{seconds} for Tacker and Heat"


class _Axis:
    """Maps times to places between the left and the right end of a chart."""

    def __init__(self, start: float, length: float) -> None:
        self._start = start
        self._length = length

    def bar(self, start: float, end: float, kind: str, title: str) -> Bar:
        left, right = self._per_cent(start), self._per_cent(end)
        return Bar(left, round(max(right - left, 0), 3), kind, title)

    def ticks(self) -> Iterator[tuple[float, str]]:
        fitting = bisect.bisect_right(_TICKS, self._length / _LEAST_TICKS)
        step = _TICKS[max(fitting - 1, 0)]
        for number in range(int(self._length / step) + 1):
            yield self._per_cent(self._start + number * step), _short(number * step)

    def _per_cent(self, at: float) -> float:
        return round(min(max(100 * (at - self._start) / self._length, 0), 100), 3)


def _short(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:g} s"
    if seconds >= 3600:
        return f"{seconds / 3600:g} h"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min" if rest else f"{minutes} min"


def _folded(rows: Sequence[Row]) -> Iterator[Rows]:
    """The rows in their order, with several in a row that had nothing to do folded."""
    for is_same, group in groupby(rows, key=lambda row: row.bar.kind == "same"):
        together = tuple(group)
        fold = is_same and len(together) > 1
        yield Rows(
            together, f"{len(together)} steps with nothing to do" if fold else ""
        )


def _end(step: Step, hook: Operation) -> float:
    return hook.last if step.ended is None else step.ended


def _step(step: Step, axis: _Axis, hook: Operation) -> Row:
    end = _end(step, hook)
    took = in_words(end - step.started if step.ended is None else step.seconds)
    kind = _KINDS.get(step.outcome, "done")
    return Row(
        label=step.name,
        took=took,
        bar=axis.bar(step.started, end, kind, f"{step.place} {step.name}: {took}"),
        note="" if step.outcome == "done" else step.outcome or _state(hook, True),
        plays=tuple(_plays(step, axis, end)),
        remarks=tuple(step.notes),
    )


def _plays(step: Step, axis: _Axis, end: float) -> Iterator[Row]:
    """Each play, from the first look at it to the first look at the next one."""
    looks = groupby(step.looks, key=lambda look: look.play)
    started = [next(of_play) for play, of_play in looks if play > 0]
    for look, until in _with_ends(started, end):
        is_last = look is started[-1] and step.outcome != "done"
        took = in_words(until - look.time)
        label = f"{look.play}/{look.plays} {look.play_name}"
        kind = _KINDS.get(step.outcome, "play") if is_last else "play"
        bar = axis.bar(look.time, until, kind, f"{label}: {took}")
        yield Row(label, took, bar)


def _tasks(hook: Operation) -> Iterator[Row]:
    """The tasks that took the longest."""
    tasks = [task for step in hook.steps for task in _slow_tasks(step, hook)]
    tasks.sort(key=lambda task: task.seconds, reverse=True)
    for task in tasks[:_SLOWEST]:
        width = round(100 * task.seconds / tasks[0].seconds, 3)
        took = in_words(task.seconds)
        yield Row(task.task, took, Bar(0, width, "task", took), task.play)


def _slow_tasks(step: Step, hook: Operation) -> Iterator[TaskTime]:
    """As timed by Ansible; without its times, as measured from look to look."""
    if step.summary.slowest:
        yield from (task for task in step.summary.slowest if task.seconds > 0)
        return
    looks = groupby(step.looks, key=lambda look: look.tasks)
    started = [next(of_task) for _, of_task in looks]
    for look, until in _with_ends(started, _end(step, hook)):
        if look.task and until > look.time:
            yield TaskTime(look.task, look.play_name, until - look.time)


def _with_ends(started: Sequence[Look], end: float) -> Iterator[tuple[Look, float]]:
    """Each look with the time of the next one, the last with *end*."""
    return zip(started, [*(look.time for look in started[1:]), end], strict=False)
