# SPDX-License-Identifier: Apache-2.0
"""What makes pods leave, or keeps them, in the Kubernetes API stand-in."""

import pytest

from lab.kubeapi import eviction as evictions
from lab.kubeapi.cluster import Cluster
from lab.kubeapi.eviction import budget_status, evict
from lab.kubeapi.objects import is_terminating, labels_of, name_of
from lab.kubeapi.resources import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PODS,
    STATEFUL_SETS,
    ApiError,
)
from lab.kubeapi.settings import Settings
from lab.kubeapi.store import Store
from tests.helpers import kubeapi as bed
from tests.helpers.fakes.clock import StillTime

DEDICATED = {"key": "dedicated", "value": "db", "effect": "NoExecute"}
UNREACHABLE = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}


@pytest.fixture
def clock(monkeypatch):
    clock = StillTime()
    monkeypatch.setattr(evictions, "time", clock)
    return clock


@pytest.fixture
def cluster(clock):
    settings = Settings(start_delay=0, stop_delay=0)
    cluster = Cluster(settings, hollow_nodes=["m1", "w1", "w2"])
    rounds(cluster)
    return cluster


def rounds(cluster, count=6):
    """What one round of the controllers does, the next ones see."""
    for _ in range(count):
        cluster.step()


def run(cluster, resource, manifest):
    cluster.store.create(resource, "default", manifest)
    rounds(cluster)


def pod(name, node="w1", **spec):
    containers = [{"name": "main", "image": "none"}]
    metadata = {"name": name, "labels": {"app": name}}
    spec = {"containers": containers, "nodeName": node, **spec}
    return {"metadata": metadata, "spec": spec}


def change(cluster, resource, name, namespace="default", **parts):
    old = cluster.store.get(resource, namespace, name)
    cluster.store.replace(resource, old, **parts)
    rounds(cluster)


def taint(cluster, node, *taints):
    spec = cluster.store.get(NODES, None, node)["spec"]
    change(cluster, NODES, node, None, spec={**spec, "taints": list(taints)})


def silence(cluster, node):
    metadata = cluster.store.get(NODES, None, node)["metadata"]
    annotations = {"kapi.sim/ready": "false"}
    metadata = {**metadata, "annotations": annotations}
    change(cluster, NODES, node, None, metadata=metadata)


def pods_on(cluster, node):
    pods = cluster.store.all(PODS)
    return {name_of(p) for p in pods if p["spec"].get("nodeName") == node}


def stays(seconds=None, **more):
    seconds = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": "dedicated", "operator": "Exists", **seconds, **more}


@pytest.mark.parametrize(
    ("tolerations", "at_once", "later"),
    [
        pytest.param([], False, False, id="not-tolerated"),
        pytest.param([stays()], True, True, id="tolerated"),
        pytest.param([stays(effect="NoSchedule")], False, False, id="another-effect"),
        pytest.param([stays(30)], True, False, id="for-a-while"),
        pytest.param([stays(30), stays(10)], True, False, id="the-shortest-counts"),
        pytest.param([stays(0)], False, False, id="no-time"),
        pytest.param([{"operator": "Exists"}], True, True, id="everything"),
    ],
)
def test_no_execute_taint(cluster, clock, tolerations, at_once, later):
    run(cluster, PODS, pod("p", tolerations=tolerations))
    taint(cluster, "w1", DEDICATED)
    assert bool(pods_on(cluster, "w1")) is at_once
    clock.now += 20
    rounds(cluster)
    short = bool(tolerations) and tolerations[-1].get("tolerationSeconds") == 10
    assert bool(pods_on(cluster, "w1")) is (at_once and not short)
    clock.now += 20
    rounds(cluster)
    assert bool(pods_on(cluster, "w1")) is later


def test_a_no_schedule_taint_evicts_no_pod(cluster, clock):
    run(cluster, PODS, pod("p"))
    taint(cluster, "w1", {**DEDICATED, "effect": "NoSchedule"})
    clock.now += 1000
    rounds(cluster)
    assert pods_on(cluster, "w1") == {"p"}


def test_the_time_begins_anew_with_the_taint(cluster, clock):
    run(cluster, PODS, pod("p", tolerations=[stays(30)]))
    for _ in range(3):
        taint(cluster, "w1", DEDICATED)
        clock.now += 20
        rounds(cluster)
        taint(cluster, "w1")
    assert pods_on(cluster, "w1") == {"p"}


def test_budgets_are_not_asked_about_taints(cluster):
    run(cluster, BUDGETS, bed.budget("web", minAvailable="100%"))
    run(cluster, DEPLOYMENTS, bed.deployment("web", 2))
    taint(cluster, "w1", DEDICATED)
    assert pods_on(cluster, "w1") == set()
    assert len(pods_on(cluster, "w2")) == 2
    reasons = {event["reason"] for event in cluster.store.all(EVENTS)}
    assert {"Scheduled", "Killing", "TaintManagerEviction"} <= reasons


def test_pods_of_a_silent_node_are_given_up_after_five_minutes(cluster, clock):
    run(cluster, DEPLOYMENTS, bed.deployment("web", 2))
    (lost,) = pods_on(cluster, "w1")
    silence(cluster, "w1")
    clock.now += 299
    rounds(cluster)
    assert len(pods_on(cluster, "w2")) == 1
    clock.now += 2
    rounds(cluster)
    assert len(pods_on(cluster, "w2")) == 2
    assert is_terminating(cluster.store.get(PODS, "default", lost))


