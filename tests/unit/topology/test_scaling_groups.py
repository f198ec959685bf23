# SPDX-License-Identifier: Apache-2.0
"""How many members of a scaling group Heat keeps."""

import pytest

from tacker_k8s_mgmt.topology.scaling_groups import Group, GroupSize, Member
from tacker_k8s_mgmt.topology.stack_resources import group_sizes
from tests.helpers.heat_stacks import (
    MASTER,
    RESOURCE_GROUP,
    SIMPLE,
    worker,
    workers_group,
)
from tests.helpers.samples import nested

MEMBER = "file:///worker.yaml"


def test_every_member_of_a_group_is_counted_and_nothing_else():
    assert group_sizes(SIMPLE) == {"worker_instance": GroupSize(2)}
    assert group_sizes(MASTER) == {}


def test_a_group_without_members_has_none():
    assert group_sizes(workers_group()) == {"worker_instance": GroupSize(0)}


@pytest.mark.parametrize(
    ("status", "size"),
    [
        ("INIT_COMPLETE", GroupSize(2)),
        ("CREATE_IN_PROGRESS", GroupSize(2)),
        ("UPDATE_COMPLETE", GroupSize(2)),
        ("CHECK_COMPLETE", GroupSize(2)),
        ("CREATE_FAILED", GroupSize(1, failed=1)),
        ("UPDATE_FAILED", GroupSize(1, failed=1)),
        ("CHECK_FAILED", GroupSize(1, failed=1)),
        ("DELETE_IN_PROGRESS", GroupSize(1)),
        ("DELETE_FAILED", GroupSize(1)),
    ],
)
def test_failed_members_are_reported_apart_from_the_others(status, size):
    found = workers_group(worker(21, "w-a"))
    found.append(nested("asg", "member9", MEMBER, "w-b", status))
    assert group_sizes(found) == {"worker_instance": size}


@pytest.mark.parametrize(
    ("wanted", "size"), [(0, 3), (3, 3), (4, 4), (5, 5), (6, 5), (99, 5)]
)
def test_no_healthy_member_goes_and_none_comes(wanted, size):
    assert GroupSize(3, failed=2).nearest(wanted) == size


def test_of_failed_members_only_those_that_leave_go():
    assert GroupSize(3, failed=2, needed=4).nearest(0) == 4
    # A member was deleted meanwhile.
    assert GroupSize(3, failed=0, needed=4).nearest(0) == 3


@pytest.mark.parametrize(
    ("ids", "size"), [([], 0), (["c"], 1), (["a", "c"], 2), (["b"], 3), (["x"], 0)]
)
def test_the_least_size_at_which_heat_keeps_members(ids, size):
    states = {"a": "CREATE_COMPLETE", "b": "UPDATE_FAILED", "c": "CREATE_COMPLETE"}
    members = (
        Member(name, state, created=name, ids=frozenset({name}))
        for name, state in states.items()
    )
    assert Group("workers", "", tuple(members)).least_with(ids) == size


def test_a_group_that_heat_does_not_scale_is_none():
    found = workers_group(worker(21, "w-a"), kind=RESOURCE_GROUP)
    assert group_sizes(found) == {}
