# SPDX-License-Identifier: Apache-2.0
"""How long the lab and its tests wait."""

import types

import pytest

from lab import client as module
from lab.client import Patience


class World:
    """Something with a clock."""

    def __init__(self):
        self.now = 0.0
        self.done = 0

    def patience(self, silence=10):
        return Patience(lambda: self.done, silence, longest=100)


@pytest.fixture
def world(monkeypatch):
    made = World()
    clock = types.SimpleNamespace(monotonic=lambda: made.now)
    monkeypatch.setattr(module, "time", clock)
    return made


def test_it_ends_when_nothing_moves(world):
    patience = world.patience()
    world.now = 10
    assert not patience.is_over()
    world.now = 10.1
    assert patience.is_over()


def test_it_lasts_while_something_moves(world):
    patience = world.patience()
    for now in range(9, 99, 9):
        world.now, world.done = now, now
        assert not patience.is_over()
    world.now += 10.1
    assert patience.is_over()


def test_what_moves_for_ever_is_not_awaited_for_ever(world):
    patience = world.patience()
    over = []
    for now in range(0, 120, 5):
        world.now, world.done = now, now
        over.append(patience.is_over())
    assert over.index(True) == 21  # after 105 s


def test_a_silence_longer_than_the_longest_wait_is_granted(world):
    patience = world.patience(silence=300)
    world.now = 299
    assert not patience.is_over()
