# SPDX-License-Identifier: Apache-2.0
"""The sequence charts of the documentation, which are drawn from lists of messages."""

import importlib.util
import re

import pytest

from tests.tree import ROOT

SOURCE = ROOT / "doc" / "source" / "_ext" / "sequence.py"
LINES = [
    "Tacker, driver, VMs",
    "Tacker -> driver: heal_end",
    "driver -> VMs: login, <sudo>",
    "driver -> Tacker: done",
]
_ARROW = re.compile(r'<path d="M(\d+) (\d+)H(\d+)"/>')
_TEXT = re.compile(r'<text x="(\d+)" y="(\d+)">(.+?)</text>')
_LANE = re.compile(r'<path class="lane" d="M(\d+) \d+V\d+"/>')


@pytest.fixture(scope="module")
def sequence():
    spec = importlib.util.spec_from_file_location("sequence", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_message_is_an_arrow_between_lanes_beside_its_text(sequence):
    svg = sequence.draw(LINES)
    lanes = [int(x) for x in _LANE.findall(svg)]
    assert len(lanes) == 3
    found = [tuple(map(int, one)) for one in _ARROW.findall(svg)]
    assert [lanes.index(one[0]) for one in found] == [0, 1, 1]
    # Each ends at the head's back, on its way to the receiver.
    assert [round((one[2] - one[0]) / (lanes[1] - lanes[0])) for one in found] == [
        *(1, 1, -1),
    ]
    texts = _TEXT.findall(svg)
    assert [one[2] for one in texts] == ["heal_end", "login, &lt;sudo&gt;", "done"]
    assert [int(one[1]) - 4 for one in texts] == [one[1] for one in found]
    assert max(int(one[0]) for one in texts) < min(lanes)


def test_participants_come_in_the_order_in_which_they_are_named(sequence):
    names, messages = sequence.parse(["a -> b: x", "c -> b: y"])
    assert names == ["a", "b", "c"]
    assert [(one.sender, one.receiver) for one in messages] == [(0, 1), (2, 1)]


@pytest.mark.parametrize("line", ["a -> b", "a: b", "a -> : x", ""])
def test_other_lines_are_refused(sequence, line):
    with pytest.raises(ValueError, match="not SENDER -> RECEIVER"):
        sequence.parse(["a -> b: x", line])
