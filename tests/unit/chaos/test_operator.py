# SPDX-License-Identifier: Apache-2.0
"""What an operator of a campaign sends after what."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from lab import client
from tests.chaos import catalogue
from tests.chaos import operator as operating
from tests.chaos.pace import PACES
from tests.chaos.record import FINDING, VERB, Record, read

RESUME = "heal_end, step 3/17: no. `retry` continues from here; `fail` gives it up."
JOINS = "scale_end: no. Send `fail`: the new VMs stay, and the next heal joins them."


class Tacker:
    """Of which an operation has these states and errors, one after each verb."""

    LCM = "/vnflcm/v1"

    def __init__(self, *states, refuses=()):
        self.states = list(states)
        self.refuses = refuses
        self.sent = []

    def occurrence(self, operation):
        state, error = self.states[0]
        return {"operationState": state, "error": {"detail": error}}

    def handle(self, operation, verb):
        self.sent.append(verb)
        if verb in self.refuses:
            raise RuntimeError(f"POST …/{verb}: HTTP 409: no")
        self.states.pop(0)


class First(random.Random):
    """Chance that never takes the second verb."""

    def random(self):
        return 0.9


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "moved", lambda: [])
    monkeypatch.setattr(operating, "_PATIENT", 0)

    def run(tacker, name="heal worker", fault="none", is_v2=False):
        subject = SimpleNamespace(
            is_v2=is_v2,
            lab=SimpleNamespace(tacker=tacker),
            pace=PACES[catalogue.QUICK],
        )
        path = tmp_path / "record.jsonl"
        one = operating.Operator(subject, Record(path), First(1), fault)
        return one.see_through("1", name), read(path)

    return run


def sources(events):
    return [one["source"] for one in events if one["event"] == VERB]


def test_nothing_is_sent_for_what_completes(run):
    tacker = Tacker(("COMPLETED", ""))
    course, _ = run(tacker)
    assert (course.state, tacker.sent) == ("COMPLETED", [])


def test_error_says_what_is_sent(run):
    tacker = Tacker(("FAILED_TEMP", RESUME), ("COMPLETED", ""))
    course, events = run(tacker)
    assert tacker.sent == course.verbs == ["retry"]
    assert sources(events) == ["error"]


def test_retry_is_given_up_after_a_while(run):
    tacker = Tacker(*[("FAILED_TEMP", RESUME)] * 4, ("FAILED", ""))
    course, _ = run(tacker)
    assert tacker.sent == ["retry", "retry", "retry", "fail"]
    assert course.state == "FAILED"


def test_another_operation_is_wanted_where_the_error_says_so(run):
    course, _ = run(Tacker(("FAILED_TEMP", JOINS), ("FAILED", "")), "scale out")
    assert course.joins


@pytest.mark.parametrize(
    ("operation", "error", "verb"),
    [
        ("instantiate", "No valid host was found.", "retry"),
        ("scale out", "CREATE_FAILED", "rollback"),
        ("scale in", "DELETE_FAILED", "fail"),
    ],
)
def test_guide_says_it_where_the_error_is_of_others(run, operation, error, verb):
    tacker = Tacker(("FAILED_TEMP", error), ("COMPLETED", ""))
    _, events = run(tacker, operation)
    assert tacker.sent == [verb]
    (source,) = sources(events)
    assert source.startswith("guide: ")
    assert not [one for one in events if one["event"] == FINDING]


def test_cancelled_scale_out_is_not_retried(run):
    tacker = Tacker(("FAILED_TEMP", "None"), ("FAILED", ""))
    run(tacker, "scale out", "conductor killed")
    assert tacker.sent == ["fail"]


def test_v2_retries(run):
    tacker = Tacker(("FAILED_TEMP", "no"), ("COMPLETED", ""))
    run(tacker, "scale out", is_v2=True)
    assert tacker.sent == ["retry"]


def test_error_of_the_driver_without_a_verb_is_a_finding(run):
    tacker = Tacker(("FAILED_TEMP", "heal_end, step 3/17: no."), ("COMPLETED", ""))
    _, events = run(tacker)
    (finding,) = (one for one in events if one["event"] == FINDING)
    assert finding["text"] == "the driver's error names no verb"


def test_advised_verb_that_is_refused_is_a_finding_and_another_is_sent(run):
    states = (("FAILED_TEMP", RESUME), ("FAILED", ""))
    tacker = Tacker(*states, refuses=("retry",))
    course, events = run(tacker)
    assert tacker.sent == ["retry", "fail"]
    assert course.refused == ["retry"]
    assert "refused" in next(one["text"] for one in events if one["event"] == FINDING)


def test_mistake_is_made_once(run):
    tacker = Tacker(("FAILED_TEMP", RESUME), ("FAILED_TEMP", RESUME), ("COMPLETED", ""))
    _, events = run(tacker, fault="wrong verb")
    assert tacker.sent == ["rollback", "retry"]
    assert sources(events) == ["a mistake", "error"]


def test_modification_of_v1_that_no_conductor_executes_is_sent_again(run, monkeypatch):
    tacker = Tacker(("PROCESSING", ""), ("FAILED", ""))
    done = []

    def correct(_, statement):
        done.append(statement)
        tacker.states.pop(0)

    monkeypatch.setattr(client, "in_database", correct)
    quick = replace(PACES[catalogue.QUICK], silence=0)
    monkeypatch.setitem(PACES, catalogue.QUICK, quick)
    course, _ = run(tacker, "modify labels", "conductor killed")
    assert (course.state, course.again, tacker.sent) == ("FAILED", True, [])
    assert done == [
        "UPDATE vnf_lcm_op_occs SET operation_state = 'FAILED' WHERE id='1'"
    ]
