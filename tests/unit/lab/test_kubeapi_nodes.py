# SPDX-License-Identifier: Apache-2.0
"""A node is Ready while it is heard of, and not longer."""

import pytest

from lab.kubeapi import nodes
from lab.kubeapi.access import Identity
from lab.kubeapi.cluster import Cluster
from lab.kubeapi.objects import condition, name_of
from lab.kubeapi.resources import LEASES, NODES, PODS
from lab.kubeapi.settings import Settings
from lab.kubeapi.verbs import Request, Target, serve
from tests.helpers.fakes.clock import StillTime

GRACE = 6.0
ADMIN = Identity("admin", frozenset({"system:masters"}))


class Site:
    """A cluster without a thread, and one host with a kubelet."""

    def __init__(self, clock: StillTime) -> None:
        self.clock = clock
        self.cluster = Cluster(Settings(node_grace=GRACE, start_delay=0))
        self.store = self.cluster.store
        self._beats = 0

    def register(self) -> None:
        """The node appears, Ready, and is seen once."""
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "then"}
        status = {"conditions": [ready]}
        self.store.create(NODES, None, {"metadata": {"name": "w1"}, "status": status})
        self.step()

    def beat(self) -> None:
        self._beats += 1
        spec = {"renewTime": f"beat {self._beats}"}
        lease = self.store.find(LEASES, "kube-node-lease", "w1")
        if lease:
            self.store.replace(LEASES, lease, spec=spec)
        else:
            new = {"metadata": {"name": "w1"}, "spec": spec}
            self.store.create(LEASES, "kube-node-lease", new)

    def post_ready(self) -> None:
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "now"}
        body = {"status": {"conditions": [ready]}}
        target = Target(NODES, "v1", None, "w1", "status")
        merge = "application/merge-patch+json"
        request = Request(target, "PATCH", {}, ADMIN, content_type=merge, body=body)
        serve(self.cluster, request)

    def step(self, seconds: float = 0) -> None:
        """Let time pass, then two rounds: what one does the other sees."""
        self.clock.now += seconds
        self.cluster.step()
        self.cluster.step()

    @property
    def node(self):
        return self.store.get(NODES, None, "w1")

    @property
    def status(self) -> str:
        return condition(self.node, "Ready").get("status", "")

    @property
    def taints(self) -> set[str]:
        return {
            f"{t['key']}:{t['effect']}" for t in self.node["spec"].get("taints", [])
        }


@pytest.fixture
def site(monkeypatch):
    clock = StillTime()
    monkeypatch.setattr(nodes, "time", clock)
    return Site(clock)


def test_leases_keep_a_node_ready(site):
    site.register()
    for _ in range(5):
        site.beat()
        site.step(GRACE - 1)
    assert site.status == "True"
    assert site.taints == set()


def test_silence_makes_it_unknown_and_a_status_ready_again(site):
    site.register()
    site.step(GRACE - 1)
    assert site.status == "True"
    site.step(2)
    assert site.status == "Unknown"
    assert condition(site.node, "Ready")["reason"] == "NodeStatusUnknown"
    unreachable = "node.kubernetes.io/unreachable"
    assert site.taints == {f"{unreachable}:NoSchedule", f"{unreachable}:NoExecute"}
    site.beat()
    site.step()
    assert site.status == "Unknown"
    site.post_ready()
    site.step()
    assert site.status == "True"
    assert site.taints == set()


def test_a_node_that_never_reported_is_not_ready(site):
    site.store.create(NODES, None, {"metadata": {"name": "w1"}})
    site.step()
    not_ready = "node.kubernetes.io/not-ready"
    assert site.taints == {f"{not_ready}:NoSchedule", f"{not_ready}:NoExecute"}
    site.step(GRACE + 1)
    assert condition(site.node, "Ready")["reason"] == "NodeStatusNeverUpdated"


def test_the_failure_annotation_silences_at_once(site):
    site.register()
    site.beat()
    site.step()
    annotated = {**site.node["metadata"], "annotations": {"kapi.sim/ready": "false"}}
    site.store.replace(NODES, site.node, metadata=annotated)
    site.step()
    assert site.status == "Unknown"


def test_a_cordon_is_a_taint(site):
    site.register()
    site.store.replace(NODES, site.node, spec={"unschedulable": True})
    site.step()
    assert site.taints == {"node.kubernetes.io/unschedulable:NoSchedule"}


def test_pods_of_a_silent_node_stay_until_the_node_is_deleted(site):
    site.register()
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    site.store.create(PODS, "default", pod)
    site.step()
    assert condition(site.store.get(PODS, "default", "p"), "Ready")["status"] == "True"
    site.step(GRACE + 1)
    site.store.delete(PODS, site.store.get(PODS, "default", "p"))
    site.step(60)
    assert [name_of(pod) for pod in site.store.all(PODS)] == ["p"]
    site.store.delete(NODES, site.node)
    site.step()
    assert site.store.all(PODS) == []


def test_leases_are_not_worth_a_save(site):
    site.register()
    site.beat()
    site.step()
    site.store.saved_version = site.store.version
    site.beat()
    assert site.store.saved_version == site.store.version
    site.post_ready()
    assert site.store.saved_version < site.store.version
