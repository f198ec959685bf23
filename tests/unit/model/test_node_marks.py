# SPDX-License-Identifier: Apache-2.0
"""What has to change on a Node object: never what others have set."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.kubeapi.patches import merge
from tacker_k8s_mgmt.features.node_settings.marks import (
    APPLIED,
    NodeMetadata,
    applied,
    change,
    differences,
)
from tacker_k8s_mgmt.features.node_settings.settings import NodeSettings
from tacker_k8s_mgmt.model.nodes import CORDONED, MAINTENANCE_TAINT

NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "effect": "NoExecute",
    "timeAdded": "t",
}
MAINTENANCE = NodeSettings(taints={MAINTENANCE_TAINT: ""}, maintenance=True)


def patched(marks, patch):
    """What the API server makes of it."""
    before = {
        "metadata": {"labels": marks.labels, "annotations": marks.annotations},
        "spec": {"taints": list(marks.taints), "unschedulable": marks.unschedulable},
    }
    after = merge(before, patch)
    return replace(
        marks,
        labels=after["metadata"]["labels"],
        annotations=after["metadata"]["annotations"],
        taints=tuple(after["spec"]["taints"]),
        unschedulable=after["spec"].get("unschedulable", False),
    )


def brought(marks, wanted):
    return patched(marks, change(marks, wanted))


def test_labels_of_others_stay_and_ours_go():
    node = NodeMetadata("w", labels={"theirs": "1", "same": "x"})
    node = brought(node, NodeSettings(labels={"ours": "2", "same": "x"}))
    assert node.labels == {"theirs": "1", "ours": "2", "same": "x"}
    assert applied(node) == ("label ours",)
    node = brought(node, NodeSettings())
    assert node.labels == {"theirs": "1", "same": "x"}
    assert node.annotations == {}


def test_a_label_that_was_overwritten_is_ours():
    node = brought(
        NodeMetadata("w", labels={"a": "1"}), NodeSettings(labels={"a": "2"})
    )
    assert brought(node, NodeSettings()).labels == {}


def test_taints_of_others_stay_as_they_are():
    node = NodeMetadata("w", version="7", taints=(NOT_READY,))
    wanted = NodeSettings(taints={("gpu", "NoSchedule"): "a", ("gpu", "NoExecute"): ""})
    patch = change(node, wanted)
    assert patch["metadata"]["resourceVersion"] == "7"
    node = patched(node, patch)
    assert node.taints == (
        NOT_READY,
        {"key": "gpu", "effect": "NoSchedule", "value": "a"},
        {"key": "gpu", "effect": "NoExecute"},
    )
    node = brought(node, NodeSettings(taints={("gpu", "NoSchedule"): "b"}))
    assert node.taints == (
        NOT_READY,
        {"key": "gpu", "effect": "NoSchedule", "value": "b"},
    )
    assert brought(node, NodeSettings()).taints == (NOT_READY,)


def test_labels_alone_are_changed_whatever_the_version_is():
    patch = change(NodeMetadata("w", version="7"), NodeSettings(labels={"a": "1"}))
    assert "resourceVersion" not in patch["metadata"]
    assert "spec" not in patch


def test_maintenance_there_and_back():
    node = brought(NodeMetadata("w"), MAINTENANCE)
    assert (node.in_maintenance, node.unschedulable) == (True, True)
    assert list(differences(node, MAINTENANCE)) == []
    assert list(differences(node, NodeSettings())) == [
        "maintenance is set, and no request wants it any more"
    ]
    node = brought(node, NodeSettings())
    assert (node.in_maintenance, node.unschedulable, node.annotations) == (
        False,
        False,
        {},
    )


def test_the_cordon_of_the_drain_becomes_that_of_the_maintenance():
    drained = NodeMetadata("w", annotations={CORDONED: "true"}, unschedulable=True)
    node = brought(drained, MAINTENANCE)
    assert CORDONED not in node.annotations
    assert not brought(node, NodeSettings()).unschedulable


def test_a_cordon_of_somebody_else_outlives_the_maintenance():
    node = brought(NodeMetadata("w", unschedulable=True), MAINTENANCE)
    assert brought(node, NodeSettings()).unschedulable


@pytest.mark.parametrize("text", ["", "[]", "{", '{"labels": 1}', '{"taints": ["a"]}'])
def test_a_spoiled_record_removes_nothing(text):
    node = NodeMetadata("w", labels={"a": "1"}, annotations={APPLIED: text})
    assert brought(node, NodeSettings()).labels == {"a": "1"}


def test_differences_in_words():
    wanted = NodeSettings(labels={"a": "1", "b": "2"}, annotations={"c": "3"})
    node = brought(NodeMetadata("w"), wanted)
    node = replace(
        node, labels={"a": "0"}, annotations={APPLIED: node.annotations[APPLIED]}
    )
    assert sorted(differences(node, wanted)) == [
        "annotation c is missing",
        "label a has another value than wanted",
        "label b is missing",
    ]


VALUES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"), max_size=3)
TAINTS = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["NoExecute", "NoSchedule"])),
    st.sampled_from(["", "1"]),
    max_size=3,
)
WANTED = st.builds(NodeSettings, labels=VALUES, annotations=VALUES, taints=TAINTS)


@settings(max_examples=150, deadline=None)
@given(theirs=VALUES, steps=st.lists(WANTED, max_size=4))
def test_any_sequence_ends_as_wanted_and_a_second_time_changes_nothing(theirs, steps):
    node = NodeMetadata("w", labels=theirs, annotations=theirs)
    for wanted in steps:
        node = brought(node, wanted)
        assert change(node, wanted) == {}
        assert list(differences(node, wanted)) == []
    node = brought(node, NodeSettings())
    # What nobody overwrote is what it was, and nothing else is left.
    assert node.labels.items() <= theirs.items()
    assert node.annotations.items() <= theirs.items()
    assert node.taints == ()
    json.dumps(change(node, NodeSettings()))
