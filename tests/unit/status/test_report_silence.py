# SPDX-License-Identifier: Apache-2.0
"""Places that do not answer: what the others tell without them."""

import dataclasses

import pytest

from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.status.facts import Answers, Source
from tests.helpers import status_spoilers
from tests.helpers.status_scene import (
    BALANCER,
    CP,
    W5,
    W55,
    WITHOUT_BALANCER,
    Scene,
    findings,
    rows,
)
from tests.helpers.status_tables import TABLE

SOURCES = {
    "machines": Source.HEAT,
    "inventory": Source.INVENTORY,
    "nodes": Source.CLUSTER,
    "balancer": Source.BALANCER,
    "vims": Source.VIM,
}


@pytest.mark.parametrize("silent", SOURCES)
def test_silence_of_one_place_is_no_difference(silent):
    found = rows(Scene(), silent=[silent])
    assert findings(Scene(), silent=[silent]) == {}
    column = SOURCES[silent]
    marked = {name for name, row in found.items() if row.cells[column].text == "?"}
    expected = {CP, W5, W55} if silent != "vims" else {BALANCER}
    if silent in ("machines", "balancer"):
        expected |= {BALANCER}
    assert marked == expected


@pytest.mark.parametrize("silent", SOURCES)
@pytest.mark.parametrize("entry", TABLE, ids=[one[0].__name__ for one in TABLE])
def test_an_unreachable_source_proves_nothing_of_others(entry, silent):
    scene = Scene()
    entry[0](scene)
    # Without the inventory, a VM that is not complete has no name. What a node needs
    # the load balancer for is a difference of the load balancer, too.
    others = {BALANCER} if silent == "balancer" else {"VM server-5"}
    assert set(findings(scene, silent=[silent])) <= {entry[1], *others}


def all_but(*heard):
    return [
        field.name for field in dataclasses.fields(Answers) if field.name not in heard
    ]


@pytest.mark.parametrize("heard", ["machines", "inventory", "balancer"])
def test_a_single_source_identifies_each_vm(heard):
    found = rows(Scene(), silent=all_but(heard))
    assert findings(Scene(), silent=all_but(heard)) == {}
    roles = {row.name: row.role for row in found.values()}
    assert roles == {
        CP: Role.CONTROL_PLANE,
        W5: Role.WORKER,
        W55: Role.WORKER,
        BALANCER: Role.LOAD_BALANCER,
    }


def test_the_cluster_alone_knows_its_nodes():
    found = rows(Scene(), silent=all_but("nodes"))
    assert findings(Scene(), silent=all_but("nodes")) == {}
    assert set(found) == {CP, W5, W55, BALANCER}


def test_a_vim_alone_has_a_row():
    found = rows(Scene(), WITHOUT_BALANCER, all_but("vims"))
    assert [row.cells[Source.VIM].text for row in found.values()] == ["our-vim"]


@pytest.mark.parametrize(
    ("spoil", "silent"),
    [
        (status_spoilers.no_route, "machines"),
        (status_spoilers.no_route, "inventory"),
        (status_spoilers.no_route, "nodes"),
        (status_spoilers.no_node_object, "machines"),
        (status_spoilers.no_node_object, "inventory"),
        (status_spoilers.not_joined, "nodes"),
        (status_spoilers.rebuilt, "nodes"),
        (status_spoilers.vanished, "nodes"),
    ],
)
def test_what_the_other_sources_prove_is_reported(spoil, silent):
    scene = Scene()
    spoil(scene)
    assert set(findings(scene, silent=[silent])) == {W5}


@pytest.mark.parametrize(
    ("spoil", "silent"),
    [
        (status_spoilers.stranger, ["machines"]),
        (status_spoilers.stranger, ["inventory"]),
        (status_spoilers.route_without_vm, ["machines"]),
        (status_spoilers.route_without_vm, ["inventory"]),
        (status_spoilers.route_without_vm, ["machines", "inventory"]),
        (status_spoilers.unfinished_for_unknown_reasons, ["machines"]),
        (status_spoilers.vim_elsewhere, ["machines"]),
    ],
)
def test_what_no_source_proves_is_no_finding(spoil, silent):
    scene = Scene()
    spoil(scene)
    assert findings(scene, silent=silent) == {}
