# SPDX-License-Identifier: Apache-2.0
"""The hooks of both APIs, and what Tacker has for their operations."""

import contextlib
import inspect
import re
import types
from unittest import mock

import pytest
from oslo_config import cfg

from tacker_k8s_mgmt.hooks.v1.hook import V1Hook

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver import (
    VnflcmMgmtAbstractDriver as Abstract,
)

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.config import Limits
from tacker_k8s_mgmt.hooks.advice import RESUME, V1_HEAL_OF_ALL, V2_HEAL_OF_ALL
from tacker_k8s_mgmt.hooks.v1 import driver as v1
from tacker_k8s_mgmt.hooks.v1 import group_sizes, vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import END_POINT, START_POINT, V1Instance
from tacker_k8s_mgmt.hooks.v2 import driver as v2
from tacker_k8s_mgmt.hooks.v2 import stack
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.hook import V2Hook
from tacker_k8s_mgmt.operations.state import OperationContext
from tests.contract.v1_instances import GOOD, instance
from tests.helpers.requests import VNF

METHODS = inspect.getmembers(Abstract, inspect.isfunction)
V1_HOOKS = [name for name, _ in METHODS if name.endswith(("_start", "_end"))]
V2_HOOKS = [name for name in vars(v2.V2Driver) if name.endswith(("_start", "_end"))]
HOOKS = [*(("v1", name) for name in V1_HOOKS), *(("v2", name) for name in V2_HOOKS)]
# They work on no cluster.
QUIET = {
    "terminate_end",
    "change_external_connectivity_rollback_start",
    "change_current_package_rollback_end",
}
NO_ROLLBACK = {
    # A scale-in has none; of a scale-out, this API calls scale_end only.
    "v1": ("terminate", "scale_start", "heal", "change_external_connectivity"),
    "v2": ("terminate", "heal"),
}
METADATA = {"k8s_nodes:vdu:workerNode:labels": '{"a": "b"}'}


def test_there_are_all_hooks_that_tacker_calls():
    assert all(name in vars(v1.MgmtDriver) for name in V1_HOOKS)
    assert set(V1_HOOKS) <= {*V2_HOOKS, *v2.NOTHING}
    ends = {name.removesuffix("_start") for name in V2_HOOKS} - set(V2_HOOKS)
    assert all(f"{name}_end" in {*V2_HOOKS, *v2.NOTHING} for name in ends)
    assert v2.NOTHING.isdisjoint(V2_HOOKS)


class Seen:
    """What the hooks say of their failures, in the place of requests and clusters."""

    def __init__(self, monkeypatch):
        self.advised, self.followed_by = [], None
        for hook in (V1Hook, V2Hook):
            monkeypatch.setattr(hook, "request", self._request)
            monkeypatch.setattr(hook, "open_cluster", self._opened)
            monkeypatch.setattr(hook, "run", self._run)
        monkeypatch.setattr(V1Instance, "checkpoint", lambda *_: "")
        monkeypatch.setattr(V1Instance, "requested_metadata", lambda _: METADATA)
        monkeypatch.setattr(V1Instance, "clear_error", lambda _: None)
        monkeypatch.setattr(V1Instance, "vnfcs", {"one": "server"})
        monkeypatch.setattr(vim_registry, "VimRegistry", mock.Mock())
        monkeypatch.setattr(group_sizes, "advice_after_scale_out", lambda *_: RESUME)
        monkeypatch.setattr(v2, "_refuse_changes", lambda _: None)
        server = types.SimpleNamespace(physical_id="new")
        monkeypatch.setattr(stack, "servers_of", lambda *_, **__: [server])

    def _request(self, *, wrong, **_):
        self.advised.append(wrong)
        return mock.MagicMock(applications=(), references=())

    @contextlib.contextmanager
    def _opened(self, request, advice=RESUME):
        self.advised.append(advice)
        site = mock.MagicMock()
        site.workdir.read.return_value = None
        yield OperationContext(request, VNF, site, mock.Mock(), Limits(1, 1), print)

    def _run(self, operation, *, advice=None, followed_by=""):
        if advice is not None:
            self.advised.append(advice)
        self.followed_by = followed_by

    def advice_after(self, error):
        return [advice(error) for advice in self.advised]


@pytest.fixture
def called(monkeypatch):
    """Calls a hook; returns what it says."""

    def call(api, name, **request):
        seen = Seen(monkeypatch)
        if api == "v1":
            sent = mock.MagicMock(vnfc_instance_id=["one"], termination_type="GRACEFUL")
            getattr(v1.MgmtDriver(), name)(None, instance(GOOD), sent)
        else:
            given = {
                "type": "SCALE_OUT",
                "metadata": METADATA,
                "additionalParams": GOOD,
            }
            between = {"healed": []}
            sent = HookCall(name, {**given, **request}, {"id": VNF}, {}, "", between)
            sent.store(GOOD)
            getattr(v2.V2Driver(V2Hook(sent, cfg.ConfigOpts())), name)()
        return seen

    return call


@pytest.mark.parametrize(("api", "name"), HOOKS)
def test_advice_names_what_tacker_has_for_the_operation(called, api, name):
    seen = called(api, name)
    if (api, name) != ("v1", "terminate_end") and name in QUIET:
        assert not seen.advised
        return
    usual = seen.advice_after(errors.ClusterError(detail=""))
    refused = seen.advice_after(errors.UnsupportedOperation(detail=""))
    verbs = {verb.value for one in (*usual, *refused) for verb in one.verbs}
    assert verbs & {"fail", "rollback"} or name == "terminate_end"
    for one in (*usual, *refused):
        words = set(re.findall(r"`([a-z]+)`", one.text))
        assert (
            {verb.value for verb in one.verbs}
            <= words
            <= {
                "retry",
                "rollback",
                "fail",
            }
        )
    if name.startswith(NO_ROLLBACK[api]):
        assert "rollback" not in verbs
    if "rollback" in name:
        # It would begin the operation again, not its rollback.
        assert not any("`retry` continues" in one.text for one in usual)


@pytest.mark.parametrize(("api", "name"), HOOKS)
def test_hook_names_the_one_that_records_next(called, api, name):
    end = name.replace("_start", "_end")
    follows = name != end and end in (V1_HOOKS if api == "v1" else V2_HOOKS)
    # Called for a scale-in only, and nothing after it.
    follows = follows and (api, name) != ("v1", "scale_start")
    # One that ends what has begun, or has nothing to run.
    follows = (
        follows and "rollback" not in name and (api, end) != ("v2", "terminate_end")
    )
    assert (called(api, name).followed_by or "") == (end if follows else "")


def test_after_a_scale_in_nothing_records_more(called):
    assert called("v2", "scale_start", type="SCALE_IN").followed_by == ""
    assert called("v2", "scale_end", type="SCALE_IN").followed_by is None


def test_heal_of_all_offers_no_rollback():
    for advice in (V1_HEAL_OF_ALL, V2_HEAL_OF_ALL):
        assert advice.refused is not None
        assert "rollback" not in f"{advice.text} {advice.refused.text}"


@pytest.mark.parametrize("name", V1_HOOKS)
def test_a_killed_conductor_leaves_where_a_retry_begins(monkeypatch, name):
    """Tacker's v2 API begins with the first hook in any case."""
    points = []
    monkeypatch.setattr(
        V1Instance, "checkpoint", lambda *given: points.append(given[1])
    )
    V1Hook(name, None, instance()).begin()
    assert points == [START_POINT if "_start" in name else END_POINT]
