# SPDX-License-Identifier: Apache-2.0
"""The stack of an instantiation that was abandoned, and the one that comes after it."""

import types

import pytest
from pydantic import SecretStr

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import driver, stack
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.model.vim import VimSpec
from tests.contract.v1_instances import steps_of
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import dependencies
from tests.helpers.requests import VNF, params

INSTANCE = types.SimpleNamespace(id=VNF)


class Heat:
    """One stack, which is there for some more looks once it is being deleted."""

    def __init__(self, looks, status="DELETE_IN_PROGRESS"):
        self.looks, self.status = looks, status
        self.deleted, self.asked = [], []

    def find_stack(self, name):
        self.asked.append(name)
        if self.deleted:
            self.looks -= 1
        if self.looks < 0:
            return None
        return types.SimpleNamespace(id="stack-1", stack_status=self.status)

    def delete(self, stack_id):
        self.deleted.append(stack_id)


@pytest.fixture
def site():
    made = FakeSite()
    made.owner = VNF
    return made


def step_with(monkeypatch, site, heat):
    monkeypatch.setattr(stack, "heat_of", lambda *_: heat)
    return driver.delete_stale_stack(V1Instance(None, INSTANCE), site)


def started(monkeypatch, site, heat):
    """The steps of ``instantiate_start``."""
    monkeypatch.setattr(stack, "heat_of", lambda *_: heat)
    cluster = dependencies(params(), site, FakeClock())
    request = types.SimpleNamespace(additional_params={})
    return steps_of(monkeypatch, "instantiate_start", cluster, INSTANCE, request)


def test_vims_of_the_former_cluster_are_removed_too(monkeypatch, site):
    site.vim = site.tenant_vims["blue"] = VimSpec("a", "b", SecretStr("c"), "d")
    heat = Heat(looks=2)
    for step in started(monkeypatch, site, heat):
        step.take()
    assert (site.vim, site.tenant_vims, heat.deleted) == (None, {}, ["stack-1"])
    assert [step.take() for step in started(monkeypatch, site, Heat(looks=-1))][1:] == (
        ["nothing to do"] * 2
    )


def test_stack_stays_while_a_vnf_uses_its_vim(monkeypatch, site):
    site.vim = VimSpec("a", "b", SecretStr("c"), "d")
    site.faults.add("vims.remove")
    heat = Heat(looks=2)
    check, vims, _ = started(monkeypatch, site, heat)
    check.take()
    with pytest.raises(errors.RemoteError):
        vims.take()
    assert heat.deleted == []


def test_none_is_the_usual_case_and_costs_one_question(monkeypatch, site):
    heat = Heat(looks=-1)
    step = step_with(monkeypatch, site, heat)
    assert step.probe()
    assert heat.asked == [f"vnflcm_{VNF}"]
    assert heat.deleted == []


def test_it_is_deleted_and_waited_for(monkeypatch, site):
    heat = Heat(looks=2)
    step = step_with(monkeypatch, site, heat)
    assert not step.probe()
    step.act()
    assert heat.deleted == ["stack-1"]
    assert step.probe()


def test_vms_that_another_operation_works_on_are_left_alone(monkeypatch, site):
    heat = Heat(looks=2)
    site.faults.add("lock")
    with pytest.raises(errors.RemoteError):
        step_with(monkeypatch, site, heat).act()
    assert heat.deleted == []


def test_stack_that_heat_does_not_delete_is_an_error_that_says_what_to_do(
    monkeypatch, site
):
    step = step_with(monkeypatch, site, Heat(looks=9, status="DELETE_FAILED"))
    with pytest.raises(errors.RemoteError, match="DELETE_FAILED") as caught:
        step.act()
    assert "openstack stack delete" in str(caught.value)


def test_heat_that_does_not_answer_is_an_error(monkeypatch, site):
    def refuse(*_):
        raise ConnectionError("no route")

    step = step_with(monkeypatch, site, None)
    monkeypatch.setattr(stack, "heat_of", refuse)
    with pytest.raises(errors.RemoteError, match=r"not be asked for .*: no route"):
        step.probe()
