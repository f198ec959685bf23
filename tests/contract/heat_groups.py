# SPDX-License-Identifier: Apache-2.0
"""Groups of Heat, and what Heat's own functions do with their members."""

import json
import os
import subprocess
from pathlib import Path

from lab import environments
from lab.settings import from_environment
from tacker_k8s_mgmt.topology.scaling_groups import Group, Member

PROGRAM = Path(__file__).parents[1] / "helpers" / "heat_choice.py"
STATES = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "CHECK_COMPLETE",
    "CREATE_FAILED",
    "UPDATE_FAILED",
    "CHECK_FAILED",
    "DELETE_FAILED",
    "UPDATE_IN_PROGRESS",
)


def heat(groups):
    """What Heat does, from its own functions in the laboratory's environment."""
    python = environments.program(from_environment(), "openstack", "python")
    asked = [
        {
            "status": group.status,
            "members": [[m.name, m.status, m.created] for m in group.members],
            **way,
        }
        for group, way in groups
    ]
    done = subprocess.run(
        [python, "-P", str(PROGRAM)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def group(states, status="UPDATE_COMPLETE", order=None):
    places = order or range(len(states))
    members = (
        Member(
            f"m{n}",
            state,
            # Two of one scale-out have the same second.
            f"2026-01-0{1 + place // 2}T00:00:00Z",
            is_unhealthy=state == "CHECK_FAILED",
        )
        for n, (state, place) in enumerate(zip(states, places, strict=True))
    )
    return Group("workers", status, tuple(members))