def test_a_daemon_stays_on_a_node_that_is_not_well(cluster, clock):
    agent = bed.deployment("agent", 1)
    del agent["spec"]["replicas"]
    agent["kind"] = "DaemonSet"
    run(cluster, DAEMON_SETS, agent)
    before = pods_on(cluster, "w1")
    silence(cluster, "w1")
    clock.now += 10_000
    rounds(cluster)
    assert pods_on(cluster, "w1") == before != set()
    taint(cluster, "w1", DEDICATED)
    assert is_terminating(cluster.store.get(PODS, "default", *before))


def test_out_of_service_frees_the_pods_of_a_silent_node(cluster):
    """Only then is a StatefulSet's pod made again: two of one name must not run."""
    db = bed.deployment("db", 2)
    db["kind"] = "StatefulSet"
    run(cluster, STATEFUL_SETS, db)
    (lost,) = pods_on(cluster, "w1")
    silence(cluster, "w1")
    assert pods_on(cluster, "w1") == {lost}
    taint(cluster, "w1", OUT_OF_SERVICE)
    assert pods_on(cluster, "w1") == set()
    assert lost in pods_on(cluster, "w2")


def test_out_of_service_leaves_a_living_node_its_time(cluster):
    run(cluster, PODS, pod("p", tolerations=[{"operator": "Exists"}]))
    taint(cluster, "w1", OUT_OF_SERVICE)
    assert pods_on(cluster, "w1") == {"p"}


# --- budgets


def ready(name, owner=None, healthy=True, labels=None):
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": str(healthy)}],
    }
    metadata = {"name": name, "labels": labels or {"app": "web"}}
    if owner:
        reference = {"kind": owner["kind"], "uid": owner["metadata"]["uid"]}
        metadata["ownerReferences"] = [{**reference, "name": "o", "controller": True}]
    return {"metadata": metadata, "spec": {"containers": []}, "status": status}


@pytest.fixture
def store():
    store = Store()
    store.objects["", "namespaces"][None, "default"] = {"metadata": {"name": "default"}}
    return store


def eviction(name):
    """What kubectl posts."""
    return {"metadata": {"name": name, "namespace": "default"}}


def fill(store, replicas, healthy, unhealthy=0):
    """A StatefulSet with that many pods."""
    owner = {"metadata": {"name": "web"}, "spec": {"replicas": replicas}}
    owner = store.create(STATEFUL_SETS, "default", owner)
    for number in range(healthy + unhealthy):
        new = ready(f"web-{number}", owner, number < healthy)
        store.create(PODS, "default", new)


@pytest.mark.parametrize(
    ("spec", "healthy", "expected", "desired", "allowed"),
    [
        ({"minAvailable": 2}, 3, 3, 2, 1),
        ({"minAvailable": 2}, 1, 1, 2, 0),
        ({"minAvailable": "50%"}, 3, 4, 2, 1),
        ({"minAvailable": "51%"}, 4, 4, 3, 1),
        ({"maxUnavailable": 1}, 4, 4, 3, 1),
        ({"maxUnavailable": 1}, 3, 4, 3, 0),
        ({"maxUnavailable": "30%"}, 4, 4, 2, 2),
        ({"maxUnavailable": 9}, 2, 4, 0, 2),
    ],
    ids=str,
)
def test_budget_status(store, spec, healthy, expected, desired, allowed):
    fill(store, 4, healthy)
    budget = store.create(BUDGETS, "default", bed.budget("web", **spec))
    status = budget_status(store, budget)
    assert status["currentHealthy"] == healthy
    assert status["expectedPods"] == expected
    assert status["desiredHealthy"] == desired
    assert status["disruptionsAllowed"] == allowed
    (condition,) = status["conditions"]
    assert condition["status"] == str(allowed > 0)


def test_a_budget_of_pods_without_a_scale_allows_nothing(store):
    daemon = store.create(DAEMON_SETS, "default", bed.deployment("agent", 1))
    store.create(PODS, "default", ready("web-0", {**daemon, "kind": "DaemonSet"}))
    budget = store.create(BUDGETS, "default", bed.budget("web", maxUnavailable=1))
    status = budget_status(store, budget)
    assert status["disruptionsAllowed"] == 0
    assert status["conditions"][0]["reason"] == "SyncFailed"
    with pytest.raises(ApiError) as caught:
        evict(store, "default", "web-0", eviction("web-0"), dry=False)
    assert caught.value.code == 429
    assert caught.value.status["details"]["causes"][0]["message"] == (
        "The disruption budget web does not allow evicting pods currently because it "
        "failed sync: daemonsets.apps does not implement the scale subresource"
    )


def test_an_empty_selector_is_the_whole_namespace(store):
    store.create(PODS, "default", ready("a", labels={"any": "thing"}))
    manifest = bed.budget("web", minAvailable=1)
    manifest["spec"]["selector"] = {}
    budget = store.create(BUDGETS, "default", manifest)
    assert budget_status(store, budget)["currentHealthy"] == 1


@pytest.mark.parametrize(
    ("replicas", "healthy", "more", "goes"),
    [
        (3, 2, {}, True),
        (4, 2, {}, False),
        (4, 2, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, True),
        (4, 2, {"unhealthyPodEvictionPolicy": "IfHealthyBudget"}, False),
    ],
)
def test_an_unhealthy_pod_may_go_while_enough_others_are_healthy(
    store, replicas, healthy, more, goes
):
    fill(store, replicas, healthy, unhealthy=1)
    store.create(BUDGETS, "default", bed.budget("web", maxUnavailable=1, **more))
    name = f"web-{healthy}"
    assert labels_of(store.get(PODS, "default", name)) == {"app": "web"}
    if goes:
        evict(store, "default", name, eviction(name), dry=False)
        assert store.find(PODS, "default", name) is None
    else:
        with pytest.raises(ApiError, match="violate the pod's disruption budget"):
            evict(store, "default", name, eviction(name), dry=False)
