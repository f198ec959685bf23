# SPDX-License-Identifier: Apache-2.0
"""Calls of hooks that plan: the hooks' own code, on a site that is read only.

A hook of Tacker makes its operation and has :meth:`.Hook.run` take the steps. Here
``run`` plans them instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.hook import Hook
from tacker_k8s_mgmt.model.plan import (
    JOINS,
    TO_DO,
    NodeChange,
    Plan,
    PlannedStep,
    Refusal,
)
from tacker_k8s_mgmt.operations.plan import plan_of
from tacker_k8s_mgmt.operations.step import Operation

#: The operations that can be planned, as the paths of Tacker's API end.
HEAL, SCALE, MODIFY, UPGRADE = "heal", "scale", "modify", "change_vnfpkg"


@dataclass(frozen=True)
class ClusterPlan:
    """What an operation would do to a cluster.

    :param state_path: where its journal is.
    """

    vnf_id: str
    name: str
    api: str
    state_path: str
    plan: Plan


class Planning:
    """The plan of an operation's hooks, up to the first that would fail."""

    def __init__(self) -> None:
        self.plan = Plan()

    def call(self, hook: Callable[[], object]) -> None:
        """Add what a hook would do, if it is called at all."""
        if self.plan.refusal:
            return
        try:
            hook()
        except errors.K8sMgmtError as error:
            self.plan += Plan(refusal=Refusal("", str(error)))

    def create(self, number: int) -> None:
        """Add the workers whose VMs Heat creates between the hooks."""
        new = NodeChange(f"{number} new", JOINS, "Heat creates VM and address")
        step = PlannedStep("", "create-vms", "create the VMs", TO_DO, (new,))
        if not self.plan.refusal:
            self.plan += Plan((step,))


class PlanningHook(Hook):
    """A call of a hook that plans; it precedes the hook of the API among the bases.

    :ivar planning: gets the plan.
    """

    planning: Planning

    def begin(self) -> None:
        """Nothing: no operation of Tacker begins."""

    def run(self, operation: Operation, **_: Any) -> None:
        """Plan the steps of an operation; see :meth:`.Hook.run`."""
        self.planning.plan += plan_of(operation, self.name, self._redact)
