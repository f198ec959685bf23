# SPDX-License-Identifier: Apache-2.0
"""Waiting for an operation, over lost connections and silence."""

import pytest

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.tools.tacker import records, verbs, waiting
from tacker_k8s_mgmt.tools.tacker.client import Refused, Request, Silent
from tests.helpers.fakes.clock import StillTime

ID = "0f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
GONE = Silent(detail="Tacker does not answer: no route.")


def refused(status, reason="why"):
    return Refused(method="GET", path="/x", status=status, reason=reason)


def state(name, since="1", **more):
    return {"id": ID, "operationState": name, "stateEnteredTime": since, **more}


class Answers:
    """A Tacker that answers with these, the last one for ever."""

    def __init__(self, *answers):
        self.left = list(answers)

    def document(self, path, version):
        assert (path, version) == (f"/vnflcm/v2/vnf_lcm_op_occs/{ID}", "2.0.0")
        answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def clock(monkeypatch):
    made = StillTime()
    monkeypatch.setattr(waiting, "time", made)
    monkeypatch.setattr(verbs, "time", made)
    return made


@pytest.fixture
def waited(clock):
    """Return a function: the end, and the lines that were said."""

    def wait(*answers, before=None):
        said = []
        api = records.V2
        waiter = waiting.Waiting(Answers(*answers), api, ID, said.append, before)
        return waiter, said

    return wait


def test_each_state_is_told_once(waited):
    waiter, said = waited(
        state("STARTING"), state("PROCESSING"), state("PROCESSING"), state("COMPLETED")
    )
    assert waiter.end().state == "COMPLETED"
    assert said == [
        "STARTING after 0.0 s",
        "PROCESSING after 3.0 s",
        "COMPLETED after 9.0 s",
    ]


def test_a_lost_connection_is_asked_again(waited):
    lost = [GONE] * 20 + [refused(503)] * 5
    waiter, said = waited(state("PROCESSING"), *lost, state("COMPLETED"))
    assert waiter.end().state == "COMPLETED"
    assert said[1] == "Tacker does not answer: no route. Asking again."
    assert len(said) == 3


def test_silence_is_not_waited_for_ever(waited, clock):
    begun = clock.monotonic()
    waiter, _ = waited(state("PROCESSING"), GONE)
    with pytest.raises(Silent):
        waiter.end()
    assert 900 < clock.monotonic() - begun < 920


@pytest.mark.parametrize("status", [401, 403, 404, 409])
def test_a_refusal_is_the_end(waited, status):
    waiter, _ = waited(state("PROCESSING"), refused(status))
    with pytest.raises(Refused):
        waiter.end()


def test_an_operation_that_tacker_does_not_show_yet(waited):
    waiter, said = waited(*[refused(404)] * 5, state("COMPLETED"))
    assert waiter.end().state == "COMPLETED"
    assert said == ["COMPLETED after 15 s"]
    waiter, _ = waited(refused(404))
    with pytest.raises(TackerError, match=f"does not show the operation {ID}"):
        waiter.end()


def test_a_verb_that_tacker_takes_and_does_not_do(waited):
    """The v1 API answers 202 before it has looked at the request of a retry."""
    before = ("FAILED_TEMP", "1")
    waiter, said = waited(state("FAILED_TEMP", operation="SCALE"), before=before)
    with pytest.raises(TackerError) as caught:
        waiter.end()
    assert said == []
    assert f"SCALE {ID} is FAILED_TEMP as before" in str(caught.value)


def test_a_verb_that_fails_at_once_is_told_by_the_time(waited):
    waiter, _ = waited(
        state("FAILED_TEMP"),
        state("FAILED_TEMP", since="2"),
        before=("FAILED_TEMP", "1"),
    )
    assert waiter.end().mark == ("FAILED_TEMP", "2")


class Held:
    """A Tacker whose conductor holds the instance for some requests."""

    def __init__(self, times, error):
        self.times, self.error = times, error

    def send(self, request):
        if self.times:
            self.times -= 1
            raise self.error
        return request


HELD = refused(409, "Other LCM operation of vnfInstance a is in progress")


def test_a_request_is_sent_again_while_the_instance_is_held(clock):
    request = Request("POST", "/x")
    assert verbs.send(Held(5, HELD), request) is request
    with pytest.raises(Refused):
        verbs.send(Held(500, HELD), request)


@pytest.mark.parametrize("error", [refused(409, "not FAILED_TEMP"), GONE])
def test_no_other_request_is_sent_twice(clock, error):
    tacker = Held(1, error)
    with pytest.raises(TackerError) as caught:
        verbs.send(tacker, Request("POST", "/x"))
    assert tacker.times == 0
    maybe = "It is not known whether Tacker has taken the request"
    assert (maybe in str(caught.value)) is (error is GONE)
