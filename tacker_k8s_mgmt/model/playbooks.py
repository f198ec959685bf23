# SPDX-License-Identifier: Apache-2.0
"""Playbook runs: requests, progress, remaining time, and their records in a journal.

The callback plugin on the Ansible server
(``remote/ansible/run_files/k8s_mgmt_events.py``) writes events, one JSON object per
line. They are used for progress and messages only; the exit code decides whether a run
succeeded.

The plugin also records the duration of each play of successful runs, and reports it
with the first play of a later run of the same kind. Without an earlier run there is no
estimate, because the number of tasks is not known beforehand.
"""

import hashlib
import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.text import in_line

#: Weight of the former pace, as a part of a whole run, beside this run's own.
_INERTIA = 0.1
_NUMBERS = ("no", "one", "two", "three", "four", "five")


@dataclass(frozen=True)
class Former:
    """Former runs of the same playbook, kubespray release and number of hosts.

    :param runs: their number.
    :param plays: median duration of each play in seconds.
    """

    runs: int
    plays: tuple[float, ...]

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> "Former | None":
        """Parse the event ``former``; None if it is invalid."""
        runs, plays = event.get("runs"), event.get("plays")
        if not isinstance(plays, list) or not plays:
            return None
        try:
            count = int(untrusted.number(runs))
            return cls(count, tuple(map(untrusted.number, plays))) if count else None
        except ValueError:
            return None

    def left(self, play: int, elapsed: float, in_play: float) -> float | None:
        """The remaining seconds of a run at its present pace.

        :param play: the number of the present play, from 1.
        :param elapsed: seconds since the first play began.
        :param in_play: seconds since the present play began.
        :returns: None if former runs had no such play.
        """
        if not 1 <= play <= len(self.plays):
            return None
        inertia = _INERTIA * sum(self.plays)
        usual = self.plays[play - 1]
        passed = sum(self.plays[: play - 1]) + min(in_play, usual)
        pace = (elapsed + inertia) / (passed + inertia) if inertia else 1.0
        rest = max(usual * pace - in_play, 0)
        return rest + pace * sum(self.plays[play:])


def in_words(left: float, runs: int) -> str:
    """An estimate as text, with its basis.

    :param left: seconds.
    :param runs: number of former runs.
    """
    minutes = max(round(left / 60), 1)
    hours, rest = divmod(minutes, 60)
    if left < 50:
        duration = "less than a minute"
    elif not hours:
        duration = f"about {minutes} min"
    else:
        duration = f"about {hours} h {rest} min" if rest else f"about {hours} h"
    number = _NUMBERS[runs] if runs < len(_NUMBERS) else str(runs)
    return f"{duration} left ({number} former {'run' if runs == 1 else 'runs'})"


_MESSAGE_CHARS = 300
_FULL_FAILURES = 3
_LISTED_FAILURES = 100
_MOST_FAILURES = 10_000  # that are kept; no more are counted
_NAMED_HOSTS = 10
_MOST_NOTES = 10
_SLOWEST = 8
_SHOWN = ("name", "host", "task", "message")


@dataclass(frozen=True)
class Forks:
    """Ansible's forks: the number of hosts that it works on at the same time.

    It does not affect the result of a run, so it is no part of a request.

    :param wanted: the user's number; None for that of the operator's ``ansible.cfg``,
        or else one that depends on the server's cores and memory.
    :param most: the limit of the latter.
    """

    wanted: int | None = None
    most: int = 100


DEFAULT_FORKS = Forks()


@dataclass(frozen=True)
class Means:
    """What makes runs faster without an effect on their result.

    :param strategy: a choice of the request's ``ansible.strategy``.
    :param resolves: whether kubespray's downloads are evaluated once in a run.
    """

    strategy: str = "linear"
    resolves: bool = False


#: Ansible as it is.
NO_MEANS = Means()


