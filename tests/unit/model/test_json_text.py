# SPDX-License-Identifier: Apache-2.0
"""JSON of others: numbers have limits, and fields have their types."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.model import journal_fields, json_text
from tacker_k8s_mgmt.model.nodes import Machine, Role

LARGE = "1" + "0" * 400
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize("text", [LARGE, f"-{LARGE}", "9" * 5000, "1" * 65, "1e999"])
@pytest.mark.parametrize("place", ["{}", "[{}]", '{{"a": {}}}', "[1, [{}]]"])
def test_a_number_that_fits_into_no_float_is_no_json(text, place):
    with pytest.raises(ValueError, match=r"digits|is not JSON"):
        json_text.parse(place.format(text))
    with pytest.raises(ValueError, match=r"digits|is not JSON"):
        json_text.stream(f"1 {place.format(text)}")


@pytest.mark.parametrize("number", [0, -(2**63), 2**64 - 1, 10**63, 1.5, 1e300])
def test_usual_numbers_are_read(number):
    assert json_text.parse(json.dumps(number)) == number


@given(st.lists(VALUES))
def test_texts_that_follow_each_other_are_read_as_each_alone(values):
    text = "\n".join(json.dumps(value, indent=4) for value in values)
    assert json_text.stream(f" {text}\n") == values


@pytest.mark.parametrize("text", ["[", "1 x", "[1]]", "[" * 200_000, '"\t"', "NaN"])
def test_a_text_that_is_no_json_is_refused_in_a_stream(text):
    with pytest.raises(ValueError, match=r".+"):
        json_text.stream(f"1 {text}")


@pytest.mark.parametrize(
    "value", [-1, 1e13, int(LARGE), float("nan"), float("inf"), True, "1", None, []]
)
def test_what_is_no_number_of_things_is_refused(value):
    with pytest.raises(ValueError, match="no number"):
        json_text.number(value)
    assert journal_fields.number({"a": value}, "a") == 0


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
            json_text.checked(one)
    one = Pair(MACHINE, (MACHINE,), value)
    assert json_text.checked(one) is one
