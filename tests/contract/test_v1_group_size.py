# SPDX-License-Identifier: Apache-2.0
"""Before Tacker changes ports, the stack's template says how large the groups are."""

import time
import types
from typing import Any
from unittest import mock

import pytest
import yaml

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import group_sizes
from tacker_k8s_mgmt.hooks.v1 import stack as openstack
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize

GROUP, PARAMETER = "worker_instance", "worker_instance_desired_capacity"
NESTED = "base_hot_nested_worker.yaml"
HOT = parts.samples() / "hot" / "simple"


class Heat:
    """A client of Heat with one stack, of which the group has two members.

    :ivar statuses: what an update goes through.
    :ivar updates: what was sent.
    """

    def __init__(self, desired=None):
        self.top = yaml.safe_load((HOT / "base_hot_top.yaml").read_text())
        if desired is not None:
            self.top["resources"][GROUP]["properties"]["desired_capacity"] = desired
        self.statuses = ["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"]
        self.updates = []
        self.stacks = self
        self._now = ("CREATE_COMPLETE", None)

    def template(self, stack):
        if stack == "stack":
            return self.top
        return {"resources": {"a": {}, "b": {}}} if stack == "group" else {"one": "vm"}

    def resource_get_list(self, stack, nested_depth):
        found = [(GROUP, "OS::Heat::AutoScalingGroup", "group")]
        found += [("a", NESTED, "stack-a"), ("b", NESTED, "stack-b")]
        return [
            types.SimpleNamespace(
                resource_name=name, resource_type=kind, physical_resource_id=place
            )
            for name, kind, place in found
        ]

    def get(self, stack):
        found = self._now
        if self.updates and self.statuses:
            # What was there is still shown once: Heat begins later.
            self._now = (self.statuses.pop(0), "later")
        status, updated = found
        return types.SimpleNamespace(
            stack_status=status, updated_time=updated, parameters={PARAMETER: "2"}
        )

    def update(self, stack, **kwargs):
        assert stack == "stack"
        self.updates.append(kwargs)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)


def keep(monkeypatch, heat, sizes):
    opened = mock.Mock(return_value=heat)
    monkeypatch.setattr(openstack, "heat_of", opened)
    info = types.SimpleNamespace(instance_id="stack")
    one = types.SimpleNamespace(instantiated_vnf_info=info)
    found = {name: GroupSize(size) for name, size in sizes.items()}
    site = types.SimpleNamespace(group_sizes=lambda: found)
    cluster: Any = types.SimpleNamespace(site=site)
    group_sizes.group_size_step(V1Instance(None, one), cluster).act()
    return opened


@pytest.mark.parametrize("desired", [None, 5, {"get_param": ["nfv", "VDU"]}])
def test_the_template_gets_the_size_that_there_is(monkeypatch, desired):
    heat = Heat(desired)
    keep(monkeypatch, heat, {GROUP: 3, "nested_deeper": 1})
    (sent,) = heat.updates
    template = yaml.safe_load(sent["template"])
    properties = template["resources"][GROUP]["properties"]
    assert properties["desired_capacity"] == 3
    assert yaml.safe_load(sent["files"][NESTED]) == {"one": "vm"}
    # Everything else is as Heat has it.
    assert sent["existing"] is True
    properties["desired_capacity"] = {"get_param": PARAMETER}
    assert template == yaml.safe_load((HOT / "base_hot_top.yaml").read_text())
    # It was waited for.
    assert heat.statuses == []


@pytest.mark.parametrize(("desired", "size"), [(None, 2), (3, 3)])
def test_what_is_right_is_left_alone(monkeypatch, desired, size):
    heat = Heat(desired)
    keep(monkeypatch, heat, {GROUP: size})
    assert heat.updates == []


def test_without_groups_heat_is_not_asked(monkeypatch):
    opened = keep(monkeypatch, Heat(), {})
    assert not opened.called


def test_an_update_that_fails_is_reported_before_a_port_changes(monkeypatch):
    heat = Heat()
    heat.statuses = ["UPDATE_IN_PROGRESS", "UPDATE_FAILED"]
    with pytest.raises(
        errors.RemoteError, match="the stack is UPDATE_FAILED"
    ) as caught:
        keep(monkeypatch, heat, {GROUP: 3})
    assert "No port was changed" in str(caught.value)


def test_a_heat_that_does_not_answer_is_reported(monkeypatch):
    class Silent(Heat):
        def get(self, stack):
            raise ConnectionError("Heat is away")

    with pytest.raises(errors.RemoteError, match="Heat is away"):
        keep(monkeypatch, Silent(), {GROUP: 3})
