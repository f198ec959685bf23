# SPDX-License-Identifier: Apache-2.0
"""What the records of a journal have of playbooks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt.model import journal_fields as fields
from tacker_k8s_mgmt.model import playbook_estimates


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


@dataclass(frozen=True)
class SlowTask:
    """One of the tasks of a playbook that took longest, as Ansible timed it."""

    task: str
    play: str
    seconds: float


@dataclass(frozen=True)
class FailedTask:
    """A task of a playbook that failed on a host."""

    host: str
    task: str
    message: str


def look(record: Mapping[str, Any]) -> Look:
    """The look of a progress record."""
    play, plays, tasks, results, runs = (
        int(fields.number(record, key))
        for key in ("play", "plays", "tasks", "results", "former_runs")
    )
    left = fields.number(record, "left")
    return Look(
        time=fields.number(record, "time"),
        text=fields.text(record, "text"),
        play=play,
        plays=plays,
        play_name=fields.text(record, "play_name"),
        task=fields.text(record, "task"),
        tasks=tasks,
        results=results,
        estimate=playbook_estimates.in_words(left, runs) if runs > 0 else "",
    )


def slowest(record: Mapping[str, Any]) -> Iterator[SlowTask]:
    """The slowest tasks of a progress record."""
    for task in fields.values(record, "slowest"):
        if isinstance(task, Mapping):
            seconds = fields.number(task, "seconds")
            yield SlowTask(
                fields.text(task, "task"), fields.text(task, "play"), seconds
            )


def failed_tasks(record: Mapping[str, Any]) -> Iterator[FailedTask]:
    """The failed tasks of the record of an operation's end."""
    for task in fields.values(record, "failed_tasks"):
        if isinstance(task, Mapping):
            yield FailedTask(
                *(fields.text(task, key) for key in ("host", "task", "message"))
            )
