# SPDX-License-Identifier: Apache-2.0
"""Values of the Base HOT's parameters, as Heat would take them or refuse them."""

import pytest

from tacker_k8s_mgmt.request import structure
from tacker_k8s_mgmt.tools.csar import hot

CIDR = {"type": "string", "constraints": [{"custom_constraint": "net_cidr"}]}
PORT = {"type": "number", "constraints": [{"range": {"min": 1, "max": 65535}}]}
ODD = {
    "type": "number",
    "constraints": [{"allowed_values": [3, 5], "description": "etcd wants it"}],
}


def constrained(kind, **constraint):
    return {"type": kind, "constraints": [constraint]}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (CIDR, "192.0.2.0/24"),
        (CIDR, "192.0.2.7/24"),
        (CIDR, "2001:db8::/64"),
        (CIDR, structure.mark("a network")),
        (PORT, 6443),
        (PORT, "6443"),
        (ODD, "5"),
        ({"type": "json"}, "[1]"),
        ({"type": "json"}, ""),
        ({"type": "json"}, {"a": 1}),
        ({"type": "boolean"}, "Yes"),
        ({"type": "boolean"}, False),
        ({"type": "comma_delimited_list"}, "a, b"),
        ({"type": "string"}, 7),
        (constrained("string", allowed_pattern="[a-z]+"), "abc"),
        (constrained("string", allowed_pattern="("), "abc"),
        (constrained("string", length={"min": 1, "max": 3}), "abc"),
        (constrained("number", modulo={"step": 2, "offset": 1}), 7),
        (constrained("number", modulo={"step": 2}), 8),
        (constrained("number", modulo={"offset": 1}), 8),
        (constrained("string", custom_constraint="nova.flavor"), "m1.any"),
        (constrained("comma_delimited_list", allowed_values=["a", "b"]), "b,a"),
        (constrained("boolean", allowed_values=[True]), "true"),
    ],
)
def test_taken(schema, value):
    assert hot.value_problems(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (CIDR, "banana", "banana is no network such as 192.0.2.0/24"),
        (CIDR, "192.0.2.0", "192.0.2.0 is no network such as 192.0.2.0/24"),
        (PORT, "70000", "70000 is more than 65535"),
        (PORT, 0, "0 is less than 1"),
        (PORT, "many", "many is no number"),
        (PORT, None, "null is no number"),
        (ODD, 4, "4 is none of 3, 5 (etcd wants it)"),
        ({"type": "json"}, "{", "{ is no json"),
        ({"type": "boolean"}, "maybe", "maybe is no boolean"),
        ({"type": "comma_delimited_list"}, 7, "7 is no comma delimited list"),
        ({"type": "string"}, ["a"], '["a"] is no string'),
        (constrained("string", allowed_pattern="[a-z]+"), "a1", "does not match"),
        (constrained("string", length={"max": 2}), "abc", "has more than 2 characters"),
        (constrained("string", length={"min": 1}), "", "'' has less than 1"),
        (constrained("number", modulo={"step": 2, "offset": 1}), 8, "multiple of 2"),
        (constrained("number", modulo={"step": 2}), 7, "multiple of 2"),
        (constrained("string", custom_constraint="ip_addr"), "x", "is no IP address"),
        (constrained("comma_delimited_list", allowed_values=["a"]), "a,c", "none of a"),
    ],
)
def test_refused(schema, value, why):
    (found,) = hot.value_problems(schema, value)
    assert why in found


def test_hidden_and_long_values_are_not_repeated():
    hidden = {**PORT, "hidden": True}
    assert hot.value_problems(hidden, "s3cret") == ["the hidden value is no number"]
    (found,) = hot.value_problems(PORT, "x" * 500)
    assert len(found) < 80
