# SPDX-License-Identifier: Apache-2.0
"""What a rollback would do, from the stack's template and the package's user data."""

import types

import pytest
from tacker.vnflcm import utils as vnflcm_utils

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt.hooks.v1 import group_sizes
from tacker_k8s_mgmt.hooks.v1 import stack as openstack
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.tools.csar import parts

WITHOUT = "class Data:\n    pass\n"
PARAMETER = {"get_param": "worker_instance_desired_capacity"}


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A function that asks, for a stack with this property and this user data."""

    def ask(desired_capacity, user_data="k8s", additional=True):
        properties = {"min_size": 2}
        if desired_capacity is not None:
            properties["desired_capacity"] = desired_capacity
        template = {"resources": {"worker_instance": {"properties": properties}}}
        stack = types.SimpleNamespace(
            parameters={"worker_instance_desired_capacity": "2"}
        )
        stacks = types.SimpleNamespace(template=lambda _: template, get=lambda _: stack)
        client = types.SimpleNamespace(stacks=stacks)
        monkeypatch.setattr(openstack, "heat_of", lambda *_: client)
        root = parts.samples() / "vnfd" / "simple"
        if user_data == "own":
            (tmp_path / "UserData").mkdir()
            (tmp_path / "UserData/k8s_cluster_user_data.py").write_text(WITHOUT)
            root = tmp_path
        monkeypatch.setattr(vnflcm_utils, "_get_vnf_package_path", lambda *_: str(root))
        given = {
            "lcm-operation-user-data": "UserData/k8s_cluster_user_data.py",
            "lcm-operation-user-data-class": "KubernetesClusterUserData",
        }
        info = types.SimpleNamespace(
            instance_id="stack", additional_params=given if additional else None
        )
        instance = types.SimpleNamespace(instantiated_vnf_info=info, vnfd_id="vnfd")
        return group_sizes.members_after(V1Instance(None, instance), "worker_instance")

    return ask


def test_our_packages_go_back_to_the_size_before(asked):
    assert asked(PARAMETER) is None


def test_other_user_data_go_back_to_the_size_of_the_instantiation(asked):
    assert asked(PARAMETER, user_data="own") == 2
    assert asked(PARAMETER, additional=False) == 2


def test_after_a_heal_the_template_has_a_number(asked):
    assert asked(5) == 5


def test_a_group_that_names_no_size_keeps_the_one_that_it_has(asked):
    assert asked(None) is None


@pytest.mark.parametrize("before", [None, 2])
def test_an_unknown_outcome_is_no_error_and_is_reported(monkeypatch, caplog, before):
    def silent(*_):
        raise OSError("Heat does not answer")

    monkeypatch.setattr(openstack, "heat_of", silent)
    advice = group_sizes.advice_after_scale_out(
        V1Instance(None, None), "worker_instance", before
    )
    text = advice.text
    assert "Heat does not answer" in caplog.text
    assert text.startswith("Which VMs `rollback` would delete could not be found out")
    assert "`fail` deletes none" in text


@pytest.mark.parametrize(("after", "before"), [(None, 2), (2, 2), (None, None)])
def test_rollback_that_takes_the_right_vms_is_recommended(monkeypatch, after, before):
    monkeypatch.setattr(group_sizes, "members_after", lambda *_: after)
    advice = group_sizes.advice_after_scale_out(
        V1Instance(None, None), "worker_instance", before
    )
    text = advice.text
    assert text.startswith("`rollback` deletes the new VMs")


@pytest.mark.parametrize("after", [1, 3])
def test_rollback_that_would_take_the_wrong_vms_is_warned_of(monkeypatch, after):
    monkeypatch.setattr(group_sizes, "members_after", lambda *_: after)
    advice = group_sizes.advice_after_scale_out(
        V1Instance(None, None), "worker_instance", 2
    )
    text = advice.text
    assert text.startswith("Do not send `rollback`")
    assert f"to {after} members" in text
    assert "`rollback` deletes" not in text


def test_where_the_size_before_is_unknown_it_is_not_named(monkeypatch):
    monkeypatch.setattr(group_sizes, "members_after", lambda *_: 3)
    info = types.SimpleNamespace(instance_id="stack-id")
    instance = types.SimpleNamespace(instantiated_vnf_info=info)
    advice = group_sizes.advice_after_scale_out(
        V1Instance(None, instance), "worker_instance", None
    )
    text = advice.text
    assert "to 3 members. The driver did not come as far as to look" in text
    assert "-n 1 stack-id` shows the members of worker_instance" in text
    assert "Do not send" not in text
    assert "before (" not in text
