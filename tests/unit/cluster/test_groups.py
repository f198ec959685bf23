"""How many members of a scaling group Heat keeps."""

import pytest

from tacker_k8s_mgmt.cluster import groups
from tests.unit.cluster.samples import nested
from tests.unit.cluster.stacks import (
    MASTER,
    RESOURCE_GROUP,
    SIMPLE,
    worker,
    workers_group,
)

MEMBER = "file:///worker.yaml"


def test_every_member_of_a_group_is_counted_and_nothing_else():
    assert groups.sizes(SIMPLE) == {"worker_instance": 2}
    assert groups.sizes(MASTER) == {}


def test_a_group_without_members_has_none():
    assert groups.sizes(workers_group()) == {"worker_instance": 0}


@pytest.mark.parametrize(
    ("status", "size"),
    [
        ("INIT_COMPLETE", 2),
        ("CREATE_IN_PROGRESS", 2),
        ("UPDATE_COMPLETE", 2),
        ("CHECK_COMPLETE", 2),
        ("CREATE_FAILED", 1),
        ("CHECK_FAILED", 1),
        ("DELETE_IN_PROGRESS", 1),
        ("DELETE_FAILED", 1),
    ],
)
def test_members_that_heat_has_failed_at_or_deletes_are_not(status, size):
    found = workers_group(worker(21, "w-a"))
    found.append(nested("asg", "member9", MEMBER, "w-b", status))
    assert groups.sizes(found) == {"worker_instance": size}


def test_a_group_that_heat_does_not_scale_is_none():
    found = workers_group(worker(21, "w-a"), kind=RESOURCE_GROUP)
    assert groups.sizes(found) == {}
