# SPDX-License-Identifier: Apache-2.0
"""Which nodes the labels of a workload allow, by Kubernetes' rules."""

from dataclasses import replace

import pytest

from tacker_k8s_mgmt.features.node_settings.marks import (
    NodeMetadata,
    Workload,
    served,
    stranded,
)
from tacker_k8s_mgmt.model.pods import Placement


def workload(selector=None, *terms):
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    found = affinity if terms else None
    return Workload.read("Deployment", "apps", "web", selector, found)


def term(key, operator, *values):
    expression = {"key": key, "operator": operator, "values": list(values)}
    return {"matchExpressions": [expression]}


def node(**labels):
    return NodeMetadata("w1", labels=labels)


@pytest.mark.parametrize(
    ("one", "yes", "no"),
    [
        (workload({"disk": "ssd"}), node(disk="ssd"), node(disk="hdd")),
        (workload(None, term("disk", "In", "ssd")), node(disk="ssd"), node()),
        (workload(None, term("disk", "NotIn", "ssd")), node(), node(disk="ssd")),
        (workload(None, term("disk", "Exists")), node(disk=""), node()),
        (workload(None, term("disk", "DoesNotExist")), node(), node(disk="")),
        (workload(None, term("size", "Gt", "3")), node(size="4"), node(size="3")),
        (workload(None, term("size", "Lt", "3")), node(size="2"), node(size="big")),
        (
            workload(None, term("a", "Exists"), term("b", "Exists")),
            node(b="1"),
            node(c="1"),
        ),
        (workload({"a": "1"}, term("b", "Exists")), node(a="1", b=""), node(b="")),
        (
            workload(
                "",
                {"matchFields": term("metadata.name", "In", "w1")["matchExpressions"]},
            ),
            node(),
            NodeMetadata("w2"),
        ),
    ],
)
def test_labels_that_a_workload_needs(one, yes, no):
    assert one.accepts(yes)
    assert not one.accepts(no)
    assert list(stranded([one], [yes, no], [no, no])) == [one]
    assert list(stranded([one], [yes, no], [no, yes])) == []
    # It has had no node before.
    assert list(stranded([one], [no], [no])) == []


SSD = {"disk": "ssd"}
TAINT = {"key": "only", "value": "db", "effect": "NoSchedule"}
PREFERENCE = {**TAINT, "effect": "PreferNoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


def ssd(**fields):
    return NodeMetadata("w2", labels=SSD, **fields)


AWAY = served(ssd(), in_service=False)


@pytest.mark.parametrize(
    ("other", "kind", "is_stranded"),
    [
        pytest.param(ssd(), "Deployment", False, id="in service"),
        pytest.param(ssd(unschedulable=True), "Deployment", True, id="cordoned"),
        # It does not mind the cordon.
        pytest.param(ssd(unschedulable=True), "DaemonSet", False, id="DaemonSet"),
        pytest.param(AWAY, "DaemonSet", True, id="in maintenance"),
        pytest.param(served(AWAY, in_service=True), "CronJob", False, id="comes back"),
        pytest.param(ssd(taints=(TAINT,)), "CronJob", True, id="tainted"),
        pytest.param(ssd(taints=(PREFERENCE,)), "Deployment", False, id="preference"),
        pytest.param(ssd(taints=(NOT_READY,)), "Deployment", False, id="not Ready"),
    ],
)
def test_only_a_node_on_which_pods_can_start_replaces_another(other, kind, is_stranded):
    one = Workload(kind, "apps", "db", Placement(SSD))
    found = stranded([one], [node(disk="ssd"), other], [node(), other])
    assert list(found) == ([one] if is_stranded else [])
    # Nothing that the request does not change is its fault.
    assert list(stranded([one], [node(), other], [node(), other])) == []


def test_label_of_a_node_on_which_it_cannot_run_anyway_is_no_loss():
    one = Workload("Deployment", "apps", "db", Placement(SSD))
    before = NodeMetadata("cp", labels=SSD, taints=(TAINT,))
    assert list(stranded([one], [before], [replace(before, labels={})])) == []
    # A maintenance passes.
    assert list(stranded([one], [AWAY], [replace(AWAY, labels={})])) == [one]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "only", "operator": "Exists"}, True),
        ({"key": "only", "value": "db"}, True),
        ({"key": "only", "value": "db", "effect": "NoSchedule"}, True),
        ({"key": "only", "value": "db", "effect": "NoExecute"}, False),
        ({"key": "only", "value": "web"}, False),
        ({"key": "only"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"value": "db"}, False),
    ],
)
def test_tolerations(toleration, tolerated):
    one = Workload.read("Deployment", "a", "b", None, None, [toleration])
    assert one.belongs(NodeMetadata("w1", taints=(TAINT,))) is tolerated


def test_an_empty_term_allows_no_node():
    assert not workload(None, {}).accepts(node(a="1"))


def test_preferences_bind_no_workload():
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": []}
    assert Workload.read("Deployment", "a", "b", None, affinity).accepts(node())
