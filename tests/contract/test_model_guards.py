# SPDX-License-Identifier: Apache-2.0
"""The histories of :mod:`.test_model` find each guard that is taken out of the product.

A guard is taken out by changing one place of a function's source. Most are found within
some ten histories. Those that need two or three faults in a row are left to campaigns::

    K8S_MGMT_HISTORIES=1000 python -m pytest tests/contract/test_model_guards.py
"""

import inspect
import logging
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tacker_k8s_mgmt.hooks.v1 import group_sizes
from tacker_k8s_mgmt.hooks.v2 import driver
from tacker_k8s_mgmt.operations import balancing, compare, leave
from tacker_k8s_mgmt.operations.heal import HealEnd
from tacker_k8s_mgmt.operations.join import Join
from tacker_k8s_mgmt.operations.leave import Leave
from tacker_k8s_mgmt.operations.scale import ScaleIn
from tacker_k8s_mgmt.topology import membership
from tests.helpers.model.history import STATEFUL, History
from tests.helpers.model.v1 import V1
from tests.helpers.model.v2 import V2

#: Histories until a missing guard has to be found.
MOST = int(os.environ.get("K8S_MGMT_HISTORIES", "300"))


@dataclass(frozen=True)
class Guard:
    """A guard of the product.

    :param what: what it keeps.
    :param api: whose histories find that it is missing.
    :param function: has it.
    :param old: its place in the source.
    :param new: what is there without it.
    :param found: what the histories report then.
    :param rules: what happens in these histories, so that they come to it soon.
    :param rare: they come to it late, so it is left to campaigns.
    :param besides: another guard that keeps the same, which goes with it: its function,
        its place and what is there without it.
    """

    what: str
    api: type
    function: Callable[..., Any]
    old: str
    new: str
    found: str
    rules: tuple[str, ...]
    rare: bool = False
    besides: tuple[Callable[..., Any], str, str] | None = None


GUARDS = (
    Guard(
        "a heal keeps healthy workers that Tacker's scale level does not count",
        V1,
        group_sizes._follow,
        "if kept == counted:",
        "if True:",
        "Heat deleted the member",
        ("scale_out", "heal_workers"),
    ),
    Guard(
        "a scaling keeps workers that Tacker does not count",
        V2,
        driver._see_counted,
        "if more:",
        "if False:",
        "Heat deleted the member|Heat replaced",
        ("scale_out", "scale_in"),
        besides=(ScaleIn._see_choice, "if not wrong and not kept:", "if True:"),
    ),
    Guard(
        "a rollback is not advised that would delete other workers",
        V1,
        group_sizes.advice_after_scale_out,
        "if after is None or after == before:",
        "if True:",
        "Heat deleted the member",
        ("scale_out", "heal_workers"),
        rare=True,
    ),
    Guard(
        "operations hold the cluster's lock",
        V2,
        compare.compare,
        "state.site.lock()",
        "pass",
        "without the cluster's lock",
        ("label",),
    ),
    Guard(
        "what a VM that is gone left behind is removed",
        V2,
        Join.choose,
        "(*members.vm_gone, *members.rebuilt)",
        "members.rebuilt",
        "its VM is gone",
        ("vm_is_deleted", "scale_out"),
    ),
    Guard(
        "a blocked drain puts its nodes back into service",
        V2,
        Leave.drain,
        "self._return_to_service()",
        "pass",
        "not taken back",
        ("pods_are_kept", "scale_in"),
    ),
    Guard(
        "a node with pods that have somewhere to go is not removed",
        V2,
        Leave.drain,
        "if not (stranded and self._tries_to_drain):",
        "if False:",
        "with its pods",
        ("pods_are_kept", "scale_in"),
    ),
    Guard(
        "a heal does not end well without the VM",
        V1,
        HealEnd._verify_rebuilt,
        "if missing:",
        "if False:",
        "Heat has not completed",
        ("heal_workers",),
    ),
    Guard(
        "a worker whose Node object is gone joins again",
        V2,
        membership.compare,
        "node.server_id in joined and node.name in seen",
        "node.server_id in joined",
        "has no Node object",
        ("node_object_is_deleted", "heal_workers"),
    ),
    Guard(
        "a VM that took over an address does not hold up others",
        V1,
        leave._replaced,
        "due.get(n.name, n.server_id) != n.server_id",
        "False",
        "failed for no reason|no help|is not in the inventory|Node object",
        ("vm_is_deleted", "scale_out", "heal_workers"),
        rare=True,
    ),
    Guard(
        "a half-built load balancer does not say what is to be exposed",
        V2,
        balancing.status,
        "if not is_complete(state, seen):",
        "if False:",
        "exposed: ",
        ("service_is_exposed", "heal_balancer"),
        rare=True,
    ),
    Guard(
        "nodes in maintenance have no routes",
        V2,
        balancing._servers,
        "if state.in_service(node)",
        "if True",
        "route True, maintenance True",
        ("maintain", "heal_workers"),
    ),
    Guard(
        "the host key of a rebuilt VM is learned again",
        V2,
        Join.reach_new,
        "playbook_inputs.forget_new(self._state, nodes, nodes)",
        "pass",
        "failed for no reason|no help",
        ("vm_is_deleted", "scale_out"),
    ),
)


def take_out(monkeypatch: pytest.MonkeyPatch, guard: Guard) -> None:
    """Have the functions run without the guard, wherever they were imported."""
    change(monkeypatch, guard.function, guard.old, guard.new)
    if guard.besides:
        change(monkeypatch, *guard.besides)


def change(monkeypatch: pytest.MonkeyPatch, function: Any, old: str, new: str) -> None:
    """Have the function run with another text at one place of its source."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, "the guard is not where it was"
    made: dict[str, Any] = {}
    changed = source.replace(old, new)
    code = compile(changed, str(inspect.getsourcefile(function)), "exec")
    exec(code, function.__globals__, made)  # noqa: S102
    monkeypatch.setattr(function, "__code__", made[function.__name__].__code__)


@pytest.fixture(autouse=True)
def _quiet():
    """Without the logs of thousands of operations."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.what)
def test_histories_find_that_a_guard_is_missing(monkeypatch, guard):
    if guard.rare and "K8S_MGMT_HISTORIES" not in os.environ:
        pytest.skip("for campaigns")
    take_out(monkeypatch, guard)
    only = ("instantiate", "follow_advice", *guard.rules)
    histories = type("Histories", (History,), {"api": guard.api, "only": only})
    profile = settings(
        STATEFUL, max_examples=MOST, derandomize=True, phases=[Phase.generate]
    )
    with pytest.raises(AssertionError, match=guard.found):
        run_state_machine_as_test(histories, settings=profile)
