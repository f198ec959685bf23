# SPDX-License-Identifier: Apache-2.0
"""The plan of an operation: its own steps, without what they change.

A step that only reads is taken, so a plan finds and refuses what the operation does.
Of any other one its probe is asked, and then what it would do. The site is a
:class:`~tacker_k8s_mgmt.remote.readonly_site.ReadOnlySite`, which keeps in memory what
steps write into the cluster's directory.
"""

from collections.abc import Callable

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.plan import (
    CHECKED,
    REFUSED,
    TO_DO,
    UNNEEDED,
    Plan,
    PlannedStep,
    Refusal,
)
from tacker_k8s_mgmt.operations.step import Operation, Step


def plan_of(operation: Operation, hook: str, redact: Callable[[str], str]) -> Plan:
    """The plan of an operation; it ends at the first step that would fail.

    :param hook: whose work the operation is.
    """
    planned: list[PlannedStep] = []
    for step in operation.steps():  # which may grow meanwhile
        try:
            outcome = _asked(step)
            effects = tuple(step.effects()) if outcome != UNNEEDED else ()
        except errors.K8sMgmtError as error:
            planned.append(PlannedStep(hook, step.kind, step.name, REFUSED))
            return Plan(tuple(planned), Refusal(step.name, redact(str(error))))
        planned.append(PlannedStep(hook, step.kind, step.name, outcome, effects))
    return Plan(tuple(planned))


def _asked(step: Step) -> str:
    if step.reads or step.rehearsed:
        is_needed = step.take() != UNNEEDED
        taken = CHECKED if step.reads else TO_DO
        return taken if is_needed else UNNEEDED
    return UNNEEDED if step.probe and step.probe() else TO_DO
