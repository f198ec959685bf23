# SPDX-License-Identifier: Apache-2.0
"""Pods, and the budgets that do not let them leave a node."""

import pytest

from tacker_k8s_mgmt.model.nodes import NodeObject
from tacker_k8s_mgmt.model.pods import Budget, Placement, Pod, holders

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


def test_pods_are_read_as_kubectl_writes_their_fields():
    owners = [
        {"kind": "Other", "name": "x"},
        {"kind": "ReplicaSet", "name": "web", "controller": True},
    ]
    full = Pod.read(
        *("blue", "web-1", WEB, "2026-01-01T00:00:00Z", owners, "Running"),
        *(["True"], [{}], {"disk": "ssd"}, None, [{"operator": "Exists"}]),
    )
    assert full == Pod(
        "blue",
        "web-1",
        WEB,
        terminating=True,
        controller="ReplicaSet",
        local_storage=True,
        placement=Placement({"disk": "ssd"}, tolerations=({"operator": "Exists"},)),
    )
    bare = Pod.read("blue", "b", *[None] * 4, [], [], *[None] * 3)
    assert bare == Pod("blue", "b", {}, phase="Pending", ready=False)


def test_a_static_pod_is_the_nodes():
    owners = [{"kind": "Node", "name": "w1", "controller": True}]
    assert Pod.read("a", "b", None, None, owners, None, [], [], *[None] * 3).mirror


def test_budgets_are_read_as_the_api_writes_them():
    selector = {"matchLabels": {"app": "web"}}
    condition = {"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "why"}
    spec = {
        "minAvailable": "50%",
        "selector": selector,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    status = {
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "disruptionsAllowed": 1,
        "conditions": [condition],
    }
    first = Budget.read("blue", "web", spec, status)
    second = Budget.read("blue", "web", {"maxUnavailable": 0}, None)
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


CNF = {"key": "dedicated", "value": "cnf", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
LEADING = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def tolerating(**toleration):
    return Placement(tolerations=(toleration,))


def near(key, operator, *values):
    terms = [expression(key, operator, *values)]
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
    }
    return Placement.read(None, required)


@pytest.mark.parametrize(
    ("placement", "node", "fits"),
    [
        (Placement(), {}, True),
        (Placement(), {"ready": False}, False),
        (Placement(), {"unschedulable": True}, False),
        (Placement(), {"unschedulable": True, "taints": (CORDON,)}, False),
        (Placement(), {"taints": ({**CNF, "effect": "PreferNoSchedule"},)}, True),
        (Placement(), {"taints": (CNF,)}, False),
        (Placement(), {"taints": ({**CNF, "effect": "NoExecute"},)}, False),
        (Placement(), {"taints": (LEADING,)}, False),
        (Placement({"disk": "ssd"}), {}, False),
        (Placement({"disk": "ssd"}), {"labels": {"disk": "hdd"}}, False),
        (Placement({"disk": "ssd"}), {"labels": {"disk": "ssd", "a": "b"}}, True),
        (near("disk", "In", "ssd"), {}, False),
        (near("disk", "In", "ssd"), {"labels": {"disk": "ssd"}}, True),
        (near("size", "Gt", "3"), {"labels": {"size": "4"}}, True),
        (near("size", "Gt", "3"), {"labels": {"size": "3"}}, False),
        (tolerating(operator="Exists"), {"taints": (CNF, LEADING)}, True),
        (tolerating(operator="Exists"), {"taints": (CNF,), "ready": False}, False),
        (tolerating(operator="Exists"), {"unschedulable": True}, True),
        (tolerating(**CNF), {"taints": (CNF, LEADING)}, False),
        (
            tolerating(key="size", operator="Gt", value="3"),
            {"taints": ({**CNF, "key": "size", "value": "4"},)},
            True,
        ),
        (
            tolerating(key="size", operator="Lt", value="3"),
            {"taints": ({**CNF, "key": "size", "value": "4"},)},
            False,
        ),
    ],
    ids=str,
)
def test_whether_the_scheduler_can_put_pods_on_a_node(placement, node, fits):
    facts = {"ready": True, "reason": "", "internal_ip": "", "kubelet_version": ""}
    assert placement.fits(NodeObject("w2", **{**facts, **node})) is fits
