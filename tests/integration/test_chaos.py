# SPDX-License-Identifier: Apache-2.0
"""A short campaign of faults: nothing that has to hold is violated."""

from itertools import islice
from pathlib import Path

import pytest

from tests.chaos import plan, record, running, summary

pytestmark = pytest.mark.lab

SEED = 1
#: The harder half of the catalogue takes minutes for each fault: `make chaos`.
FAULTS = (
    *("conductor killed", "mariadb restarted", "keystone restarted"),
    *("Ansible killed", "hosts.yaml emptied", "playbook fails once"),
    *("route deleted", "Node deleted", "API server away"),
)
STEPS = 7


def test_nothing_is_violated_by_faults(tmp_path: Path):
    path = tmp_path / "record.jsonl"
    steps = islice(plan.endless(SEED, ("v1",), FAULTS), STEPS)
    code = running.run(path, SEED, ["v1"], steps, minutes=30)
    done = summary.of(record.read(path))
    texts = [f"{one.plan}: {text}" for one in done for text in one.violations]
    assert texts == []
    assert code == 0
    assert len(done) == STEPS
    assert path.with_suffix(".html").exists()
