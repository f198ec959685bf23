# SPDX-License-Identifier: Apache-2.0
"""Calls of hooks that plan: the hooks' own code, on a site that is read only.

A hook of Tacker makes its operation and has :meth:`.Hook.run` take the steps. Here
``run`` plans them instead.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.hook import Hook
from tacker_k8s_mgmt.model.plan import (
    CHECKED,
    JOINS,
    TO_DO,
    Difference,
    NodeChange,
    Plan,
    PlannedStep,
    Refusal,
)
from tacker_k8s_mgmt.operations.plan import plan_of
from tacker_k8s_mgmt.operations.step import Operation
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.reader import ClusterRequest

_PARAMETERS = "parameters"
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

    def change_parameters(self, hook: str, changes: Iterable[Difference]) -> None:
        """Add what the request changes of the parameters, once."""
        effects = tuple(changes)
        if effects and not any(one.kind == _PARAMETERS for one in self.plan.steps):
            name = "read the parameters"
            step = PlannedStep(hook, _PARAMETERS, name, CHECKED, effects)
            self.plan += Plan((step,))

    def create(self, number: int) -> None:
        """Add the workers whose VMs Heat creates between the hooks."""
        new = NodeChange(f"{number} new", JOINS, "Heat creates VM and address")
        step = PlannedStep("", "create-vms", "create the VMs", TO_DO, (new,))
        if number and not self.plan.refusal:
            self.plan += Plan((step,))


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The attributes of a structure by their dotted names, as text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif value is not None:
        text = isinstance(value, str)
        yield name, value if text else json.dumps(value, sort_keys=True)


class PlanningHook(Hook):
    """A call of a hook that plans; it precedes the hook of the API among the bases.

    :ivar planning: gets the plan.
    """

    planning: Planning

    def begin(self) -> None:
        """Nothing: no operation of Tacker begins."""

    def request(self, **how: Any) -> ClusterRequest | None:
        """See :meth:`.Hook.request`; what it changes is a part of the plan."""
        found = super().request(**how)
        if found:
            self.planning.change_parameters(self.name, self._changed(found))
        return found

    def _changed(self, request: ClusterRequest) -> Iterator[Difference]:
        stored, later = self.parameters()
        # Without secrets: they are not compared, and never shown.
        before, given = (
            dict(_leaves(reader.without_secrets(one or {}).get(reader.ATTRIBUTE)))
            for one in (stored, later)
        )
        for name, value in given.items():
            if before.get(name) != value:
                yield Difference(name, before.get(name), value)
        for name in sorted(request.changed_logins):
            yield Difference(f"{name}: login", "the former one", "that of the request")

    def run(self, operation: Operation, **_: Any) -> None:
        """Plan the steps of an operation; see :meth:`.Hook.run`."""
        self.planning.plan += plan_of(operation, self.name, self._redact)
