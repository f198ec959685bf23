# SPDX-License-Identifier: Apache-2.0
"""Server-side apply of the Kubernetes API stand-in."""

import pytest

from lab.kubeapi.patches import apply

HEAD = {"apiVersion": "v1", "kind": "ConfigMap"}


def applied(*steps):
    """The object after each manager has applied its content, in order."""
    obj = {}
    for manager, content in steps:
        body = {**HEAD, "metadata": {"name": "a"}, **content}
        obj = apply(obj, body, manager)
    return {
        name: value
        for name, value in obj.items()
        if name not in ("metadata", "apiVersion", "kind")
    }


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("x", {"data": {"a": "1"}})], {"data": {"a": "1"}}),
        (
            [("x", {"data": {"a": "1", "b": "2"}}), ("x", {"data": {"b": "3"}})],
            {"data": {"b": "3"}},
        ),
        ([("x", {"data": {"a": "1"}}), ("x", {})], {}),
        (
            [("x", {"data": {"a": "1"}}), ("y", {"data": {"b": "2"}})],
            {"data": {"a": "1", "b": "2"}},
        ),
        (
            [
                ("x", {"data": {"a": "1"}}),
                ("y", {"data": {"a": "1"}}),
                ("x", {"data": {}}),
            ],
            {"data": {"a": "1"}},
        ),
        (
            [
                ("x", {"containers": [{"name": "a", "args": ["1"]}, {"name": "b"}]}),
                ("x", {"containers": [{"name": "a"}]}),
            ],
            {"containers": [{"name": "a"}]},
        ),
        (
            [("x", {"args": ["1", "2"]}), ("x", {"args": ["2"]})],
            {"args": ["2"]},
        ),
    ],
    ids=[
        "new",
        "removed and changed",
        "nothing is left",
        "two managers",
        "of both",
        "items by key",
        "lists without a key",
    ],
)
def test_fields_that_are_not_applied_any_more_go(steps, expected):
    assert applied(*steps) == expected


def test_fields_of_the_server_stay():
    obj = apply({}, {**HEAD, "metadata": {"name": "a"}, "spec": {"a": 1}}, "x")
    obj = {**obj, "spec": {**obj["spec"], "clusterIP": "10.0.0.1"}, "status": {"b": 1}}
    obj = apply(obj, {**HEAD, "metadata": {"name": "a"}, "spec": {}}, "x")
    assert (obj["spec"], obj["status"]) == ({"clusterIP": "10.0.0.1"}, {"b": 1})
    (entry,) = obj["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("x", "Apply")


def test_the_same_again_changes_nothing():
    body = {**HEAD, "metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"a": "1"}}
    once = apply({}, body, "x")
    assert once["metadata"]["managedFields"][0]["fieldsV1"] == {
        "f:data": {"f:a": {}},
        "f:metadata": {"f:labels": {"f:l": {}}},
    }
    assert apply(once, body, "x") == once
