# SPDX-License-Identifier: Apache-2.0
"""The commands that heal, by what a remedy heals."""

import pytest

from tacker_k8s_mgmt.status.facts import Heal, HealCommands
from tests.helpers import status_spoilers
from tests.helpers.status_scene import BALANCER, CP, W5, Scene, rows

VNFCS = {"vnfc-5": "server-5", "vnfc-9": "server-9"}
V1 = HealCommands("ID", "v1", VNFCS)
V2 = HealCommands("ID", "v2", VNFCS)
WHOLE = "openstack vnflcm heal ID"
FIVE = f"{WHOLE} --vnfc-instance vnfc-5"


@pytest.mark.parametrize(
    ("heal", "server", "lines"),
    [
        (None, "server-5", []),
        (Heal.VNFC, "server-5", [FIVE]),
        (Heal.VNFC, "server-6", []),
        (Heal.VNFC, "", []),
        (Heal.VNF, "", [WHOLE]),
        (Heal.VNFC | Heal.VNF, "server-5", [FIVE, WHOLE]),
        (Heal.BALANCER, "server-5", [f"{WHOLE} --vnfc-instance vnfc-9"]),
    ],
)
def test_each_kind_of_remedy(heal, server, lines):
    assert list(V1.of(heal, server, "server-9")) == lines
    version = " --os-tacker-api-version 2"
    assert list(V2.of(heal, server, "server-9")) == [line + version for line in lines]


def test_of_an_unknown_vnf_instance_there_is_none():
    assert list(HealCommands().of(Heal.VNF, "", "")) == []


def heals(spoil, name):
    scene = Scene()
    spoil(scene)
    return [finding.remedy.heal for finding in rows(scene)[name].findings]


def test_remedies_name_what_they_heal():
    assert heals(status_spoilers.no_node_object, W5) == [Heal.VNFC]
    assert heals(status_spoilers.no_inventory, W5) == [Heal.VNF]
    assert heals(status_spoilers.no_inventory, CP) == [Heal.VNF]
    assert heals(status_spoilers.cordoned, W5) == [None]
    assert heals(status_spoilers.balancer_without_vm, BALANCER) == [Heal.VNFC]
    assert heals(status_spoilers.no_backend, CP) == [Heal.BALANCER]
    assert heals(status_spoilers.control_plane_gone, CP) == [Heal.VNFC | Heal.VNF]
