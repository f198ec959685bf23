# SPDX-License-Identifier: Apache-2.0
"""Five places side by side: each way in which one of them may differ."""

import pytest

from tacker_k8s_mgmt.model.vim import Vim
from tacker_k8s_mgmt.status.facts import Source
from tacker_k8s_mgmt.status.rows import sources
from tests.helpers import status_spoilers
from tests.helpers.status_scene import (
    BALANCER,
    COLUMNS,
    CP,
    PARAMS,
    W5,
    W55,
    WITHOUT_BALANCER,
    Scene,
    cells,
    findings,
    remedy,
    rows,
)
from tests.helpers.status_tables import TABLE


@pytest.mark.parametrize(
    ("spoil", "name", "shown", "text", "way_out"),
    TABLE,
    ids=[entry[0].__name__ for entry in TABLE],
)
def test_one_difference_is_one_finding_in_its_row(spoil, name, shown, text, way_out):
    scene = Scene()
    spoil(scene)
    assert findings(scene) == {name: [text]}
    assert way_out in remedy(scene, name)
    row = rows(scene)[name]
    assert " ".join(cell.replace(" ", "") for cell in cells(row)) == shown


def test_a_cluster_whose_sources_agree():
    found = rows(Scene())
    assert findings(Scene()) == {}
    assert list(found) == [CP, W5, W55, BALANCER]
    assert cells(found[CP]) == ["VM", "listed", "Ready", "UP", ""]
    assert cells(found[W5]) == ["VM", "listed", "Ready", "routed", ""]
    assert cells(found[BALANCER]) == ["VM", "", "", "API at 6443", "our-vim"]
    assert (found[W5].server_id, found[W5].address) == ("server-5", "10.10.0.5")
    assert found[BALANCER].address == "10.99.0.9"


def test_names_are_compared_whole():
    scene = Scene()
    del scene.routes[W5]
    scene.node(W55, unschedulable=True)
    assert set(findings(scene)) == {W5, W55}


def test_without_a_load_balancer_there_is_no_column_and_the_vim_is_the_control_planes():
    scene = Scene()
    scene.vims = [Vim("v", "our-vim", "https://10.99.0.4:6443", True)]
    found = rows(scene, WITHOUT_BALANCER)
    assert findings(scene, WITHOUT_BALANCER) == {}
    assert list(found) == [CP, W5, W55]
    assert Source.BALANCER not in found[CP].cells
    assert found[CP].cells[Source.VIM].text == "our-vim"
    others = tuple(column for column in COLUMNS if column is not Source.BALANCER)
    assert sources(WITHOUT_BALANCER) == others
    assert sources(PARAMS) == COLUMNS


def test_an_empty_inventory_is_reported_for_every_vm():
    scene = Scene()
    status_spoilers.no_inventory(scene)
    texts = findings(scene)
    assert set(texts) == {CP, W5, W55}
    assert texts[CP] == texts[W5] == ["in no inventory, for there is none"]
    assert "Restore hosts.yaml" in remedy(scene, W5)


def test_without_a_record_of_joins_each_node_of_the_cluster_has_joined():
    scene = Scene()
    scene.joined = None
    assert findings(scene) == {}
    del scene.nodes[W5]
    assert findings(scene) == {W5: ["not in the cluster"]}
