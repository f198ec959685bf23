# SPDX-License-Identifier: Apache-2.0
"""Pods, and the budgets that do not let them leave a node."""

import pytest

from tacker_k8s_mgmt.model.pods import (
    Budget,
    Pod,
    holders,
    read_budgets,
    read_pods,
)

WEB = {"app": "web", "tier": "front"}


def pod(name="web-1", labels=WEB, **fields):
    return Pod("default", name, labels, **fields)


def budget(name="web", selector=None, **fields):
    selector = {"matchLabels": {"app": "web"}} if selector is None else selector
    return Budget("default", name, selector, **fields)


def expression(key, operator, *values):
    return {
        "matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]
    }


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        ({}, True),
        ({"matchLabels": None, "matchExpressions": None}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "front"}}, True),
        ({"matchLabels": {"app": "web", "zone": "a"}}, False),
        ({"matchLabels": {"app": "we"}}, False),
        (expression("app", "In", "db", "web"), True),
        (expression("app", "In", "db"), False),
        (expression("zone", "In", "a"), False),
        (expression("app", "NotIn", "db"), True),
        (expression("app", "NotIn", "web"), False),
        (expression("zone", "NotIn", "a"), True),
        (expression("app", "Exists"), True),
        (expression("zone", "Exists"), False),
        (expression("zone", "DoesNotExist"), True),
        (expression("app", "DoesNotExist"), False),
        ({"matchLabels": {"app": "web"}, **expression("zone", "Exists")}, False),
    ],
    ids=str,
)
def test_selector(selector, selects):
    assert budget(selector=selector).selects(pod()) is selects


def test_a_budget_without_selector_is_about_nothing():
    assert not Budget("default", "none", None).selects(pod())


def test_a_budget_is_about_its_own_namespace():
    assert not budget(selector={}).selects(Pod("other", "web-1", WEB))


@pytest.mark.parametrize(
    ("fields", "numbers", "held"),
    [
        ({}, {"disruptions_allowed": 0}, True),
        ({}, {"disruptions_allowed": 1}, False),
        ({"terminating": True}, {}, False),
        ({"phase": "Pending", "ready": False}, {}, False),
        ({"phase": "Failed", "ready": False}, {}, False),
        ({"ready": False}, {"current_healthy": 1, "desired_healthy": 2}, True),
        ({"ready": False}, {"current_healthy": 2, "desired_healthy": 2}, False),
        ({"ready": False}, {"current_healthy": 0, "desired_healthy": 0}, True),
        ({"ready": False}, {"unhealthy_policy": "AlwaysAllow"}, False),
        ({"ready": True}, {"unhealthy_policy": "AlwaysAllow"}, True),
    ],
    ids=str,
)
def test_what_a_budget_forbids(fields, numbers, held):
    assert bool(holders(pod(**fields), [budget(**numbers)])) is held


def test_several_budgets_hold_a_pod_whatever_they_allow():
    budgets = [budget("a", disruptions_allowed=9), budget("b", disruptions_allowed=9)]
    others = [budget("c", {"matchLabels": {"app": "db"}})]
    assert holders(pod(), budgets + others) == tuple(budgets)


def test_pods_are_read_as_the_api_writes_them():
    owners = [
        {"kind": "Other", "name": "x"},
        {"kind": "ReplicaSet", "name": "web", "controller": True},
    ]
    conditions = [{"type": "Initialized", "status": "True"}]
    metadata = {"namespace": "blue", "name": "web-1"}
    full = {
        "metadata": {
            **metadata,
            "labels": WEB,
            "ownerReferences": owners,
            "annotations": {"kubernetes.io/config.mirror": "abc"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "volumes": [{"name": "a", "secret": {}}, {"name": "b", "emptyDir": {}}]
        },
        "status": {
            "phase": "Running",
            "conditions": [*conditions, {"type": "Ready", "status": "True"}],
        },
    }
    bare = {"metadata": metadata, "spec": {}, "status": {"conditions": conditions}}
    assert read_pods({"items": [full, bare]}) == (
        Pod(
            "blue",
            "web-1",
            WEB,
            terminating=True,
            controller="ReplicaSet",
            mirror=True,
            local_storage=True,
        ),
        Pod("blue", "web-1", {}, phase="Pending", ready=False),
    )


def test_budgets_are_read_as_the_api_writes_them():
    selector = {"matchLabels": {"app": "web"}}
    condition = {"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "why"}
    full = {
        "metadata": {"namespace": "blue", "name": "web"},
        "spec": {
            "minAvailable": "50%",
            "selector": selector,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
        "status": {
            "currentHealthy": 3,
            "desiredHealthy": 2,
            "disruptionsAllowed": 1,
            "conditions": [condition],
        },
    }
    new = {"metadata": full["metadata"], "spec": {"maxUnavailable": 0}}
    first, second = read_budgets({"items": [full, new]})
    assert first == Budget(
        "blue",
        "web",
        selector,
        min_available="50%",
        current_healthy=3,
        desired_healthy=2,
        disruptions_allowed=1,
        unhealthy_policy="AlwaysAllow",
        failure="why",
    )
    assert str(first) == (
        "blue/web (minAvailable 50%, currentHealthy 3, desiredHealthy 2, "
        "disruptionsAllowed 1, failed sync: why)"
    )
    assert second == Budget("blue", "web", None, max_unavailable=0)
    assert str(second).startswith("blue/web (maxUnavailable 0, ")


@pytest.mark.parametrize("read", [read_pods, read_budgets])
@pytest.mark.parametrize("answer", [{}, {"items": None}, {"items": [{}]}])
def test_what_is_no_list_is_an_error(read, answer):
    with pytest.raises((KeyError, TypeError)):
        read(answer)
