"""Playbook runs as values: what is asked, what is recorded, how far one has come.

The events come from our callback plugin on the Ansible server
(``remote/ansible/run_files/k8s_mgmt_events.py``), one JSON object per line. They serve
for progress and for messages; whether a run succeeded is told by its exit code alone.
"""

import hashlib
import json
import posixpath
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from tacker_k8s_mgmt.model import playbook_estimates
from tacker_k8s_mgmt.model.playbook_estimates import Former

_MESSAGE_CHARS = 300
_FULL_FAILURES = 3
_NAMED_HOSTS = 10
_SLOWEST = 8
_SHOWN = ("name", "host", "task", "message")


@dataclass(frozen=True)
class Forks:
    """How many hosts Ansible works on at the same time.

    It changes how long a run takes and not what it does, so it is no part of a request.

    :param wanted: the number that the user wants; None to leave it to the server, where
        the operator's ``ansible.cfg`` or else cores and memory decide.
    :param most: limit of what cores and memory decide.
    """

    wanted: int | None = None
    most: int = 100


DEFAULT_FORKS = Forks()


@dataclass(frozen=True)
class PlaybookRequest:
    """One playbook run that somebody wants.

    :param playbook: path below kubespray's root, such as ``cluster.yml``.
    :param extra_vars: variables of this run only; those of the cluster are in the
        work directory.
    :param args: further arguments for ``ansible-playbook``; no secrets.
    :param inputs: texts that decide the outcome too (inventory, the cluster's
        variables); they only go into the digest.
    """

    playbook: str
    extra_vars: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    args: tuple[str, ...] = ()
    inputs: tuple[str, ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The playbook's name without folder and suffix."""
        return posixpath.splitext(posixpath.basename(self.playbook))[0]

    @property
    def digest(self) -> str:
        """SHA-256 over everything: equal digests mean that the same is wanted."""
        parts = [self.playbook, dict(self.extra_vars), self.args, self.inputs]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class RunRecord:
    """What is recorded of a run; times in epoch seconds of the Ansible server.

    ``rc`` is None while the run is live, and of one that vanished.
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
class Failure:
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
    """How long all hosts together took for a task, seconds."""

    task: str
    play: str
    seconds: float


@dataclass(frozen=True)
class Progress:
    """A run as its events tell it; times in epoch seconds of the Ansible server.

    :param play_number: which of ``plays`` is running, from 1.
    :param tasks: how many tasks were started; the total is not known beforehand.
    :param results: how many results of hosts have come.
    :param started: when the first play began.
    :param play_started: when the play that is running began, not its last batch.
    :param slowest: the tasks that took longest so far, the longest first.
    :param former: what former runs took; None where there is none.
    :param seen: failures as they came; some may have been rescued later.
    :param recap: per host how often it ``failed`` or was ``unreachable``; None until
        Ansible reports it at the end.
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
    slowest: tuple[TaskTime, ...] = ()
    former: Former | None = None
    seen: tuple[Failure, ...] = ()
    recap: Mapping[str, Mapping[str, int]] | None = None

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failures that count: per host the last one that was not rescued.

        After a failure that counts, a host takes no further part, so the last one of
        the kind that the recap counts is the one. Without a recap (the run was ended)
        every host's last one is given.
        """
        last = {failure.host: failure for failure in self.seen if self._counts(failure)}
        return tuple(last.values())

    def _counts(self, failure: Failure) -> bool:
        if self.recap is None:
            return True
        kind = "unreachable" if failure.unreachable else "failed"
        return self.recap.get(failure.host, {}).get(kind, 0) > 0

    @property
    def left(self) -> float | None:
        """Seconds that it still takes; None without a former run, and at its end."""
        if self.former is None or self.recap is not None:
            return None
        elapsed = self.last_event - self.started
        in_play = self.last_event - self.play_started
        return self.former.left(self.play_number, elapsed, in_play)

    def estimate(self) -> str:
        """Return how long it still takes in words; "" where that is not known."""
        left = self.left
        if left is None or self.former is None:
            return ""
        return playbook_estimates.in_words(left, self.former.runs)

    def where(self) -> str:
        """Return the place in the playbook in words."""
        if not self.play:
            return "no play was started"
        place = f'play {self.play_number}/{self.plays} "{self.play}"'
        return f'{place}, task {self.tasks} "{self.task}"' if self.task else place


def described(failures: Iterable[Failure]) -> tuple[str, ...]:
    """Return the first failures in full, and number and hosts of the others."""
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
    """Return the progress after further event lines; unknown lines are passed over.

    :param redact: takes secrets out of names and messages.
    """
    for line in lines:
        # A line that was not written whole is none of the plugin's.
        with suppress(ValueError, TypeError, AttributeError):
            event = json.loads(line)
            progress = _after(progress, _clean(event, redact))
    return progress


def _clean(event: Mapping[str, Any], redact: Callable[[str], str]) -> Mapping[str, Any]:
    shown = {key: redact(str(event[key])) for key in _SHOWN if key in event}
    return {**event, **shown}


def _after(progress: Progress, event: Mapping[str, Any]) -> Progress:
    progress = replace(
        progress,
        last_event=float(event.get("time", progress.last_event)),
        results=int(event.get("results", progress.results)),
    )
    name = str(event.get("name", ""))
    match event.get("event"):
        case "playbook":
            return replace(progress, plays=int(event.get("plays", 0)))
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
            return replace(progress, seen=(*progress.seen, _failure(event)))
        case "recap":
            return replace(_task_ended(progress), recap=event.get("hosts", {}))
    return progress


def _next_play(progress: Progress, name: str, event: Mapping[str, Any]) -> Progress:
    """The progress in the play that an event begins, or in its next batch of hosts."""
    number = int(event.get("number", progress.play_number + 1))
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
    timed = (*progress.slowest, TaskTime(progress.task, progress.play, seconds))
    slowest = sorted(timed, key=lambda one: one.seconds, reverse=True)[:_SLOWEST]
    return replace(progress, slowest=tuple(slowest))


def _failure(event: Mapping[str, Any]) -> Failure:
    message = " ".join(str(event.get("message", "")).split())
    if event.get("no_log"):
        message = "(censored by no_log)"
    return Failure(
        host=str(event.get("host", "?")),
        task=str(event.get("task", "?")),
        message=_shortened(message) or "no message",
        unreachable=event.get("event") == "unreachable",
    )


def _shortened(text: str) -> str:
    """Cut out the middle: what happened comes first, why often comes last."""
    if len(text) <= _MESSAGE_CHARS:
        return text
    half = (_MESSAGE_CHARS - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
