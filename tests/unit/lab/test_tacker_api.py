# SPDX-License-Identifier: Apache-2.0
"""How long the demo and the integration tests wait for Tacker."""

import itertools

import pytest

from lab import client
from lab.client import Patience, Tacker
from tests.helpers.fakes.clock import StillTime

AUTH = {"auth_url": "http://127.0.0.1:1", "username": "u", "password": "p"}


@pytest.fixture
def clock(monkeypatch):
    made = StillTime()
    made.now = 0.0
    monkeypatch.setattr(client, "time", made)
    return made


class Slow(Tacker):
    """A Tacker whose operation is in one state until a time.

    :param moved: what changes meanwhile.
    """

    def __init__(self, clock, done_at, moved):
        super().__init__(AUTH, "http://127.0.0.1:1", moved)
        self._clock, self._done_at = clock, done_at

    def call(self, method, path, **kwargs):
        assert (method, path.rsplit("/", 1)[1]) == ("POST", "retry")

    def occurrence(self, occurrence_id):
        done = self._clock.now >= self._done_at
        state = "COMPLETED" if done else "FAILED_TEMP"
        return {"operationState": state, "stateEnteredTime": state}


def test_what_moves_for_ever_is_not_awaited_for_ever(clock):
    patience = Patience(itertools.count().__next__, 10, longest=100)
    while not patience.is_over():
        clock.sleep(5)
    assert clock.now == 105


def test_a_silence_longer_than_the_longest_wait_is_granted(clock):
    patience = Patience(lambda: 0, 300, longest=100)
    clock.sleep(299)
    assert not patience.is_over()


def test_an_operation_may_take_as_long_as_something_moves(clock):
    slow = Slow(clock, 1200, itertools.count().__next__)
    slow.occurrence = lambda _: {
        "operationState": "COMPLETED" if clock.now >= 1200 else "PROCESSING"
    }
    assert slow.wait("1", "COMPLETED")["operationState"] == "COMPLETED"


def test_an_operation_without_a_sign_of_life_is_given_up(clock):
    slow = Slow(clock, 0, lambda: 0)
    slow.occurrence = lambda _: {"operationState": "STARTING"}
    with pytest.raises(RuntimeError, match=r"nothing moves: .*STARTING"):
        slow.wait("1", "COMPLETED")
    assert 300 < clock.now < 310


def test_a_retry_is_awaited_until_the_slow_conductor_has_taken_it(clock):
    slow = Slow(clock, 50, lambda: clock.now // 5)
    slow.handle("1", "retry")
    assert 50 <= clock.now < 51


def test_a_retry_that_nothing_takes_is_not_awaited_for_ever(clock):
    slow = Slow(clock, 1000, lambda: 0)
    slow.handle("1", "retry")
    assert 20 < clock.now < 21


def test_what_conductors_heat_and_driver_write_counts_as_movement(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("LAB_STATE", str(tmp_path))
    journals = tmp_path / "data" / "tacker" / "state" / "k8s_mgmt"
    for place in (tmp_path / "log", journals / "journal"):
        place.mkdir(parents=True)
    for path in (
        tmp_path / "log" / "tacker-conductor.log",
        tmp_path / "log" / "tacker-conductor-2.log",
        tmp_path / "log" / "heat-engine.log",
        journals / "k8s-mgmt.log",
        journals / "journal" / "some.jsonl",
    ):
        before = client.moved()
        path.write_text("a line\n")
        assert client.moved() != before, path
        before = client.moved()
        with path.open("a") as file:
            file.write("another\n")
        assert client.moved() != before, path
    before = client.moved()
    for name in ("tacker-server.log", "keystone.log", "heat-api.log"):
        (tmp_path / "log" / name).write_text("a look of the test's\n")
    assert client.moved() == before
