# SPDX-License-Identifier: Apache-2.0
"""Nodes that take their time to become Ready."""

from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.operations import readiness
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tests.helpers import operations
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.site import FakeSite


class Clock(FakeClock):
    """Notes the pauses."""

    def __init__(self):
        super().__init__()
        self.pauses = []

    def sleep(self, seconds):
        self.pauses.append(seconds)
        super().sleep(seconds)


class Site(FakeSite):
    """A site whose nodes are Ready at the last of so many looks."""

    def __init__(self, looks):
        super().__init__()
        self.looks = looks

    def cluster(self, control_plane):
        self.looks -= 1
        self.cluster_nodes = [
            replace(node, ready=self.looks <= 0, reason="network is not set up")
            for node in self.cluster_nodes
        ]
        return super().cluster(control_plane)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(operations, "FakeClock", lambda: clock)
    return clock


def test_first_looks_are_close_and_none_is_further_off_than_the_interval(clock):
    operations.run(Instantiate, Site(looks=9))
    assert clock.pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5])


def test_interval_that_is_shorter_than_the_first_pause_counts(clock, monkeypatch):
    monkeypatch.setattr(readiness, "_FIRST_PAUSE", 60)
    operations.run(Instantiate, Site(looks=3))
    assert clock.pauses == [5, 5]


def test_nodes_that_do_not_become_ready_are_named_at_the_limit(clock):
    with pytest.raises(errors.StepFailed, match="network is not set up"):
        operations.run(Instantiate, Site(looks=10_000))
    assert 60 <= sum(clock.pauses) < 60 + 5
