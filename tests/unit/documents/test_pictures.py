# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation that are drawn from lists."""

import importlib.util
import re

import pytest

from tests.tree import ROOT

EXTENSIONS = ROOT / "doc" / "source" / "_ext"
LINES = [
    "Tacker, driver, VMs",
    "Tacker -> driver: heal_end",
    "driver -> VMs: login, <sudo>",
    "driver -> Tacker: done",
]
_ARROW = re.compile(r'<path d="M(\d+) (\d+)H(\d+)"/>')
_TEXT = re.compile(r'<text x="(\d+)" y="(\d+)">(.+?)</text>')
_LANE = re.compile(r'<path class="lane" d="M(\d+) \d+V\d+"/>')


def extension(name):
    spec = importlib.util.spec_from_file_location(name, EXTENSIONS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sequence():
    return extension("sequence")


@pytest.fixture(scope="module")
def timeline():
    return extension("timeline")


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


def test_steps_are_bars_one_after_the_other(timeline):
    svg = timeline.draw(["wait: 1.0", "run: 3"])
    bars = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)"', svg)
    (first, short), (second, long) = [tuple(map(float, bar)) for bar in bars]
    assert second == first + short
    assert long == 3 * short
    assert re.findall(r">([^<>]+)</text>", svg) == ["wait", "1.0 s", "run", "3.0 s"]


def test_texts_that_would_reach_into_the_drawing_are_refused(sequence, timeline):
    for draw, line in (sequence.draw, "a -> b: {}"), (timeline.draw, "{}: 1"):
        with pytest.raises(ValueError, match="letters"):
            draw([line.format("x" * 40)])


def test_a_step_without_seconds_is_refused(timeline):
    with pytest.raises(ValueError, match="not TEXT: SECONDS: run"):
        timeline.draw(["wait: 1", "run"])


def test_the_readme_shows_the_timeline_of_the_first_page(timeline):
    assert timeline.PICTURE.read_text() == timeline.standalone()
    picture = timeline.PICTURE.relative_to(ROOT)
    assert f".. image:: {picture}\n" in (ROOT / "README.rst").read_text()
