# SPDX-License-Identifier: Apache-2.0
"""A short fault campaign with a fixed seed; `make chaos` is the long one."""

from itertools import islice
from pathlib import Path

import pytest

from tests.chaos import catalogue, plan, record, running, summary

pytestmark = pytest.mark.lab

SEED, MINUTES = 18, 5
CLUSTERS = ["v1", "v2"]
#: No more than these, however fast the machine is.
STEPS = 12


def test_nothing_is_lost_in_a_short_campaign(tmp_path: Path) -> None:
    path = tmp_path / "chaos.jsonl"
    steps = islice(plan.endless(SEED, CLUSTERS), STEPS)
    code = running.run(path, SEED, CLUSTERS, steps, MINUTES, catalogue.QUICK)
    events = record.read(path)
    done = summary.of(events)
    wrong = [
        one for one in events if one["event"] in (record.VIOLATION, "fault-failed")
    ]
    assert (code, wrong) == (0, [])
    outcomes = {step.outcome for step in done}
    assert len(done) >= len(CLUSTERS)
    assert outcomes <= {"unharmed", "recovered", "abandoned"}
    assert "fault" in path.with_suffix(".html").read_text()
