# SPDX-License-Identifier: Apache-2.0
"""What a campaign sees of workloads of a real cluster, without one."""

import json

import pytest
import yaml

from tests.chaos import work
from tests.real import workloads


def pod(node, *, state="running", deleted=False):
    metadata = {"deletionTimestamp": "2026-11-24T12:00:00Z"} if deleted else {}
    status = {"containerStatuses": [{"state": {state: {}}, "ready": False}]}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


def node(name, *taints):
    spec = {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]}
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


class Cluster:
    """With pods by their label, nodes, and what the ledger has kept."""

    uid = "1234"

    def __init__(self):
        self.labelled = {"ledger": [pod("control-plane-1")], "web": [], "agent": []}
        self.listed = [node("control-plane-1"), node("worker-1"), node("worker-2")]
        self.kept = {}

    def kubectl(self, *words, stdin=None):
        return json.dumps({"data": self.kept}) if "configmap" in words else ""

    def server(self, vdu):
        return vdu

    def address(self, server):
        return "192.0.2.1"

    def balancer_address(self):
        return "192.0.2.2"

    def items(self, path):
        return self.listed if path.endswith("/nodes") else self.labelled["web"]

    def pods(self, label):
        return self.labelled[label.removeprefix("app=")]

    def nodes(self):
        return self.listed

    def ready_nodes(self):
        return {one["metadata"]["name"]: True for one in self.listed}


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Work on such a cluster, which is written to only by the test."""

    def make(cluster, lines="", excused=False):
        api = type("Api", (), {"items": lambda self, path: cluster.items(path)})
        client = type("Client", (), {"ClusterApi": lambda self, *_: api()})()
        client.on_host = lambda *words: lines
        monkeypatch.setattr(work, "client", client)
        monkeypatch.setattr(work, "settled", lambda cluster: None)
        monkeypatch.setattr(work.Work, "_run", lambda self: self._done.wait())
        one = work.Work(cluster, tmp_path, lambda: excused)
        begun.append(one)
        return one

    begun = []
    yield make
    for one in begun:
        one.end()


def test_manifests_have_the_budget_and_leave_nodes_that_are_away():
    documents = list(yaml.safe_load_all(work.manifests()))
    by_kind = {one["kind"]: one for one in documents}
    assert by_kind["PodDisruptionBudget"]["spec"]["minAvailable"] == work.AT_LEAST
    tolerations = by_kind["Deployment"]["spec"]["template"]["spec"]["tolerations"]
    assert len(tolerations) == 2
    assert by_kind["StatefulSet"]["spec"]["template"]["spec"]["nodeSelector"]


@pytest.mark.parametrize(
    ("state", "deleted", "runs"),
    [("running", False, True), ("waiting", False, False), ("running", True, False)],
)
def test_pod_runs_until_something_tells_it_to_end(state, deleted, runs):
    assert work.is_running(pod("worker-1", state=state, deleted=deleted)) == runs


def test_only_what_was_acknowledged_can_be_lost(made):
    cluster = Cluster()
    cluster.kept = {"1": "", "2": ""}
    one = made(cluster, lines="1\n3\n")
    one._written = {"pod": {1, 2}, "API": {1}}
    assert list(one.lost()) == ["pod: 1 writes are lost: ['2']"]
    assert one.counts() == {"pod": 2, "API": 1}


@pytest.mark.parametrize(("running", "excused"), [(3, False), (2, True), (2, False)])
def test_budget_is_watched_unless_the_fault_stops_pods(made, running, excused):
    cluster = Cluster()
    gone = [pod("worker-2", deleted=True)] * 2
    cluster.labelled["web"] = [pod("worker-1")] * running + gone
    one = made(cluster, excused=excused)
    one._look()
    assert bool(one.broken_budgets()) == (running < work.AT_LEAST and not excused)
    assert one.broken_budgets() == []


def test_pods_without_a_worker_to_go_to_break_no_budget(made):
    cluster = Cluster()
    worker = cluster.listed.pop()
    cluster.listed[1]["spec"]["unschedulable"] = True
    one = made(cluster)
    one._look()
    # They come back on a worker that has joined since.
    cluster.listed.append(worker)
    one._look()
    assert one.broken_budgets() == []
    cluster.labelled["web"] = [pod("worker-2")] * workloads.REPLICAS
    one._look()
    cluster.labelled["web"].clear()
    one._look()
    assert len(one.broken_budgets()) == 1


def test_what_does_not_run_is_named(made):
    cluster = Cluster()
    cluster.labelled["web"] = [pod("worker-1")] * workloads.REPLICAS
    cluster.labelled["agent"] = [pod("worker-1")]
    one = made(cluster)
    assert list(one.missing()) == ["no agent runs on ['worker-2']"]
    cluster.listed[2] = node("worker-2", "tacker-k8s-mgmt/maintenance")
    assert list(one.missing()) == []
    cluster.labelled["web"].pop()
    cluster.labelled["ledger"] = []
    assert list(one.missing()) == [
        "3 of 4 replicas run",
        "the pod that keeps what is written does not run",
    ]
