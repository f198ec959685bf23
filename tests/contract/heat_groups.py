# SPDX-License-Identifier: Apache-2.0
"""Groups of Heat, and what Heat's own functions do with their members."""

import json
import os
import random
import subprocess
import types
from dataclasses import replace
from pathlib import Path

from tacker.vnfm.infra_drivers.openstack import openstack

from lab import environments
from lab.settings import from_environment
from tacker_k8s_mgmt.topology.scaling_groups import Group, Member
from tests.tree import ROOT

GROUP = "worker_instance"
HOT = (ROOT / "samples" / "hot" / "simple" / "base_hot_top.yaml").read_text()
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


def stack_of(name):
    """The stack of a member, which is what Tacker announces."""
    return f"member-server-{10 + int(name[1:])}"


def named(group):
    """The group with the ids of its members."""
    members = (
        replace(one, ids=frozenset({stack_of(one.name), stack_of(one.name)[7:]}))
        for one in group.members
    )
    return replace(group, name=GROUP, members=tuple(members))


def announced(monkeypatch, group, steps):
    """What Tacker passes to the hook: the ids and names of members."""
    rows = [
        types.SimpleNamespace(
            resource_name=one.name,
            physical_resource_id=stack_of(one.name),
            resource_status=one.status,
            creation_time=one.created,
        )
        for one in group.members
    ]
    # Heat lists them in no order.
    random.Random(len(rows)).shuffle(rows)  # noqa: S311  the same each time

    class Client:
        def __init__(self, access, region):
            pass

        def resource_get(self, stack, name):
            if stack == "the-stack":
                return types.SimpleNamespace(physical_resource_id="the-group")
            return next(row for row in rows if row.resource_name == name)

        def resource_get_list(self, stack):
            assert stack == "the-group"
            return rows

    monkeypatch.setattr(openstack.hc, "HeatClient", Client)
    vnf = {
        "instance_id": "the-stack",
        "policy_name": GROUP,
        "attributes": {"heat_template": HOT},
    }
    driver = object.__new__(openstack.OpenStack)
    ids, names, group_id, _ = driver.get_scale_in_ids(
        None, None, vnf, None, {}, None, steps
    )
    assert group_id == "the-group"
    return ids, set(names)
