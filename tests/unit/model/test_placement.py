# SPDX-License-Identifier: Apache-2.0
"""Which nodes the labels of a workload allow, by Kubernetes' rules."""

import json

import pytest

from tacker_k8s_mgmt.model.node_marks import NodeMarks
from tacker_k8s_mgmt.model.placement import Workload, stranded


def workload(selector="", *terms):
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    affinity = json.dumps(affinity) if terms else ""
    return Workload.read("Deployment", "apps", "web", selector, affinity)


def term(key, operator, *values):
    expression = {"key": key, "operator": operator, "values": list(values)}
    return {"matchExpressions": [expression]}


def node(**labels):
    return NodeMarks("w1", labels=labels)


@pytest.mark.parametrize(
    ("one", "yes", "no"),
    [
        (workload('{"disk": "ssd"}'), node(disk="ssd"), node(disk="hdd")),
        (workload("", term("disk", "In", "ssd")), node(disk="ssd"), node()),
        (workload("", term("disk", "NotIn", "ssd")), node(), node(disk="ssd")),
        (workload("", term("disk", "Exists")), node(disk=""), node()),
        (workload("", term("disk", "DoesNotExist")), node(), node(disk="")),
        (workload("", term("size", "Gt", "3")), node(size="4"), node(size="3")),
        (workload("", term("size", "Lt", "3")), node(size="2"), node(size="big")),
        (
            workload("", term("a", "Exists"), term("b", "Exists")),
            node(b="1"),
            node(c="1"),
        ),
        (workload('{"a": "1"}', term("b", "Exists")), node(a="1", b=""), node(b="")),
        (
            workload(
                "",
                {"matchFields": term("metadata.name", "In", "w1")["matchExpressions"]},
            ),
            node(),
            NodeMarks("w2"),
        ),
    ],
)
def test_labels_that_a_workload_needs(one, yes, no):
    assert one.accepts(yes)
    assert not one.accepts(no)
    assert list(stranded([one], [yes, no], [no])) == [one]
    assert list(stranded([one], [yes], [no, yes])) == []
    # It has had no node before.
    assert list(stranded([one], [no], [no])) == []


def test_an_empty_term_allows_no_node():
    assert not workload("", {}).accepts(node(a="1"))


def test_preferences_bind_no_workload():
    affinity = json.dumps({"preferredDuringSchedulingIgnoredDuringExecution": []})
    assert Workload.read("Deployment", "a", "b", "", affinity).accepts(node())
