# SPDX-License-Identifier: Apache-2.0
"""Nodes that need the load balancer while it does not answer or does not run."""

from dataclasses import replace

import pytest

from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.status.facts import ClusterComparison, HealCommands
from tacker_k8s_mgmt.topology.heat_stack import Unfinished
from tests.helpers import status_spoilers
from tests.helpers.status_scene import (
    BALANCER,
    COLUMNS,
    CP,
    W5,
    W55,
    Scene,
    findings,
    rows,
)

VNFCS = {f"vnfc-{number}": f"server-{number}" for number in (4, 5, 55, 9)}
HEAL = "openstack vnflcm heal ID --vnfc-instance vnfc-9"


def commands(scene, silent=()):
    """The commands of each row."""
    found = rows(scene, silent=silent)
    heals = HealCommands("ID", "v1", VNFCS)
    report = ClusterComparison(tuple(found.values()), COLUMNS, {}, heals)
    every = {
        name: [line for one in row.findings for line in report.commands(row, one)]
        for name, row in found.items()
    }
    return {name: lines for name, lines in every.items() if lines}


def lost(scene):
    for name in (W5, W55):
        scene.node(name, ready=False, reason="NodeStatusUnknown")


def test_workers_of_a_dead_load_balancer_wait_for_its_heal():
    scene = Scene()
    lost(scene)
    found = rows(scene, silent=["balancer"])
    for name in (W5, W55):
        (finding,) = found[name].findings
        assert finding.text == "not Ready: NodeStatusUnknown"
        assert finding.remedy.text.startswith("First fix the load balancer")
    (finding,) = found[BALANCER].findings
    assert finding.text == f"does not answer, and {W5}, {W55} cannot do without it"
    assert "heal its VNFC before that of any node" in finding.remedy.text
    assert commands(scene, ["balancer"]) == {BALANCER: [HEAL]}


def test_workers_of_a_stopped_haproxy_wait_for_its_start():
    scene = Scene()
    lost(scene)
    status_spoilers.balancer_stopped(scene)
    found = rows(scene)
    assert "First fix the load balancer" in next(found[W5].findings).remedy.text
    (finding,) = found[BALANCER].findings
    assert "`sudo systemctl start haproxy` starts it" in finding.remedy.text
    assert commands(scene) == {BALANCER: [HEAL]}


@pytest.mark.parametrize(
    "spoil",
    [
        status_spoilers.orphan,
        status_spoilers.vanished,
        status_spoilers.not_joined,
        status_spoilers.moved,
        status_spoilers.logins_moved,
        status_spoilers.control_plane_added,
    ],
)
def test_no_heal_of_a_node_is_advised_without_a_load_balancer(spoil):
    scene = Scene()
    spoil(scene)
    assert commands(scene, ["balancer"]) == {BALANCER: [HEAL]}
    texts = [
        f.remedy.text
        for row in rows(scene, silent=["balancer"]).values()
        for f in row.findings
    ]
    assert len([text for text in texts if "heal" in text.lower()]) == 1


def test_load_balancer_that_heat_has_not_built_has_its_command():
    scene = Scene(balancer=None)
    scene.unfinished = [
        Unfinished(Role.LOAD_BALANCER, "server-9", "externalLB is UPDATE_FAILED")
    ]
    lost(scene)
    assert commands(scene, ["balancer"]) == {BALANCER: [HEAL]}
    assert findings(scene, silent=["balancer"])[BALANCER] == ["no complete VM in Heat"]


def test_whole_vnf_may_still_be_healed():
    scene = Scene()
    status_spoilers.control_plane_gone(scene)
    assert "openstack vnflcm heal ID" in commands(scene, ["balancer"])[CP]


def test_nothing_waits_for_what_is_not_known():
    scene = Scene()
    lost(scene)
    silent = ["balancer", "machines"]
    assert BALANCER not in findings(scene, silent=silent)
    assert set(commands(scene, silent)) == {W5, W55}


def test_other_worker_is_healed_while_the_load_balancer_runs():
    scene = Scene()
    scene.node(W5, ready=False, reason="gone")
    scene.backends[CP] = replace(scene.backends[CP], state="UP")
    assert set(commands(scene)) == {W5}
