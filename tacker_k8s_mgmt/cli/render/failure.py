# SPDX-License-Identifier: Apache-2.0
"""Why a hook failed, as a list, and the commands that an operator may send next."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tacker_k8s_mgmt.model.playbook_records import FailedTask
from tacker_k8s_mgmt.model.timeline import Operation

# As the hooks write them in their advice.
_VERB = re.compile(r"`(retry|rollback|fail)`")
_SAME_HOSTS = 20


@dataclass(frozen=True)
class TaskFailure:
    """A task that failed with one message.

    :param hosts: on which it did.
    :param more: how many others there are.
    """

    hosts: tuple[str, ...]
    more: int
    task: str
    message: str


@dataclass(frozen=True)
class Failure:
    """What failed.

    :param step: the last one, with its place.
    :param tasks: of a playbook.
    :param problems: one sentence each, for another failure.
    :param text: all of it, as Tacker shows it.
    :param advice: what to do next, if it is not only in the text.
    :param commands: whole command lines.
    """

    step: str
    tasks: tuple[TaskFailure, ...]
    problems: tuple[str, ...]
    text: str
    advice: str
    commands: tuple[str, ...]


def of(hook: Operation, vnf_id: str = "") -> Failure | None:
    """The failure of a hook; None if it did not fail.

    :param vnf_id: the VNF instance, if its operation waits for what is sent next.
    """
    if not hook.error:
        return None
    step = hook.steps[-1] if hook.steps else None
    return Failure(
        step=f"{hook.hook}, step {step.place}: {step.name}" if step else hook.hook,
        tasks=tuple(_grouped(hook.failed_tasks)),
        problems=hook.problems,
        text=hook.error,
        advice=hook.advice,
        commands=tuple(_commands(hook, vnf_id)) if vnf_id else (),
    )


def _grouped(tasks: Iterable[FailedTask]) -> Iterator[TaskFailure]:
    """Most playbooks fail for one reason on many hosts."""
    groups: dict[tuple[str, str], list[str]] = {}
    for task in tasks:
        groups.setdefault((task.task, task.message), []).append(task.host)
    for (name, message), hosts in groups.items():
        shown = tuple(hosts[:_SAME_HOSTS])
        yield TaskFailure(shown, len(hosts) - len(shown), name, message)


def _commands(hook: Operation, vnf_id: str) -> Iterator[str]:
    verbs = dict.fromkeys(_VERB.findall(hook.advice or hook.error))
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
