# SPDX-License-Identifier: Apache-2.0
"""Who may be taken out of the control plane, and what is said when nobody may."""

import dataclasses

import pytest

from tacker_k8s_mgmt.model.quorum import (
    ControlPlane,
    EtcdMember,
    Refusal,
    refusal,
)

DEAD = "connection refused"
ALLOWED = Refusal("", "")


def planes(count):
    return [
        ControlPlane(f"control-plane-{n}", f"etcd{n}", f"10.10.0.{n}")
        for n in range(1, count + 1)
    ]


def members(count, *dead, leader=2, removed=()):
    return [
        EtcdMember(
            name=f"etcd{n}",
            member_id=f"a{n}",
            address=f"10.10.0.{n}",
            healthy=n not in dead,
            leader=n == leader,
            problem=DEAD if n in dead else "",
        )
        for n in range(1, count + 1)
        if n not in removed
    ]


def names(*numbers):
    return {f"control-plane-{n}" for n in numbers}


def reason(*found):
    """Why they may not be taken out; "" if they may."""
    return (refusal(*found) or ALLOWED).reason


@pytest.mark.parametrize(
    ("count", "dead", "leaving", "allowed"),
    [
        # three: two have to stay
        (3, (), 1, True),
        (3, (), 3, True),
        (3, (1,), 1, True),
        (3, (3,), 3, True),
        (3, (1,), 3, False),
        (3, (3,), 1, False),
        # five: three have to stay
        (5, (), 5, True),
        (5, (5,), 5, True),
        (5, (4,), 5, True),
        (5, (4, 5), 5, True),
        (5, (3, 4), 5, False),
        (5, (3, 4), 1, False),
        # an even number, while one is being replaced: a majority of four is three
        (4, (), 4, True),
        (4, (4,), 4, True),
        (4, (3,), 4, False),
        (2, (), 2, False),
        (2, (2,), 2, False),
    ],
)
def test_enough_have_to_stay(count, dead, leaving, allowed):
    said = reason(planes(count), members(count, *dead), names(leaving))
    assert (said == "") is allowed, said


def test_without_a_removal_nothing_is_refused():
    assert reason(planes(3), [], ()) == ""
    assert reason(planes(3), members(3), {"worker-1"}) == ""


def test_the_only_control_plane_is_refused_as_the_specification_says():
    said = reason(planes(1), members(1, leader=1), names(1))
    assert said.startswith("control-plane-1 is the only control plane")


@pytest.mark.parametrize("dead", [(), (1, 2)])
def test_never_two_at_once_not_even_dead_ones(dead):
    said = reason(planes(5), members(5, *dead, leader=3), names(1, 2))
    assert "control-plane-1, control-plane-2 are 2 control planes" in said


@pytest.mark.parametrize(
    ("heals", "hint"),
    [
        (
            True,
            "Fix or heal those that are not healthy. Control planes are healed one at "
            "a time, while the others are healthy.",
        ),
        (False, "Fix those that are not healthy."),
    ],
)
def test_too_few_are_healed_first_if_that_is_possible(heals, hint):
    found = refusal(planes(3), members(3, 3), names(1), heals=heals)
    assert found.hint == hint


@pytest.mark.parametrize("heals", [True, False])
def test_without_a_leader_no_heal_of_a_control_plane_is_named(heals):
    """It would be refused for the same reason."""
    ill = members(3, 1, 2, leader=0)
    found = refusal(planes(3), ill, names(2), heals=heals)
    assert found.hint.startswith("No operation restores etcd's majority.")
    assert "recover-control-plane.yml" in found.hint
    assert "one at a time" not in found.hint


def test_the_error_lists_healthy_and_failed_members():
    said = reason(planes(3), members(3, 3), names(1))
    assert said == (
        "without control-plane-1, 1 of 3 control planes would be left healthy, and "
        "etcd needs 2 to continue. Healthy: control-plane-1 (etcd1); control-plane-2 "
        "(etcd2), etcd's leader. Unhealthy: control-plane-3 (etcd3): its etcd member: "
        "connection refused"
    )


def test_without_a_leader_nothing_is_taken_out():
    said = reason(planes(3), members(3, 1, 2, leader=0), names(2))
    assert said.startswith("etcd has no leader")
    assert "control-plane-1 (etcd1): its etcd member: connection refused" in said


def test_a_dead_leader_is_no_leader():
    assert "no leader" in reason(planes(3), members(3, 2), names(2))


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ({"api_readiness": "HTTP status 503"}, "its API server: HTTP status 503"),
        ({"node_problem": "KubeletNotReady"}, "its node: KubeletNotReady"),
    ],
)
def test_an_ill_control_plane_counts_as_lost_although_its_member_is_healthy(
    problem, text
):
    found = planes(3)
    found[2] = dataclasses.replace(found[2], **problem)
    assert text in reason(found, members(3), names(1))
    # but not when it is the one that is healed
    assert reason(found, members(3), names(3)) == ""


def test_a_member_that_was_removed_already_still_counts():
    """As when a heal is done again after its member was taken out."""
    assert reason(planes(3), members(3, removed=(3,)), names(3)) == ""
    said = reason(planes(3), members(3, removed=(3,)), names(1))
    assert "1 of 3" in said
    assert "control-plane-3 (etcd3): etcd has no member of it" in said


def test_a_member_that_was_never_started_is_known_by_its_address():
    never = EtcdMember("", "beef", "10.10.0.3", healthy=False, problem="not started")
    found = [*members(3, removed=(3,)), never]
    assert reason(planes(3), found, names(3)) == ""
    assert "its etcd member: not started" in reason(planes(3), found, names(1))


def test_a_learner_has_no_vote():
    found = members(3)
    found[2] = dataclasses.replace(found[2], learner=True)
    assert "no vote yet" in reason(planes(3), found, names(1))


def test_a_member_without_a_node_counts_in_the_majority():
    stranger = EtcdMember("old", "f00", "10.10.0.9", healthy=False, problem=DEAD)
    assert reason(planes(3), [*members(3), stranger], names(3)) != ""
    said = reason(planes(3), [*members(3), stranger], names(3))
    assert "2 of 4" in said
    assert (
        "etcd's member old (10.10.0.9) of no control plane: connection refused" in said
    )
