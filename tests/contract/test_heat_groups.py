# SPDX-License-Identifier: Apache-2.0
"""Which members Heat removes and rebuilds, compared with Heat's own functions."""

import itertools
import random

from tests.contract.heat_groups import STATES, group, heat

USUAL = ("CREATE_COMPLETE", "CHECK_FAILED", "UPDATE_FAILED")


def every():
    """Groups and sizes: all small ones of usual states, and random ones of all."""
    for count in range(1, 5):
        for states in itertools.product(USUAL, repeat=count):
            for size in range(count + 1):
                yield group(states), size
    chance = random.Random(26)  # noqa: S311  the same each time
    for _ in range(300):
        count = chance.randint(1, 8)
        order = chance.sample(range(count), count)
        states = [chance.choice(STATES) for _ in range(count)]
        status = chance.choice(("UPDATE_COMPLETE", "UPDATE_FAILED", "CHECK_FAILED"))
        yield group(states, status, order), chance.randint(0, count)


def test_an_update_of_the_stack_that_sets_the_size():
    cases = [*every()]
    answers = heat([(one, {"size": size}) for one, size in cases])
    for (one, size), answer in zip(cases, answers, strict=True):
        ours = one.resized(size)
        removed = {m.name for m in ours.removed}
        assert {m.name for m in one.members} - removed == set(answer["left"])
        assert {m.name for m in ours.rebuilt} == set(answer["replaced"])


def test_signals_to_the_groups_policy():
    cases = [(one, steps) for one, steps in every() if one.status == "UPDATE_COMPLETE"]
    answers = heat([(one, {"steps": steps}) for one, steps in cases])
    for (one, steps), answer in zip(cases, answers, strict=True):
        healthy = [m for m in one.members if not m.failed]
        if not 0 < steps <= len(healthy):
            continue
        ours = one.signalled(healthy[:steps])
        removed = {m.name for m in ours.removed}
        assert {m.name for m in one.members} - removed == set(answer["left"])


def test_a_group_that_is_not_complete_ignores_signals():
    states = ("CREATE_COMPLETE",) * 3
    statuses = ("UPDATE_FAILED", "CHECK_FAILED", "UPDATE_IN_PROGRESS")
    cases = [(group(states, status), {"steps": 1}) for status in statuses]
    for answer in heat(cases):
        assert answer["left"] == ["m0", "m1", "m2"]


def test_a_signal_to_grow_rebuilds_an_unhealthy_member_and_may_add_none():
    """The v1 API calls no hook before; the guide says so."""
    usual = ("CREATE_COMPLETE",) * 2
    cases = [
        (group((*usual, state)), {"steps": -1})
        for state in ("CREATE_COMPLETE", "CHECK_FAILED", "UPDATE_FAILED")
    ]
    whole, unhealthy, failed = heat(cases)
    assert whole == {"left": ["m0", "m1", "m2", "NEW"], "replaced": []}
    assert set(unhealthy["left"]) == {"m0", "m1", "m2"}
    assert unhealthy["replaced"] == ["m2"]
    assert set(failed["left"]) == {"m0", "m1", "m2"}


def test_what_an_issue_has_seen():
    """v1 deletes the failed one, too; v2 deletes it and rebuilds the announced one."""
    usual = ("CREATE_COMPLETE",) * 3
    one = group((*usual, "CHECK_FAILED"))
    does = one.signalled(one.members[:1])
    assert {m.name for m in does.removed} == {"m0", "m3"}
    one = group(("CREATE_COMPLETE", "UPDATE_FAILED", *usual[:2]))
    does = one.marked(one.members[3:]).resized(3)
    assert [m.name for m in does.removed] == ["m1"]
    assert [m.name for m in does.rebuilt] == ["m3"]
