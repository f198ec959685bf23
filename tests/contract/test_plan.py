# SPDX-License-Identifier: Apache-2.0
"""The plan of an operation, and the operation after it, on the model of everything.

Before each operation of a history its plan is taken: from a whole cluster, and from
whatever faults, killed conductors and VMs that died have left. If nothing goes wrong
meanwhile, the operation then does what the plan says, or fails as it says. A plan
changes nothing (:func:`tests.helpers.model.planning.plan`).
"""

import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, note, settings

from tacker_k8s_mgmt.model.plan import (
    JOINS,
    LEAVES,
    LOAD_BALANCER,
    REBUILT,
    REMOVED,
    Plan,
)
from tests.helpers.fakes.cluster import marks_of
from tests.helpers.model import planning
from tests.helpers.model.history import STATEFUL, History
from tests.helpers.model.tacker import CALM, Operation, Stage, Troubles
from tests.helpers.model.v1 import V1
from tests.helpers.model.v2 import V2

CAMPAIGN = os.environ.get("K8S_MGMT_HISTORIES")


@pytest.fixture(autouse=True)
def _quiet():
    """Without the logs of thousands of operations."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


#: Without shortening: a plan before each operation makes that slow.
PHASES = (Phase.explicit, Phase.generate)


class Planned(History):
    """Histories with a plan before each operation."""

    def _send(self, operation: Operation, troubles: Troubles = CALM) -> None:
        if operation.kind not in planning.KINDS:
            super()._send(operation, troubles)
            return
        plan = planning.plan(self.tacker, operation)
        note(f"plan of {operation.kind.name}: {plan}")
        before = self._nodes(), self._members(), self._settings()
        super()._send(operation, troubles)
        if troubles == CALM:
            problems = list(self._differences(operation, plan, *before))
            assert not problems, f"{operation.kind.name}: {problems} {operation.text}"

    @staticmethod
    def _is_later(operation: Operation) -> bool:
        """Whether it failed after Heat's work, of which a plan knows no outcome."""
        return operation.stage is not Stage.START

    def _nodes(self) -> dict[str, str]:
        """The server of each Node object."""
        return {n.name: n.machine_id for n in self.tacker.site.cluster_nodes}

    def _members(self) -> dict[str, str]:
        """The same of the full members."""
        full = self.tacker.site.full_members()
        return {name: one for name, one in self._nodes().items() if one in full}

    def _settings(self) -> dict[str, str]:
        """Labels, taints and maintenance of the Node objects, in words."""
        return {
            f"{one.name}: {words}": value
            for one in marks_of(self.tacker.site)
            for words, value in one.shown().items()
            # The driver's own notes are no settings.
            if "tacker-k8s-mgmt/" not in words
        }

    def _changed(self, before: dict[str, str]) -> set[tuple[str, str | None, Any]]:
        after = self._settings()
        return {
            (what, before.get(what), after.get(what))
            for what in before.keys() | after.keys()
            if before.get(what) != after.get(what)
        }

    def _differences(
        self,
        operation: Operation,
        plan: Plan,
        nodes: dict[str, str],
        members: dict[str, str],
        settings: dict[str, str],
    ) -> Iterator[str]:
        """Where plan and operation differ."""
        done = self.tacker.failed is None
        if plan.refusal:
            if done or plan.refusal.text not in operation.text:
                yield f"the plan refuses: {plan.refusal}"
        elif plan.held:
            if done or "could not be drained" not in operation.text:
                yield f"the plan has pods held: {plan.held}"
        elif not done and not self._is_later(operation):
            yield "the plan knows of no failure"
        if done:
            changed = {(one.what, one.former, one.wanted) for one in plan.differences}
            if operation.patch and changed != self._changed(settings):
                yield f"{self._changed(settings)} have changed"
            yield from self._other_nodes(plan, nodes, members)
        elif {*self._nodes()} != {*nodes} and not self._is_later(operation):
            yield "it has failed, and other nodes are there"

    def _other_nodes(
        self, plan: Plan, nodes: dict[str, str], members: dict[str, str]
    ) -> Iterator[str]:
        """Which nodes have come and gone otherwise."""
        after, left = self._members(), self._nodes()
        joined = {n for n, one in after.items() if one not in members.values()}
        gone = {name for name in nodes if left.get(name) != nodes[name]}
        planned = {k: {n.node for n in plan.nodes if n.change == k} for k in _CHANGES}
        expected = planned[JOINS] | planned[REBUILT] - {LOAD_BALANCER}
        # Whose address is not known yet.
        unnamed = {name for name in expected if " " in name}
        number = sum(int(name.split()[0]) for name in unnamed if " new" in name)
        number += len([name for name in unnamed if " new" not in name])
        others = joined - expected
        if unnamed and len(others) == number:
            joined, expected = joined - others, expected - unnamed
        if joined != expected:
            yield f"{joined} have joined"
        leaving = planned[LEAVES] | planned[REMOVED] | planned[REBUILT]
        more = gone - leaving
        if len(more) <= len({one for one in planned[REBUILT] if "VNFC" in one}):
            gone -= more
        if gone != leaving & nodes.keys():
            yield f"{gone} are gone"


_CHANGES = (LEAVES, REBUILT, JOINS, REMOVED)


class PlannedV1(Planned):
    api = V1


class PlannedV2(Planned):
    api = V2


_PROFILE = settings(
    STATEFUL,
    max_examples=int(CAMPAIGN or 100),
    derandomize=not CAMPAIGN,
    phases=PHASES,
)
TestV1 = PlannedV1.TestCase
TestV1.settings = _PROFILE
TestV2 = PlannedV2.TestCase
TestV2.settings = _PROFILE
