# SPDX-License-Identifier: Apache-2.0
"""A heal keeps the group as large as it is, by Tacker's own way to compute the size."""

import types
from typing import Any

import pytest
import yaml
from tacker.vnflcm import utils as vnflcm_utils

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import objects
from tacker.vnfm.lcm_user_data import utils as user_data_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import group_sizes
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize
from tests.contract.v1_instances import DEFINITIONS

objects.register_all()

GROUP = "worker_instance"
HOT = "hot/simple/base_hot_top.yaml"
#: Of the sample package: two workers at level 0, and one more with each.
INITIAL, MAX_LEVEL = 2, 7


def loaded(name):
    return yaml.safe_load((parts.samples() / name).read_text())


def in_steps_of(vnfd, number):
    """The VNFD with another number of VMs to each scale level."""
    for policy in vnfd["topology_template"]["policies"]:
        for one in policy.values():
            if one["type"] == "tosca.policies.nfv.VduScalingAspectDeltas":
                one["properties"]["deltas"]["delta_1"]["number_of_instances"] = number
    return vnfd


@pytest.fixture
def vnfd(monkeypatch):
    """The package's VNFD, to be changed by a test."""
    found = loaded(DEFINITIONS)
    monkeypatch.setattr(vnflcm_utils, "get_vnfd_dict", lambda *_: found)
    return found


def instance(level):
    info = objects.InstantiatedVnfInfo(
        flavour_id="simple",
        instance_id="stack",
        scale_status=[objects.ScaleInfo(aspect_id=GROUP, scale_level=level)],
    )
    made = types.SimpleNamespace(
        id="vnf", vnfd_id="vnfd", instantiated_vnf_info=info, saved=[]
    )
    made.save = lambda: made.saved.append(info.scale_status[0].scale_level)
    return made


def site(one, size, failed=0, group=GROUP):
    sizes = {group: GroupSize(size, failed)}
    return V1Instance(None, one), types.SimpleNamespace(group_sizes=lambda: sizes)


def counts(one, size, group=GROUP):
    return group_sizes.counts(V1Instance(None, one), {group: GroupSize(size)})


def healed(one, vnfd):
    """The size that Tacker's heal writes into the template."""
    base = {"heat_template": loaded(HOT)}
    found = user_data_utils.get_desired_capacity_dict(
        base, vnfd, one.instantiated_vnf_info
    )
    return found[GROUP]


def level_of(one):
    return one.instantiated_vnf_info.scale_status[0].scale_level


def compare_before_heal(one, size):
    group_sizes.scale_level_step(*site(one, size)).act()


@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize("size", [2, 3, 4, INITIAL + MAX_LEVEL])
def test_a_heal_leaves_the_size_that_heat_has(vnfd, level, size):
    one = instance(level)
    compare_before_heal(one, size)
    assert healed(one, vnfd) == size
    # A retry of the heal may begin after the hook, with what is stored.
    assert one.saved == ([] if level == size - INITIAL else [size - INITIAL])


@pytest.mark.parametrize(
    ("healthy", "failed", "level", "after"),
    [
        # A heal whose VM Heat could not build: it builds it now.
        (4, 1, 3, 3),
        # A scale-out whose VM Heat could not build: it deletes what is left of it.
        (4, 1, 2, 2),
        # And after `rollback`, for which the level is one step higher.
        (4, 1, 4, 3),
        (4, 1, 0, 2),
    ],
)
def test_a_member_that_heat_failed_at_is_there_if_tacker_counts_it(
    vnfd, healthy, failed, level, after
):
    one = instance(level)
    group_sizes.scale_level_step(*site(one, healthy, failed)).act()
    assert level_of(one) == after
    assert healed(one, vnfd) >= healthy


def test_the_difference_is_logged(vnfd, caplog):
    compare_before_heal(instance(0), 3)
    assert "Heat has 3 members of worker_instance" in caplog.text
    assert "level 0 stands for 2; it is set to 1" in caplog.text


@pytest.mark.parametrize(
    ("number", "level", "size"), [(1, 0, INITIAL + MAX_LEVEL + 1), (2, 0, 3), (2, 1, 5)]
)
def test_more_members_than_any_level_stands_for_are_refused(vnfd, number, level, size):
    one = instance(level)
    in_steps_of(vnfd, number)
    with pytest.raises(errors.UnsupportedOperation) as caught:
        compare_before_heal(one, size)
    assert f"Heat has {size} members of the group {GROUP}" in str(caught.value)
    assert "without a drain" in str(caught.value)
    assert level_of(one) == level
    assert one.saved == []


@pytest.mark.parametrize(("number", "level", "size"), [(1, 0, 1), (2, 1, 3)])
def test_fewer_members_than_a_level_stands_for_are_left_to_heat(
    vnfd, number, level, size
):
    one = instance(level)
    in_steps_of(vnfd, number)
    compare_before_heal(one, size)
    assert level_of(one) == level
    assert healed(one, vnfd) > size


def test_after_a_scale_out_the_level_follows_and_tacker_stores_it(vnfd):
    one = instance(1)
    group_sizes.follow_scale_out(*site(one, 4))
    assert level_of(one) == 2
    assert one.saved == []


def test_a_scale_out_does_not_fail_when_heat_does_not_answer(vnfd, caplog):
    def silent():
        raise errors.RemoteError(detail="Heat does not answer.")

    one = instance(1)
    silent_site: Any = types.SimpleNamespace(group_sizes=silent)
    group_sizes.follow_scale_out(V1Instance(None, one), silent_site)
    assert level_of(one) == 1
    assert "Heat does not answer" in caplog.text


def test_the_sizes_are_counted_without_a_change(vnfd):
    one = instance(0)
    (found,) = counts(one, 3)
    assert (found.group, found.heat, found.tacker) == (GROUP, 3, 2)
    assert level_of(one) == 0


def test_groups_that_tacker_does_not_scale_have_no_level(vnfd):
    assert counts(instance(0), 3, group="another") == ()
    one = instance(0)
    one.instantiated_vnf_info.scale_status = []
    assert counts(one, 3) == ()
