# SPDX-License-Identifier: Apache-2.0
"""Tables of several campaigns."""

import io
from itertools import islice

from tests.chaos import plan, report
from tests.chaos.summary import Done


def done(outcomes, seconds):
    steps = islice(plan.endless(7, ("v1",), ("worker cut",)), len(outcomes))
    return [
        Done(step, 0.0, outcome=outcome, seconds=second)
        for step, outcome, second in zip(steps, outcomes, seconds, strict=True)
    ]


def test_outcomes_are_counted_and_times_are_whole_seconds():
    steps = done(["unharmed", "recovered", "unharmed"], [10.2, 30.0, 20.4])
    last = list(report.rows(steps, lambda step: "one", "Fault"))[-1]
    assert last == ["all", "3", "2", "1", "", "", "20", "28", "30"]


def test_single_step_is_its_own_median():
    assert report.times(done(["recovered"], [7.0])) == ["7", "7", "7"]


def test_table_has_a_row_for_each_fault_and_all():
    file = io.StringIO()
    steps = done(["unharmed"] * 5, [1.0] * 5)
    report.write(steps, "fault", file)
    first, *others = file.getvalue().splitlines()
    assert first.startswith("Fault,steps,unharmed")
    names = [line.split(",")[0] for line in others]
    assert names == [*sorted({step.plan.fault for step in steps}), "all"]


def test_what_did_not_come_does_not_count(tmp_path):
    path = tmp_path / "record.jsonl"
    path.write_text(
        '{"time": 1, "event": "step", "step": 1, "plan": {"number": 1, "cluster": "v1",'
        ' "operation": "scale out", "fault": "worker cut"}}\n'
        '{"time": 2, "event": "missed", "step": 1}\n'
        '{"time": 3, "event": "outcome", "step": 1, "outcome": "unharmed",'
        ' "seconds": 2}\n'
    )
    assert report.steps_of([path]) == []
