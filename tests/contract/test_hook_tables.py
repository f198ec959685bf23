# SPDX-License-Identifier: Apache-2.0
"""The tables of hooks of both APIs, and what Tacker has for their operations."""

import inspect
import re

import pytest

from tacker_k8s_mgmt.hooks.v1.hook import V1Hook

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver import (
    VnflcmMgmtAbstractDriver as Abstract,
)

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.advice import V1_HEAL_OF_ALL, V2_HEAL_OF_ALL
from tacker_k8s_mgmt.hooks.hook import Entry
from tacker_k8s_mgmt.hooks.v1 import driver as v1
from tacker_k8s_mgmt.hooks.v1 import instance as checkpoint
from tacker_k8s_mgmt.hooks.v2 import driver as v2
from tests.contract.v1_instances import instance

NO_ROLLBACK = {
    # A scale-in has none; of a scale-out, this API calls scale_end only.
    "v1": ("terminate", "scale_start", "heal", "change_external_connectivity"),
    "v2": ("terminate", "heal"),
}
HOOKS = {
    "v1": {name: method.hook for name, method in v1.HOOKS.items()},
    "v2": v2.HOOKS,
}
ENTRIES = [
    pytest.param(api, name, entry, id=f"{api} {name}")
    for api, hooks in HOOKS.items()
    for name, entry in hooks.items()
    if isinstance(entry, Entry)
]


def test_there_are_all_hooks_that_tacker_calls():
    methods = inspect.getmembers(Abstract, inspect.isfunction)
    hooks = {name for name, _ in methods if name.endswith(("_start", "_end"))}
    assert set(v1.HOOKS) == hooks
    assert all(callable(getattr(v1.MgmtDriver, name)) for name in hooks)
    assert hooks < set(v2.HOOKS)


@pytest.mark.parametrize(("api", "name", "entry"), ENTRIES)
def test_advice_names_what_tacker_has_for_the_operation(api, name, entry):
    texts = [
        entry.param_advice,
        entry.advice(errors.ClusterError(detail="")),
        entry.advice(errors.UnsupportedOperation(detail="")),
    ]
    verbs = set(re.findall(r"`([a-z]+)`", " ".join(texts)))
    assert verbs & {"fail", "rollback"}
    assert verbs <= {"retry", "rollback", "fail"}
    if name.startswith(NO_ROLLBACK[api]):
        assert "rollback" not in verbs
    if "rollback" in name:
        # It would begin the operation again, not its rollback.
        assert "`retry` goes on" not in texts[1]


@pytest.mark.parametrize(("api", "name", "entry"), ENTRIES)
def test_entry_names_the_hook_that_records_next(api, name, entry):
    end = name.replace("_start", "_end")
    follows = end != name and isinstance(HOOKS[api].get(end), Entry)
    # Called for a scale-in only, and nothing after it.
    follows = follows and (api, name) != ("v1", "scale_start")
    assert entry.followed_by == (end if follows else "")


def test_heal_of_all_offers_no_rollback():
    for advice in (V1_HEAL_OF_ALL, V2_HEAL_OF_ALL):
        assert "rollback" not in f"{advice.failed} {advice.refused}"


@pytest.mark.parametrize("name", v1.HOOKS)
def test_a_killed_conductor_leaves_where_a_retry_begins(monkeypatch, name):
    """Tacker's v2 API begins with the first hook in any case."""
    points = []
    monkeypatch.setattr(checkpoint, "save", lambda *args: points.append(args[2]))
    V1Hook(name, None, instance()).begin()
    assert points == [
        checkpoint.START_POINT if "_start" in name else checkpoint.END_POINT
    ]