@dataclass(frozen=True)
class PlaybookRequest:
    """A request for a playbook run.

    :param playbook: path below kubespray's root, such as ``cluster.yml``.
    :param extra_vars: variables of this run only; those of the cluster are in the
        work directory.
    :param limit: Ansible host pattern that limits the run; "" for all hosts.
    :param inputs: other texts that affect the result (inventory, the cluster's
        variables), for the digest only.
    """

    playbook: str
    extra_vars: Mapping[str, Any] = field(default_factory=dict)
    limit: str = ""
    inputs: tuple[str, ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The playbook's name without directory and suffix."""
        return posixpath.splitext(posixpath.basename(self.playbook))[0]

    @property
    def digest(self) -> str:
        """SHA-256 over everything; equal requests have equal digests."""
        parts = [self.playbook, dict(self.extra_vars), self.limit, self.inputs]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class RunRecord:
    """The record of a run; times in epoch seconds of the Ansible server.

    ``rc`` is None while the run is live, and of a run that vanished.
    """

    run: str
    playbook: str
    digest: str
    log: str
    live: bool
    rc: int | None = None
    started: float | None = None
    ended: float | None = None


@dataclass(frozen=True)
class TaskFailure:
    """A task that failed on a host, or a host that could not be reached."""

    host: str
    task: str
    message: str
    unreachable: bool = False

    def __str__(self) -> str:
        if self.unreachable:
            return f"{self.host} is unreachable (task {self.task}): {self.message}"
        return f"{self.host}: {self.task}: {self.message}"


@dataclass(frozen=True)
class TaskTime:
    """The duration of a task on all hosts together, in seconds."""

    task: str
    play: str
    seconds: float


@dataclass(frozen=True)
class RunSummary:
    """What is known of a run when it has ended, beside its outcome.

    A sentence for people is a note (:attr:`Progress.notes`).

    :param slowest: the slowest tasks, the slowest first.
    """

    slowest: tuple[TaskTime, ...] = ()

    def __add__(self, other: "RunSummary") -> "RunSummary":
        """The summary of both runs together."""
        tasks = sorted(
            (*self.slowest, *other.slowest), key=lambda task: task.seconds, reverse=True
        )
        return RunSummary(tuple(tasks[:_SLOWEST]))

    def fields(self) -> dict[str, Any]:
        """Those of the run's last progress record, which :meth:`read` reads."""
        return {
            "slowest": [
                {
                    "task": time.task,
                    "play": time.play,
                    "seconds": round(time.seconds, 1),
                }
                for time in self.slowest
            ]
        }

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "RunSummary":
        """That of a progress record; empty unless it is the last of a run."""
        return cls(
            tuple(
                TaskTime(
                    untrusted.text_of(task, "task"),
                    untrusted.text_of(task, "play"),
                    untrusted.number_of(task, "seconds"),
                )
                for task in untrusted.values_of(record, "slowest")
                if isinstance(task, Mapping)
            )
        )


@dataclass(frozen=True)
class Progress:
    """A run by its events; times in seconds since the boot of the Ansible server.

    :param play_number: number of the present one of ``plays``, from 1.
    :param tasks: number of started tasks; the total is not known beforehand.
    :param results: number of results of hosts.
    :param started: start of the first play.
    :param play_started: start of the present play, not of its last batch of hosts.
    :param summary: of what has ended so far.
    :param former: former runs; None without any.
    :param seen: all failures; some may have been rescued later.
    :param notes: sentences that are shown below the step: which means the run uses,
        and why not others.
    :param recap: numbers of ``failed`` and ``unreachable`` results by host; None until
        Ansible reports them at the end.
    """

    plays: int = 0
    play_number: int = 0
    play: str = ""
    tasks: int = 0
    task: str = ""
    results: int = 0
    last_event: float = 0.0
    started: float = 0.0
    play_started: float = 0.0
    task_started: float = 0.0
    summary: RunSummary = field(default_factory=RunSummary)
    former: Former | None = None
    seen: tuple[TaskFailure, ...] = ()
    notes: tuple[str, ...] = ()
    recap: Mapping[str, Mapping[str, int]] | None = None

    @property
    def failures(self) -> tuple[TaskFailure, ...]:
        """The failures that were not rescued: the last one of each host.

        After such a failure a host takes no further part in the run, so it is the last
        one of a kind in the recap. Without a recap (the run was ended) it is the host's
        last failure of any kind.
        """
        last = {failure.host: failure for failure in self.seen if self._counts(failure)}
        return tuple(last.values())

    def _counts(self, failure: TaskFailure) -> bool:
        if self.recap is None:
            return True
        kind = "unreachable" if failure.unreachable else "failed"
        return self.recap.get(failure.host, {}).get(kind, 0) > 0

    @property
    def left(self) -> float | None:
        """The remaining seconds; None without a former run, and at the end."""
        if self.former is None or self.recap is not None:
            return None
        elapsed = self.last_event - self.started
        in_play = self.last_event - self.play_started
        return self.former.left(self.play_number, elapsed, in_play)

    def estimate(self) -> str:
        """The remaining time as text; "" if it is not known."""
        left = self.left
        if left is None or self.former is None:
            return ""
        return in_words(left, self.former.runs)

    def where(self) -> str:
        """The present play and task as text."""
        if not self.play:
            return "no play was started"
        place = f'play {self.play_number}/{self.plays} "{self.play}"'
        return f'{place}, task {self.tasks} "{self.task}"' if self.task else place


def described(failures: Iterable[TaskFailure]) -> tuple[str, ...]:
    """The first failures in full, and number and hosts of the others."""
    every = tuple(failures)
    lines = [str(failure) for failure in every[:_FULL_FAILURES]]
    others = [failure.host for failure in every[_FULL_FAILURES:]]
    if others:
        names = ", ".join(others[:_NAMED_HOSTS])
        more = ", ..." if len(others) > _NAMED_HOSTS else ""
        lines.append(f"{len(others)} more: {names}{more}")
    return tuple(lines)


def fold(
    progress: Progress, lines: Iterable[str], redact: Callable[[str], str] = str
) -> Progress:
    """The progress after further event lines; unknown lines are ignored.

    :param redact: removes secrets from names and messages.
    """
    for line in lines:
        # Ignore a line that was not written completely.
        with suppress(ValueError, TypeError, AttributeError, OverflowError):
            event = untrusted.parse_json(line)
            progress = _after(progress, _clean(event, redact))
    return progress


def _clean(event: Mapping[str, Any], redact: Callable[[str], str]) -> Mapping[str, Any]:
    shown = {k: in_line(redact(str(event[k]))) for k in _SHOWN if k in event}
    return {**event, **shown}


def _after(progress: Progress, event: Mapping[str, Any]) -> Progress:
    progress = replace(
        progress,
        # Its clock may be set while the run works.
        last_event=untrusted.number(
            event.get("up", event.get("time", progress.last_event))
        ),
        results=_count(event, "results", progress.results),
    )
    name = str(event.get("name", ""))
    match event.get("event"):
        case "note":
            text = str(event.get("message", ""))
            return replace(progress, notes=(*progress.notes, text)[:_MOST_NOTES])
        case "playbook":
            # A run may be repeated with another strategy.
            plays = _count(event, "plays", 0)
            return replace(
                Progress(plays=plays, notes=progress.notes),
                last_event=progress.last_event,
                results=progress.results,
            )
        case "former":
            return replace(progress, former=Former.read(event))
        case "play":
            return _next_play(_task_ended(progress), name, event)
        case "task":
            ended = _task_ended(progress)
            began = progress.last_event
            return replace(
                ended, task=name, tasks=progress.tasks + 1, task_started=began
            )
        case "failed" | "unreachable" if not event.get("ignored"):
            if len(progress.seen) >= _MOST_FAILURES:
                return progress
            return replace(progress, seen=(*progress.seen, _failure(event)))
        case "recap":
            return replace(_task_ended(progress), recap=_recap(event))
    return progress


def _count(event: Mapping[str, Any], name: str, default: int) -> int:
    return int(untrusted.number(event.get(name, default)))


def _recap(event: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    return {
        host: {kind: int(untrusted.number(count)) for kind, count in counts.items()}
        for host, counts in event.get("hosts", {}).items()
    }


def _next_play(progress: Progress, name: str, event: Mapping[str, Any]) -> Progress:
    """The progress at the start of a play, or of its next batch of hosts."""
    number = _count(event, "number", progress.play_number + 1)
    if number == progress.play_number:
        return replace(progress, task="")
    now = progress.last_event
    return replace(
        progress,
        play=name,
        play_number=number,
        task="",
        play_started=now,
        started=progress.started or now,
    )


def _task_ended(progress: Progress) -> Progress:
    if not progress.task:
        return progress
    seconds = progress.last_event - progress.task_started
    ended = RunSummary((TaskTime(progress.task, progress.play, seconds),))
    return replace(progress, summary=progress.summary + ended)


def _failure(event: Mapping[str, Any]) -> TaskFailure:
    message = " ".join(str(event.get("message", "")).split())
    if event.get("no_log"):
        message = "(censored by no_log)"
    return TaskFailure(
        host=str(event.get("host", "?")),
        task=str(event.get("task", "?")),
        message=_shortened(message) or "no message",
        unreachable=event.get("event") == "unreachable",
    )


def _shortened(text: str) -> str:
    """Cut out the middle: the reason is often at the end."""
    if len(text) <= _MESSAGE_CHARS:
        return text
    half = (_MESSAGE_CHARS - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


@dataclass(frozen=True)
class Look:
    """One look at a playbook that is under way.

    :param play: number among ``plays``, from 1; 0 before the first.
    :param tasks: number of tasks that have started.
    :param results: number of hosts' results.
    :param estimate: the time left, in words; "" if it is not known.
    """

    time: float
    text: str
    play: int
    plays: int
    play_name: str
    task: str
    tasks: int
    results: int
    estimate: str = ""

    @property
    def place(self) -> str:
        """The number of its play, and of the task that has started last."""
        return f"play {self.play}/{self.plays}, task {self.tasks}"


# Records in a journal, written and read. Those of earlier releases lack fields.


def progress_fields(progress: Progress) -> dict[str, Any]:
    """Those of a progress record, which :func:`look` and :class:`RunSummary` read."""
    found: dict[str, Any] = {
        "text": progress.where(),
        "play": progress.play_number,
        "plays": progress.plays,
        "play_name": progress.play,
        "task": progress.task,
        "tasks": progress.tasks,
        "results": progress.results,
    }
    left = progress.left
    if left is not None and progress.former is not None:
        found |= {"left": round(left), "former_runs": progress.former.runs}
    if progress.recap is not None:
        # Only at the end, when it is that of the whole run.
        found |= progress.summary.fields()
    return found


def look(record: Mapping[str, Any]) -> Look:
    """The look of a progress record."""
    play, plays, tasks, results, runs = (
        int(untrusted.number_of(record, key))
        for key in ("play", "plays", "tasks", "results", "former_runs")
    )
    left = untrusted.number_of(record, "left")
    return Look(
        time=untrusted.number_of(record, "time"),
        text=untrusted.text_of(record, "text"),
        play=play,
        plays=plays,
        play_name=untrusted.text_of(record, "play_name"),
        task=untrusted.text_of(record, "task"),
        tasks=tasks,
        results=results,
        estimate=in_words(left, runs) if runs > 0 else "",
    )


def failure_fields(failures: Iterable[TaskFailure]) -> list[dict[str, str]]:
    """The first failures of an operation's end, which :func:`failed_tasks` reads."""
    return [
        {"host": failure.host, "task": failure.task, "message": failure.message}
        for failure in islice(failures, _LISTED_FAILURES)
    ]


def failed_tasks(record: Mapping[str, Any]) -> Iterator[TaskFailure]:
    """The failed tasks of the record of an operation's end."""
    for task in untrusted.values_of(record, "failed_tasks"):
        if isinstance(task, Mapping):
            host, name, message = (
                untrusted.text_of(task, key) for key in ("host", "task", "message")
            )
            yield TaskFailure(host, name, message)
