# SPDX-License-Identifier: Apache-2.0
"""Scale-out and scale-in through Tacker's REST API, with workloads on the cluster."""

import json
import shutil
from collections.abc import Iterable, Iterator

import pytest

from tests.integration import exposed, verbs
from tests.integration.conftest import ROOT, Cluster, Lab
from tests.integration.workloads import (
    WORKLOADS,
    agents_run,
    budget,
    consistent,
    machine_ids,
    names,
    pods,
    running,
)

#: For the four VMs of an instantiation; then each worker's name begins with that of an
#: earlier one, and what is free again comes first.
POOLS = [("10.10.0.2", "10.10.0.5"), *[(f"10.10.0.{n}0",) * 2 for n in range(2, 10)]]
NEWEST = POOLS[4][0]
#: How Tacker pauses between two looks at a step: well longer than a member takes. Heat
#: drops a signal that comes while it still ends the step before.
PATIENT = {"section": "openstack_vim", "stack_retry_wait": 12}


@pytest.fixture(scope="module")
def crowded(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """With a package whose workers have neighbours such as ...-2 and ...-20."""
    source = tmp_path_factory.mktemp("crowded")
    shutil.copytree(ROOT / "samples", source, dirs_exist_ok=True)
    hot = source / "hot" / "simple" / "base_hot_top.yaml"
    pools = [{"start": first, "end": last} for first, last in POOLS]
    given = "      cidr: { get_param: internal_cidr }\n"
    text = hot.read_text()
    assert text.count(given) == 1
    more = f"      allocation_pools: {json.dumps(pools)}\n"
    hot.write_text(text.replace(given, given + more))
    return Lab(source, source=source)


@pytest.fixture(scope="module")
def cluster(crowded: Lab) -> Iterator[Cluster]:
    with crowded.instance("scaled") as made:
        made.instantiate()
        made.kubectl("apply", "-f", "-", stdin=WORKLOADS)
        running(made)
        yield made


def begun_by(name: str, others: Iterable[str]) -> list[str]:
    """The names that begin with this one."""
    return [other for other in others if other != name and other.startswith(name)]


class TestScaling:
    def test_out_by_one_after_a_crash_that_spoiled_files(self, lab, cluster, guide):
        before = consistent(cluster, 2)
        lab.ansible(
            f"cd {cluster.directory} && : >hosts.yaml && truncate -s 20 machines.json "
            "&& printf '\\377' >joined.json"
        )
        told = verbs.does(guide, "verb scale-out", cluster)
        assert "COMPLETED after" in told
        assert before < consistent(cluster, 3)
        joined = lab.ansible(f"cat {cluster.directory}/joined.json")
        assert set(cluster.workers().values()) < set(json.loads(joined))
        kinds = [run.split("-")[1] for run in cluster.runs()]
        assert kinds == ["cluster", "facts", "scale"]


class TestBySeveral:
    @pytest.fixture(scope="class", autouse=True)
    def patience(self, lab: Lab) -> Iterator[None]:
        with lab.options(**PATIENT):
            yield

    @pytest.fixture(scope="class")
    def web(self, lab: Lab, cluster: Cluster, patience: None) -> Iterator[exposed.Web]:
        """A CNF of Tacker that the load balancer exposes."""
        with lab.exposed(cluster.vim_name) as made:
            exposed.expose_beside_workloads(cluster, made)
            yield made

    def test_out_by_several_in_one_run(self, cluster, web):
        runs = len(cluster.runs())
        with exposed.held_open_at(cluster, next(iter(cluster.workers().values()))):
            cluster.scale("OUT", steps=3)
        consistent(cluster, 6)
        assert len(cluster.runs()) == runs + 2

    def test_in_blocked_by_a_budget_changes_nothing_and_goes_on_later(
        self, cluster, web, guide
    ):
        before = consistent(cluster, 6)
        budget(cluster, at_least=4)
        error = cluster.scale("IN", steps=2, expect="FAILED_TEMP", drain={"timeout": 3})
        assert "web-budget" in error
        assert "No node was removed" in error
        assert "SCALE_IN CAN NOT ROLLBACK" in cluster.refused("rollback")
        assert consistent(cluster, 6) == before
        assert not [n for n in cluster.nodes() if n["spec"].get("unschedulable")]
        cluster.kubectl("delete", "pdb", "web-budget")
        known = exposed.ports(cluster)
        with exposed.held_open_at(cluster, cluster.workers()[NEWEST]):
            verbs.handles(guide, "verb retry", cluster, "COMPLETED")
        assert exposed.ports(cluster) == known
        after = consistent(cluster, 4)
        gone = before - after
        assert len(gone) == 2
        # Their names begin with one that went.
        assert [name for one in gone for name in begun_by(one, after)]
        running(cluster)
        on = {pod["node"] for pod in pods(cluster, "app=web")}
        assert on <= names(cluster)


class TestAfterwards:
    def test_in_by_one_after_fail_with_a_budget_that_leaves_room(self, cluster, guide):
        before = consistent(cluster, 4)
        budget(cluster, at_least=4)
        cluster.scale("IN", expect="FAILED_TEMP", drain={"timeout": 3})
        verbs.handles(guide, "verb fail", cluster, "FAILED")
        budget(cluster, at_least=3)
        with cluster.by_command():
            guide.does("scale-in", VNF_INSTANCE_ID=cluster.id)
        assert consistent(cluster, 3) < before
        running(cluster)
        cluster.kubectl("delete", "pdb", "web-budget")
        agents_run(cluster)

    def test_failed_scale_out_is_taken_back_and_rolled_back(self, cluster, guide):
        # Not the size of the instantiation, to which Heat would return by itself.
        before = consistent(cluster, 3)
        fault = {"task": "Join the cluster", "host": "worker-*", "message": "no room"}
        error = cluster.scale(
            "OUT", expect="FAILED_TEMP", kubespray_vars={"lab_fault": fault}
        )
        assert "run scale.yml" in error
        assert "no room" in error
        assert "Taken back" in error
        assert names(cluster) == before
        assert cluster.routes() == before
        verbs.handles(guide, "verb rollback", cluster, "ROLLED_BACK")
        assert consistent(cluster, 3) == before
        cluster.scale("OUT")
        assert before < consistent(cluster, 4)

    def test_workers_that_retry_or_fail_left_out_join_with_the_next_scale_out(
        self, cluster
    ):
        before = consistent(cluster, 4)
        fault = {"task": "Join the cluster", "host": "worker-*", "message": "no room"}
        faulty = {"lab_fault": fault}
        cluster.scale("OUT", expect="FAILED_TEMP", kubespray_vars=faulty)
        # Tacker ends a retried scale-out without calling its driver.
        cluster.handle("retry", "COMPLETED")
        assert names(cluster) == before
        assert len(cluster.workers()) == 5
        cluster.scale("OUT", expect="FAILED_TEMP", kubespray_vars=faulty)
        cluster.handle("fail", "FAILED")
        assert names(cluster) == before
        cluster.scale("OUT")
        assert before < consistent(cluster, 7)

    def test_heal_leaves_the_neighbours_alone_whose_names_begin_alike(
        self, cluster, guide
    ):
        before = machine_ids(cluster)
        name = next(one for one in names(cluster) if begun_by(one, before))
        address = name.removeprefix("worker-").replace("-", ".")
        verbs.does(guide, "verb heal", cluster, address)
        # Tacker's level was too high since the rollback, and its heal goes by it.
        after = machine_ids(cluster)
        assert cluster.routes() == names(cluster)
        assert after.pop(name) != before.pop(name)
        assert before == after

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()
