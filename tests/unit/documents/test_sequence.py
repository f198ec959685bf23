# SPDX-License-Identifier: Apache-2.0
"""The sequence charts of the documentation, which are drawn from lists of messages."""

import importlib.util

import pytest

from tests.tree import ROOT

SOURCE = ROOT / "doc" / "source" / "_ext" / "sequence.py"
LINES = [
    "Tacker, driver, VMs",
    "Tacker -> driver: heal_end",
    "driver -> VMs: login, and a long text",
    "driver -> Tacker: done",
]
DRAWN = """\
 Tacker      driver                      VMs
    |           |                         |
    | heal_end  |                         |
    +---------->|                         |
    |           | login, and a long text  |
    |           +------------------------>|
    | done      |                         |
    |<----------+                         |
    |           |                         |"""


@pytest.fixture(scope="module")
def sequence():
    spec = importlib.util.spec_from_file_location("sequence", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_message_is_an_arrow_below_its_text(sequence):
    assert sequence.draw(LINES) == DRAWN


def test_participants_come_in_the_order_in_which_they_are_named(sequence):
    names, messages = sequence.parse(["a -> b: x", "c -> b: y"])
    assert names == ["a", "b", "c"]
    assert [(one.left, one.right) for one in messages] == [(0, 1), (1, 2)]


@pytest.mark.parametrize("line", ["a -> b", "a: b", "a -> : x", ""])
def test_other_lines_are_refused(sequence, line):
    with pytest.raises(ValueError, match="not SENDER -> RECEIVER"):
        sequence.parse(["a -> b: x", line])
