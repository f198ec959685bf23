"""Scale-out and scale-in through Tacker's REST API, with workloads on the cluster."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.integration.conftest import Cluster, Lab

WORKLOADS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      volumes: [{name: scratch, emptyDir: {}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bare, labels: {app: bare}}
spec: {containers: [{name: bare, image: bare}]}
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web-budget}
spec:
  minAvailable: 4
  selector: {matchLabels: {app: web}}
"""


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with lab.instance("scaled") as made:
        made.instantiate()
        made.kubectl("apply", "-f", "-", stdin=WORKLOADS)
        running(made)
        yield made


def pods(cluster: Cluster, label: str) -> list[dict[str, str]]:
    """Name, node and phase of the pods with this label."""
    found = json.loads(cluster.kubectl("get", "pods", "-l", label, "-o", "json"))
    return [
        {
            "name": pod["metadata"]["name"],
            "node": pod["spec"].get("nodeName", ""),
            "phase": pod["status"].get("phase", ""),
        }
        for pod in found["items"]
        if "deletionTimestamp" not in pod["metadata"]
    ]


def running(cluster: Cluster, replicas: int = 4) -> None:
    """Wait until every replica of the deployment runs."""
    deadline = time.monotonic() + 60
    while True:
        found = pods(cluster, "app=web")
        if [one["phase"] for one in found] == ["Running"] * replicas:
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


def names(cluster: Cluster) -> set[str]:
    """Names of the worker nodes, all of which are Ready."""
    nodes = cluster.ready_nodes()
    assert all(nodes.values()), nodes
    return {name for name in nodes if name.startswith("worker-")}


def consistent(cluster: Cluster, workers: int) -> set[str]:
    """Heat, the cluster, the inventory and the load balancer name the same workers."""
    found = names(cluster)
    addresses = {name.removeprefix("worker-").replace("-", ".") for name in found}
    assert len(found) == workers
    assert set(cluster.workers()) == addresses
    listed = {name for name in cluster.inventory() if name.startswith("worker-")}
    assert listed == found
    assert cluster.routes() == found
    return found


class TestScaling:
    def test_out_by_one(self, cluster):
        before = consistent(cluster, 2)
        cluster.scale("OUT")
        assert before < consistent(cluster, 3)
        kinds = [one.split("-")[1] for one in cluster.runs()]
        assert kinds == ["cluster", "facts", "scale"]

    def test_out_by_several_in_one_run(self, cluster):
        runs = len(cluster.runs())
        cluster.scale("OUT", steps=3)
        consistent(cluster, 6)
        assert len(cluster.runs()) == runs + 2

    def test_in_blocked_by_a_budget_changes_nothing_and_goes_on_later(self, cluster):
        before = consistent(cluster, 6)
        cluster.kubectl("apply", "-f", "-", stdin=BUDGET)
        error = cluster.scale("IN", steps=2, expect="FAILED_TEMP", drain={"timeout": 3})
        assert "web-budget" in error
        assert "Nothing was deleted" in error
        assert consistent(cluster, 6) == before
        nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))
        assert not [n for n in nodes["items"] if n["spec"].get("unschedulable")]
        cluster.kubectl("delete", "pdb", "web-budget")
        cluster.handle("retry", "COMPLETED")
        assert consistent(cluster, 4) < before
        running(cluster)
        on = {one["node"] for one in pods(cluster, "app=web")}
        assert on <= names(cluster)

    def test_in_by_two_after_fail(self, cluster):
        before = consistent(cluster, 4)
        cluster.kubectl("apply", "-f", "-", stdin=BUDGET)
        cluster.scale("IN", expect="FAILED_TEMP", drain={"timeout": 3})
        cluster.handle("fail", "FAILED")
        cluster.kubectl("delete", "pdb", "web-budget")
        cluster.scale("IN", steps=2)
        assert consistent(cluster, 2) < before
        running(cluster)

    def test_failed_scale_out_is_taken_back_and_rolled_back(self, cluster):
        # Not the size of the instantiation, to which Heat would return by itself.
        cluster.scale("OUT")
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
        cluster.handle("rollback", "ROLLED_BACK")
        assert consistent(cluster, 3) == before
        cluster.scale("OUT")
        assert before < consistent(cluster, 4)

    def test_worker_that_a_retry_left_out_joins_with_the_next_scale_out(self, cluster):
        before = consistent(cluster, 4)
        fault = {"task": "Join the cluster", "host": "worker-*", "message": "no room"}
        cluster.scale("OUT", expect="FAILED_TEMP", kubespray_vars={"lab_fault": fault})
        # Tacker ends a retried scale-out without calling its driver.
        cluster.handle("retry", "COMPLETED")
        assert names(cluster) == before
        assert len(cluster.workers()) == 5
        cluster.scale("OUT")
        assert before < consistent(cluster, 6)

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()
