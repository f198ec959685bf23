# SPDX-License-Identifier: Apache-2.0
"""Records, what they say, and their page."""

import itertools
import json
from html.parser import HTMLParser
from itertools import islice

import pytest

from tests.chaos import __main__ as command
from tests.chaos import page, plan, record, summary


def kept(path, steps):
    """A campaign in which each step takes 10 seconds."""
    times = itertools.count(1_000_000, 2)
    made = record.Record(path, clock=lambda: next(times))
    made.add(record.CAMPAIGN, seed=7, clusters=["v1"], minutes=1)
    for step in steps:
        made.step = step.number
        made.add(record.STEP, plan=step.document())
        made.add(record.REQUEST, operation=step.operation)
        made.add(record.FAULT, fault=step.fault)
        made.add(record.MENDED, fault=step.fault)
        made.add(record.STATE, operation="1", state="FAILED_TEMP")
        made.add(record.VERB, operation="1", verb="retry", source="error")
        made.add(record.STATE, operation="1", state="COMPLETED")
        made.add(record.OUTCOME, outcome="recovered", verbs=["retry"], seconds=6.5)
    return record.read(path)


@pytest.fixture
def steps():
    return list(islice(plan.endless(7, ("v1",)), 6))


@pytest.fixture
def events(tmp_path, steps):
    return kept(tmp_path / "record.jsonl", steps)


def test_record_is_lines_with_time_event_and_step(tmp_path, events):
    lines = (tmp_path / "record.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == events
    assert all({"time", "event", "step"} <= set(event) for event in events)


def test_replay_does_the_same(tmp_path, events, steps, capsys, monkeypatch):
    assert list(record.steps(events)) == steps
    assert record.clusters(events) == ["v1"]
    path = str(tmp_path / "record.jsonl")
    monkeypatch.setattr("sys.argv", ["chaos", "--replay", path, "--plan"])
    assert command.main() == 0
    assert capsys.readouterr().out.splitlines() == list(plan.lines(steps))


def test_summary_of_a_step(events, steps):
    done = summary.of(events)
    assert [one.plan for one in done] == steps
    first = done[0]
    assert (first.outcome, first.seconds) == ("recovered", 6.5)
    assert first.began < first.requested < first.struck < first.fixed < first.rested
    assert first.course == ["FAILED_TEMP", "retry (error)", "COMPLETED"]


def test_table_has_the_worst_outcome_and_the_longest_time(events):
    done = summary.of([*events, *events])
    done[0].outcome, done[0].seconds = "violated", 90.0
    cell = summary.table(done)[done[0].plan.fault][done[0].plan.operation]
    assert summary.worst(cell) == "violated"
    assert cell.outcomes == {"violated": 1, "recovered": 1}
    assert cell.slowest == 90.0


def test_fault_that_did_not_come_is_not_in_the_table(events):
    done = summary.of(events)
    for one in done:
        one.missed = True
    assert summary.table(done) == {}


class Page(HTMLParser):
    """Its elements and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def test_page_shows_every_step_and_loads_nothing(events, steps):
    text = page.render(events)
    found = Page(text)
    shown = " ".join(found.texts)
    for step in steps:
        assert step.operation in shown
        assert step.fault in shown
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"script", "img", "link", "iframe"}
    assert "default-src 'none'" in text
    assert not any("src" in attrs or "href" in attrs for _, attrs in found.elements)


def test_page_escapes_what_a_record_says(tmp_path, steps):
    path = tmp_path / "record.jsonl"
    kept(path, steps)
    made = record.Record(path)
    made.step = steps[-1].number
    made.add(record.VIOLATION, text="<script>alert(1)</script>")
    made.add(record.FINDING, text="<b>bold</b>")
    made.add(record.ACTION, text="<i>rm</i>", source="<u>check</u>")
    text = page.render(record.read(path))
    for told in ("<script>", "<b>bold", "<i>rm", "<u>check"):
        assert told not in text
    assert "&lt;script&gt;" in text


def test_page_of_a_campaign_that_was_cut_off(events):
    text = page.render([*events[:5]])
    assert "under way" in text
    assert page.render([])
