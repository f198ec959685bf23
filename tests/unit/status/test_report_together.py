# SPDX-License-Identifier: Apache-2.0
"""Differences that come together, and what is none."""

from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Count
from tacker_k8s_mgmt.model.vim import Vim
from tests.helpers import status_spoilers
from tests.helpers.status_scene import (
    CP,
    W5,
    WITHOUT_BALANCER,
    Scene,
    cells,
    findings,
    rows,
)
from tests.helpers.status_tables import GONE


@pytest.mark.parametrize(
    ("spoil", "also", "text"),
    [
        (
            status_spoilers.rebuilt,
            status_spoilers.logins_moved,
            "a new VM: Heat has the server server-new, the inventory server-5",
        ),
        (
            status_spoilers.not_joined,
            status_spoilers.no_route,
            "its join was not completed",
        ),
        (status_spoilers.vanished, status_spoilers.no_node_object, GONE),
        (status_spoilers.vanished, status_spoilers.no_route, GONE),
        (status_spoilers.vanished, status_spoilers.cordoned, GONE),
        (
            status_spoilers.no_node_object,
            status_spoilers.no_route,
            "not in the cluster",
        ),
    ],
)
def test_what_follows_from_a_difference_is_not_reported_again(spoil, also, text):
    scene = Scene()
    spoil(scene)
    also(scene)
    assert findings(scene) == {W5: [text]}


def test_a_vm_that_is_not_complete_may_still_be_a_node_that_is_not_ready():
    scene = Scene()
    status_spoilers.unfinished(scene)
    scene.node(W5, ready=False, reason="no word")
    assert findings(scene)[W5][1:] == ["not Ready: no word"]


def test_a_group_that_tacker_counts_otherwise_has_a_row_of_its_own():
    scene = Scene()
    scene.counts = (
        Count("worker_instance", heat=3, tacker=2, remedy="Scale."),
        Count("other", heat=2, tacker=2, remedy="None."),
    )
    found = rows(scene)
    assert cells(found["worker_instance"]) == ["3 VMs", "", "", "", ""]
    text = "Heat has 3 VMs of it, and Tacker counts 2"
    assert findings(scene) == {"worker_instance": [text]}
    assert "other" not in found


def test_a_worker_has_no_api_server_that_could_be_down():
    scene = Scene()
    scene.routes[W5] = replace(scene.routes[W5], state="DOWN")
    assert findings(scene) == {}


def test_without_heat_and_load_balancer_the_inventory_has_the_api_address():
    scene = Scene()
    scene.listed = dict(reversed(scene.listed.items()))
    scene.vims = [Vim("v", "our-vim", "https://10.99.0.5:6443", True)]
    (text,) = findings(scene, WITHOUT_BALANCER, ["machines"])[CP]
    assert text.startswith("the API is at https://10.99.0.4:6443, the VIM our-vim at")


def test_what_no_inventory_says_about_a_node_depends_on_the_cluster_being_asked():
    scene = Scene()
    scene.add_worker(7)
    texts = findings(scene, silent=["nodes"])
    assert texts == {"worker-10-10-0-7": ["not in the inventory"]}


def test_a_node_may_have_several_findings():
    scene = Scene()
    scene.node(W5, ready=False, reason="no word", unschedulable=True)
    del scene.routes[W5]
    assert len(findings(scene)[W5]) == 3


def test_two_vms_with_one_address_cannot_be_compared():
    scene = Scene()
    scene.workers.append(replace(scene.workers[0], server_id="other"))
    with pytest.raises(errors.ClusterError, match="same address"):
        rows(scene)
