# SPDX-License-Identifier: Apache-2.0
"""Work in parallel where its order allows."""

import threading
from functools import partial

import pytest

from lab.report import Task, run_all


def test_a_task_starts_after_what_it_needs():
    done = []
    names = {"c": ("a", "b"), "b": ("a",), "a": (), "d": ("c",)}
    run_all(
        [Task(name, partial(done.append, name), needs) for name, needs in names.items()]
    )
    assert done == ["a", "b", "c", "d"]


def test_independent_tasks_run_at_the_same_time():
    meeting = threading.Barrier(3, timeout=60)
    places = []
    run_all([Task(name, lambda: places.append(meeting.wait())) for name in "abc"])
    assert sorted(places) == [0, 1, 2]


def test_a_failure_is_raised_and_nothing_more_is_started():
    started = []

    def fail():
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        run_all([Task("a", fail), Task("b", lambda: started.append("b"), ("a",))])
    assert started == []


def test_a_failure_does_not_wait_for_what_still_runs():
    never = threading.Event()

    def fail():
        raise OSError("full")

    try:
        with pytest.raises(OSError, match="full"):
            run_all([Task("slow", lambda: never.wait(30)), Task("bad", fail)])
    finally:
        assert not never.is_set()
        never.set()


@pytest.mark.parametrize(
    "needs",
    [
        pytest.param({"a": ("b",), "b": ("a",)}, id="a circle"),
        pytest.param({"a": ("nobody",), "b": ()}, id="a name that is not there"),
    ],
)
def test_tasks_that_can_never_start_are_named(needs):
    tasks = [Task(name, lambda: None, wanted) for name, wanted in needs.items()]
    with pytest.raises(ValueError, match="never start: a"):
        run_all(tasks)
