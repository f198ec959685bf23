# SPDX-License-Identifier: Apache-2.0
"""The members that Tacker's v1 API announces for a scale-in, and what Heat does.

Both by their own functions; the operation takes out just these nodes, or refuses.
"""

import copy
import random
import re

import pytest
import yaml

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")


from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.scale import ScaleIn
from tests.contract.heat_groups import (
    GROUP,
    HOT,
    STATES,
    announced,
    group,
    heat,
    named,
)
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import instantiated, run, state

FEWEST = yaml.safe_load(HOT)["resources"][GROUP]["properties"]["min_size"]
MOST = 8


class Site(FakeSite):
    """Its workers are members of a group that Heat has so.

    :ivar group: as in Heat; its members are named by their numbers.
    """

    group = None

    def __init__(self, load_balancer=True):
        super().__init__(load_balancer)
        self.workers = [machine(Role.WORKER, 10 + place) for place in range(MOST)]

    def scaling_groups(self, places):
        return (self.group,) if self.group else super().scaling_groups(places)


def node_of(name):
    return f"worker-10-10-0-{10 + int(name[1:])}"


def cases():
    """Groups of three to eight members, and as many steps as their number allows.

    Most members are well, as in life; where none has failed, both mean the same.
    """
    chance = random.Random(26)  # noqa: S311  the same each time
    for _ in range(400):
        count = chance.randint(FEWEST + 1, MOST)
        weights = [7 if state.endswith("COMPLETE") else 1 for state in STATES]
        states = chance.choices(STATES, weights, k=count)
        order = chance.sample(range(count), count)
        status = chance.choice(("UPDATE_COMPLETE",) * 5 + ("UPDATE_FAILED",))
        made = group(states, status, order)
        yield named(made), chance.randint(1, max(count - FEWEST, 1))


@pytest.fixture(scope="module")
def whole():
    """A cluster with as many workers as a group may have members."""
    site = instantiated(kind=Site)
    return lambda: state_of(site)


def state_of(site):
    made = Site()
    vars(made).update(copy.deepcopy(vars(site)))
    return made


def taken_out(site, stacks, steps):
    """The members whose nodes the operation takes out, or why it refuses."""
    before, members = state(site), set(site.members)
    try:
        run(ScaleIn, site, stacks=stacks, steps=steps)
    except errors.StepFailed as error:
        unchanged = state(site) == before
        return str(error) if unchanged else pytest.fail("it has changed something")
    gone = members - set(site.members)
    return {one.name for one in site.group.members if node_of(one.name) in gone}


def told(text):
    """The members that Heat deletes and rebuilds, by the error."""
    found = re.search("Heat would delete (.*) and rebuild (.*), because", text)
    assert found, text
    return [{*re.findall(r"\bm\d", names)} for names in found.groups()]


def test_what_leaves_is_what_both_mean_or_it_is_refused(monkeypatch, whole):
    asked = list(cases())
    answers = heat([(one, {"steps": steps}) for one, steps in asked])
    refusals, fewer = 0, 0
    for (one, steps), answer in zip(asked, answers, strict=True):
        site = whole()
        site.group = one
        stacks, names = announced(monkeypatch, one, steps)
        if not names:
            # Tacker calls no hook then.
            continue
        deleted = {member.name for member in one.members} - set(answer["left"])
        leaving = taken_out(site, stacks, steps)
        if len(names) < steps:
            text = f"counts {steps} steps of this scale-in, and announces fewer "
            assert f"{text}members: {len(names)}." in leaving
            fewer += 1
            continue
        if (deleted, answer["replaced"]) == (names, []):
            assert leaving == names, one
            continue
        refusals += 1
        if one.status == "UPDATE_COMPLETE":
            assert told(leaving) == [deleted, set(answer["replaced"])]
        else:
            assert "ignores the scale-in of such a group" in leaving
    assert fewer > 30
    assert 50 < refusals < len(asked) - fewer - 50
