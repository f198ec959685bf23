# SPDX-License-Identifier: Apache-2.0
"""A second conductor beside the first: they share out the work, not a cluster."""

import json
import os
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import amqp
import pytest

from lab import client, settings
from tacker_k8s_mgmt import journal
from tests.integration.conftest import (
    CONDUCTOR,
    PHASE,
    Cluster,
    Lab,
    eventually,
    services,
)
from tests.integration.interruptions import attached, plays_on
from tests.integration.workloads import consistent

pytestmark = pytest.mark.lab

SECOND = "tacker-conductor-2"
# Until the file is there, the playbook takes its time in this phase.
GO_ONE, GO_TWO = (f"/tmp/go-{uuid.uuid4().hex}" for _ in range(2))


@pytest.fixture(scope="module")
def clusters(lab: Lab) -> Iterator[tuple[Cluster, Cluster]]:
    hang = {"task": PHASE, "host": "worker-*"}
    with (
        lab.instance(
            "one", kubespray_vars={"lab_hang": {**hang, "until": GO_ONE}}
        ) as one,
        lab.instance(
            "two", kubespray_vars={"lab_hang": {**hang, "until": GO_TWO}}
        ) as two,
    ):
        try:
            yield one, two
        finally:
            services("stop", "--kill", SECOND)
            services("restart", "--kill", CONDUCTOR)


@pytest.fixture(scope="module")
def one(clusters: tuple[Cluster, Cluster]) -> Cluster:
    return clusters[0]


@pytest.fixture(scope="module")
def two(clusters: tuple[Cluster, Cluster]) -> Cluster:
    return clusters[1]


def hooks(conductor: str, cluster: Cluster) -> list[str]:
    """The hooks that this conductor has called for a cluster, by its own journal."""
    state = "state" if conductor == CONDUCTOR else "second"
    place = settings.from_environment().data / "tacker" / state / "k8s_mgmt"
    path = Path(journal.path_of(str(place), cluster.id))
    if not path.exists():
        return []
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [one["hook"] for one in records if one["event"] == "operation-start"]


def main_process(conductor: str) -> int:
    record = client.state() / "run" / f"{conductor}.json"
    return int(json.loads(record.read_text())["pid"])


def consumers() -> int:
    """How many conductors take work."""
    broker = f"127.0.0.1:{settings.PORTS['rabbitmq']}"
    with amqp.Connection(broker, connect_timeout=5) as connection:
        queue = connection.channel().queue_declare("TACKER_CONDUCTOR", passive=True)
        return int(queue.consumer_count)


def hang_up(conductor: str) -> None:
    """Stop it where it is, until RabbitMQ misses it."""
    os.killpg(main_process(conductor), signal.SIGSTOP)
    eventually(lambda: consumers() == 1)


class TestTwoConductors:
    def test_each_works_at_its_cluster_at_the_same_time(self, lab, one, two):
        services("stop", "--kill", CONDUCTOR)
        services("restart", SECOND)
        one.begin_instantiation()
        one.wait_for_phase()
        services("restart", CONDUCTOR)
        # The other one's work is left to the first.
        hang_up(SECOND)
        two.begin_instantiation()
        two.wait_for_phase()
        os.killpg(main_process(SECOND), signal.SIGCONT)
        eventually(lambda: consumers() == 2)
        assert hooks(SECOND, one) == ["instantiate_start", "instantiate_end"]
        assert hooks(CONDUCTOR, two) == ["instantiate_start", "instantiate_end"]
        for each in (one, two):
            assert each.occurrence()["operationState"] == "PROCESSING"
            assert plays_on(lab, each)
        lab.ansible(f"touch {GO_TWO}")
        two.wait("COMPLETED")
        consistent(two, 2)
        assert hooks(SECOND, two) == hooks(CONDUCTOR, one) == []
        assert one.occurrence()["operationState"] == "PROCESSING"

    def test_cluster_that_a_hanging_one_has_is_refused_to_the_other(self, lab, one):
        # The Ansible server cannot know.
        hang_up(SECOND)
        (run,) = one.runs()
        one.cancel()
        error = one.handle("retry", "FAILED_TEMP")
        assert f"{one.directory} on 10.99.0.5 is locked by instantiate_end" in error
        (owner,) = re.findall(r"process (\d+)", error)
        assert os.getpgid(int(owner)) == main_process(SECOND)
        assert "nothing was changed" in error
        assert hooks(SECOND, one) == ["instantiate_start", "instantiate_end"]
        assert hooks(CONDUCTOR, one) == ["instantiate_end"]
        assert one.runs() == [run]
        assert plays_on(lab, one)

    def test_it_is_taken_over_when_that_one_is_gone(self, lab, one):
        (run,) = one.runs()
        services("stop", "--kill", SECOND)
        before = attached(lab, run)
        one.begin("retry")
        eventually(lambda: attached(lab, run) > before)
        services("restart", SECOND)
        lab.ansible(f"touch {GO_ONE}")
        one.wait("COMPLETED")
        assert one.runs() == [run]
        assert hooks(CONDUCTOR, one) == ["instantiate_end"] * 2
        consistent(one, 2)

    def test_operations_at_once_are_done_once_each(self, one, two):
        # Which conductor gets which one is RabbitMQ's matter.
        before = {
            (name, cluster): len(hooks(name, cluster))
            for name in (CONDUCTOR, SECOND)
            for cluster in (one, two)
        }
        one.begin_scale("OUT")
        two.begin_scale("OUT")
        one.wait("COMPLETED")
        two.wait("COMPLETED")
        consistent(one, 3)
        consistent(two, 3)
        address, server = min(two.workers().items())
        one.begin_scale("IN")
        two.begin_heal(server)
        one.wait("COMPLETED")
        two.wait("COMPLETED")
        consistent(one, 2)
        consistent(two, 3)
        assert two.workers()[address] != server
        done: dict[str, list[str]] = {one.id: [], two.id: []}
        for (name, cluster), count in before.items():
            done[cluster.id] += hooks(name, cluster)[count:]
        assert sorted(done[one.id]) == ["scale_end", "scale_start"]
        assert sorted(done[two.id]) == ["heal_end", "heal_start", "scale_end"]

    def test_terminate_at_once_leaves_nothing(self, one, two):
        one.begin_termination()
        two.begin_termination()
        one.wait("COMPLETED")
        two.wait("COMPLETED")
        one.assert_nothing_left()
        two.assert_nothing_left()
