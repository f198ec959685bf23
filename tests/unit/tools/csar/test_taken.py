# SPDX-License-Identifier: Apache-2.0
"""Packages that Tacker takes, in other notations than the samples, have no problem."""

import pytest
import yaml

from tacker_k8s_mgmt.tools.csar import parts, request_check
from tacker_k8s_mgmt.tools.csar.package_check import check
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2
from tests.unit.tools.csar.conftest import DF, HOT, packed


def without_scripts(vnfd, hot, files, api):
    """Operations that have no script are named all the same."""
    interface = vnfd["node_templates"]["VNF"]["interfaces"]["Vnflcm"]
    interface |= {"instantiate": [], "terminate": [], "modify_information": []}


def image_in_short_notation(vnfd, hot, files, api):
    files["Files/images/disk.qcow2"] = b"disk\n"
    above = "" if api is V1 else "../"
    artifact = {"sw_image": f"{above}Files/images/disk.qcow2"}
    vnfd["node_templates"]["workerNode"]["artifacts"] = artifact


def boot_from_a_volume(vnfd, hot, files, api):
    server = hot["masterNode"]["properties"]
    volume = {"size": 40, "image": server.pop("image")}
    hot["masterVolume"] = {"type": "OS::Cinder::Volume", "properties": volume}
    device = {"volume_id": {"get_resource": "masterVolume"}, "boot_index": 0}
    server["block_device_mapping_v2"] = [device]


def addresses_by_index(vnfd, hot, files, api):
    path = ["nfv", "CP", "masterNode_CP1", "fixed_ips", 0, "ip_address"]
    port = hot["masterNode_CP1"]["properties"]
    port["fixed_ips"] = [{"ip_address": {"get_param": path}}]


def zones(vnfd, hot, files, api):
    path = ["nfv", "VDU", "masterNode", "locationConstraints"]
    zone = {"get_param": path} if api is V2 else "nova"
    hot["masterNode"]["properties"]["availability_zone"] = zone


CHANGES = [
    without_scripts,
    image_in_short_notation,
    boot_from_a_volume,
    addresses_by_index,
    zones,
]


@pytest.mark.parametrize("api", [V1, V2], ids=["v1", "v2"])
def test_nothing_of_these_is_a_problem(tmp_path, api):
    files = parts.collect("simple", source=parts.samples(api), api=api)
    vnfd, hot = yaml.safe_load(files[DF]), yaml.safe_load(files[HOT])
    for change in CHANGES:
        change(vnfd["topology_template"], hot["resources"], files, api)
    files |= {DF: yaml.safe_dump(vnfd).encode(), HOT: yaml.safe_dump(hot).encode()}
    assert check(packed(files, tmp_path)).problems == ()


@pytest.mark.parametrize(
    ("path", "can"),
    [
        ("UserData/own.py", True),
        ("./UserData/own.py", True),
        ("own.py", True),
        ("UserData/own.v1.py", False),
        ("User.Data/own.py", False),
        ("UserData/own.txt", False),
        ("UserData/own", False),
        (".UserData/own.py", False),
        ("../UserData/own.py", False),
        ("UserData//own.py", False),
    ],
)
def test_user_data_that_v1_can_import(path, can):
    assert request_check._can_be_imported(path) is can
