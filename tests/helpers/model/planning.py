# SPDX-License-Identifier: Apache-2.0
"""Plans of operations on the model, by the hooks of both APIs."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tacker_k8s_mgmt.hooks import planning
from tacker_k8s_mgmt.hooks.planning import Planning, PlanningHook
from tacker_k8s_mgmt.hooks.v1 import group_sizes
from tacker_k8s_mgmt.hooks.v1.planning import PlannedInstance, V1Plans
from tacker_k8s_mgmt.hooks.v2 import planning as v2_planning
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.model.plan import Plan
from tacker_k8s_mgmt.remote.readonly_site import UnwrittenFiles
from tests.helpers.model.faults import _CHANGES, NONE, Ported
from tests.helpers.model.parts import ModelWorkDir
from tests.helpers.model.site import ModelSite
from tests.helpers.model.tacker import Kind, Operation, Tacker
from tests.helpers.model.v1 import V1
from tests.helpers.model.v1_objects import ModelHook
from tests.helpers.model.v2 import V2, ModelV2Hook

#: The operations that can be planned.
KINDS = {
    Kind.SCALE_IN: planning.SCALE,
    Kind.SCALE_OUT: planning.SCALE,
    Kind.HEAL: planning.HEAL,
    Kind.MODIFY: planning.MODIFY,
}


class _Files(UnwrittenFiles, ModelWorkDir):
    """The cluster's directory, whose writes are kept in memory."""


class _ReadOnly(Ported):
    """The model's site as a plan sees it."""

    def __init__(self, site: ModelSite) -> None:
        super().__init__(site, "site", site.gate)
        self._files = _Files(site)
        self._files.written = {}

    @property
    def workdir(self) -> _Files:
        return self._files

    def lock(self) -> None:
        """None is taken."""

    def save_host_keys(self) -> None:
        """They are kept in memory."""


@contextmanager
def _seen(tacker: Tacker, **more: Any) -> Iterator[Any]:
    tacker.site.gate.open(NONE)
    for name, value in more.items():
        setattr(tacker.site, name, value)
    yield _ReadOnly(tacker.site)


class _V1Hook(PlanningHook, ModelHook):
    def site(self, params: Any) -> Any:
        return _seen(self._tacker)


class _V2Hook(PlanningHook, ModelV2Hook):
    def site(self, params: Any) -> Any:
        return _seen(self._tacker, vims=self.vims())


def plan(tacker: Tacker, operation: Operation) -> Plan:
    """The plan of an operation.

    :raises AssertionError: it has changed something.
    """
    before = _everything(tacker)
    of_api: Any = _of_v1 if isinstance(tacker, V1) else _of_v2
    found: Plan = of_api(tacker, operation)
    changes = {f"{port}.{call}" for port, calls in _CHANGES.items() for call in calls}
    assert not changes & set(tacker.site.gate.calls)
    assert _everything(tacker) == before
    return found


def _everything(tacker: Any) -> Any:
    """All that can be changed: the cluster, Heat, the Ansible server, Tacker."""
    site = {n: v for n, v in vars(tacker.site).items() if n not in _NOTES}
    return copy.deepcopy((site, tacker.instance, tacker.journal.records))


#: What only tells of calls, or is a part.
_NOTES = {"gate", "calls", "tried", "expected", "vims", "features"}


def _of_v1(tacker: V1, operation: Operation) -> Plan:
    made = Planning()

    def make(name: str, *_: Any) -> _V1Hook:
        hook = _V1Hook(name, tacker, operation, NONE)
        hook.planning = made
        body = {"metadata": operation.patch, "vnfcInstanceId": list(operation.vnfcs)}
        record = copy.deepcopy(tacker.instance)
        hook.instance = _Instance(None, record, body)
        return hook

    one = make("scale_start")
    plans = V1Plans(made, one.instance, make)
    if operation.kind is Kind.MODIFY:
        plans.modify()
    elif operation.kind is Kind.HEAL:
        plans.heal(one.sent.sent)
    else:
        with mock.patch.object(group_sizes, "step_size", return_value=1):
            plans.scale(one.sent.sent, tacker._leaving_stacks)
    return made.plan


class _Instance(PlannedInstance):
    def package(self) -> str:
        return "/nowhere"


def _of_v2(tacker: V2, operation: Operation) -> Plan:
    made, instance = Planning(), copy.deepcopy(tacker.instance)
    grant = tacker._grant(operation.kind)
    call = HookCall("", tacker._request(operation), instance, grant, "/nowhere")

    def make(one: HookCall) -> _V2Hook:
        hook = _V2Hook(one, tacker, NONE)
        hook.planning = made
        return hook

    v2_planning.call_hooks(made, KINDS[operation.kind], instance, call, make)
    return made.plan
