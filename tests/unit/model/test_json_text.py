# SPDX-License-Identifier: Apache-2.0
"""JSON of others: numbers have limits, and fields have their types."""

import dataclasses
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.model.yaml_text import size

LARGE = "1" + "0" * 400
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize("text", [LARGE, f"-{LARGE}", "9" * 5000, "1" * 65, "1e999"])
@pytest.mark.parametrize("place", ["{}", "[{}]", '{{"a": {}}}', "[1, [{}]]"])
def test_a_number_that_fits_into_no_float_is_no_json(text, place):
    with pytest.raises(ValueError, match=r"digits|is not JSON"):
        untrusted.parse_json(place.format(text))
    with pytest.raises(ValueError, match=r"digits|is not JSON"):
        untrusted.json_stream(f"1 {place.format(text)}")


@pytest.mark.parametrize("number", [0, -(2**63), 2**64 - 1, 10**63, 1.5, 1e300])
def test_usual_numbers_are_read(number):
    assert untrusted.parse_json(json.dumps(number)) == number


@given(st.lists(VALUES))
def test_texts_that_follow_each_other_are_read_as_each_alone(values):
    text = "\n".join(json.dumps(value, indent=4) for value in values)
    assert untrusted.json_stream(f" {text}\n") == values


@pytest.mark.parametrize("read", [untrusted.parse_json, untrusted.json_stream])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" + "[]," * 600_000 + "1]", "more than"),
        ("[" + "0," * 1_000_000 + "1]", "more than"),
        ('{"a": ' * 201 + "1" + "}" * 201, "nested too deeply"),
        ("[" * 201 + '"]"' + "]" * 201, "nested too deeply"),
        ('["\\"]", ' + "[" * 201 + "]" * 202, "nested too deeply"),
    ],
    ids=["lists", "numbers", "objects in objects", "lists in lists", "behind a text"],
)
def test_a_text_that_stands_for_too_much_is_refused(read, text, why):
    with pytest.raises(ValueError, match=why):
        read(text)


@pytest.mark.parametrize(
    "value",
    [
        "[{," * 1_000_000,
        ["[" * 300, '\\"[[', {"]": "{" * 300}] * 100,
        [[]] * 400_000,
        *([depth] for depth in map(json.loads, ("[" * 190 + "]" * 190,))),
    ],
    ids=["a text", "brackets in texts", "many lists", "a tower"],
)
def test_brackets_in_texts_do_not_count(value):
    assert untrusted.parse_json(json.dumps(value)) == value
    assert untrusted.parse_json(json.dumps(value).encode("utf-16")) == value


@given(VALUES)
def test_no_value_is_left_out_of_the_count(value):
    assert size(value) <= untrusted.limit(json.dumps(value))


def test_a_text_without_its_end_is_searched_once():
    started = time.process_time()
    for text in ("[" * 300 + '"\\' * 1_000_000, "[" * 300 + '"a' * 1_000_001):
        with pytest.raises(ValueError, match="nested too deeply"):
            untrusted.limit(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("text", ["[", "1 x", "[1]]", "[" * 200_000, '"\t"', "NaN"])
def test_a_text_that_is_no_json_is_refused_in_a_stream(text):
    with pytest.raises(ValueError, match=r".+"):
        untrusted.json_stream(f"1 {text}")


@pytest.mark.parametrize(
    "value", [-1, 1e13, int(LARGE), float("nan"), float("inf"), True, "1", None, []]
)
def test_what_is_no_number_of_things_is_refused(value):
    with pytest.raises(ValueError, match="no number"):
        untrusted.number(value)
    assert untrusted.number_of({"a": value}, "a") == 0


@dataclasses.dataclass
class Pair:
    machine: Machine
    others: tuple[Machine, ...] = ()
    note: Any = None


MACHINE = Machine(Role.WORKER, "server", "192.0.2.1", "10.0.0.1")


@pytest.mark.parametrize("name", ["server_id", "ssh_address", "address", "aspect_id"])
@pytest.mark.parametrize("value", [None, 1, [], {}, b"a"])
def test_a_field_of_another_type_is_refused_wherever_it_is(name, value):
    wrong = dataclasses.replace(MACHINE, **{name: value})
    for one in (wrong, Pair(wrong), Pair(MACHINE, (MACHINE, wrong)), [Pair(wrong)]):
        with pytest.raises(ValueError, match=f"{name} has another type"):
            untrusted.checked(one)
    one = Pair(MACHINE, (MACHINE,), value)
    assert untrusted.checked(one) is one
