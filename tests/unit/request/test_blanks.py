# SPDX-License-Identifier: Apache-2.0
"""Blanks that a request still has are named, each once."""

import copy
import json

import pytest

from tacker_k8s_mgmt.request import reader, structure
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import body as requests
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2
from tests.helpers.samples import changed, parsed, problems, request

WHAT = structure.mark("what nobody knows")
SENTENCE = "is still to be filled in: what nobody knows"


@pytest.mark.parametrize(
    "place",
    [
        # Would be valid without the mark's meaning, and would not.
        "ansible.username",
        "ansible.ip_address",
        "ansible.port",
        "ansible.transferring_inventory_path",
        "worker_node.private_key",
        "worker_node.password",
        "master_node.pod_cidr",
        "cluster.network.mtu",
        "kubespray_vars.files_repo",
    ],
)
def test_a_blank_is_one_problem_by_the_attributes_name(place):
    assert problems(changed({place: WHAT})) == (f"{place}: {SENTENCE}",)


def test_blanks_are_reported_beside_other_problems():
    wrong = {"ansible.ip_address": WHAT, "ansible.port": "22", "vim_name": WHAT}
    found = problems(changed(wrong))
    assert sorted(found) == [
        f"ansible.ip_address: {SENTENCE}",
        "ansible.port: must be a whole number",
        f"vim_name: {SENTENCE}",
    ]


def test_blanks_within_a_text():
    text = f"user: {structure.mark('a name')}\nhash: '{structure.mark('a hash')}'\n"
    assert list(structure.places({"user_data": text})) == [
        (("user_data",), "is still to be filled in: a name; a hash")
    ]


def test_a_text_that_only_resembles_a_mark_is_a_value():
    made = parsed({"vim_name": "<fill in>"})
    assert made.vim_name == "<fill in>"


@pytest.mark.parametrize("api", [V1, V2], ids=lambda api: api.name)
def test_blanks_outside_the_drivers_attribute(api):
    path = parts.samples(api) / "requests" / "instantiate-simple.json"
    body = json.loads(path.read_text())
    clean = copy.deepcopy(body)
    body["extVirtualLinks"][0]["resourceId"] = WHAT
    body["flavourId"] = WHAT
    body["additionalParams"]["key_name"] = WHAT
    body["additionalParams"][reader.ATTRIBUTE]["vim_name"] = WHAT
    assert sorted(requests.read(body, api).problems) == [
        f"additionalParams.key_name: {SENTENCE}",
        f"extVirtualLinks.0.resourceId: {SENTENCE}",
        f"flavourId: {SENTENCE}",
    ]
    assert requests.read(clean, api).problems == ()


def test_a_blank_where_tacker_wants_a_uuid_is_one_problem():
    body = {"vnfdId": WHAT, "vnfInstanceName": "one"}
    assert requests.read(body).problems == (f"vnfdId: {SENTENCE}",)


def test_the_command_names_every_blank(tmp_path, capsys):
    body = {"flavourId": "simple", "extVirtualLinks": [], **_params("vim_name")}
    body["extVirtualLinks"] = [
        {"id": "one", "resourceId": WHAT, "extCps": [_cp("masterNode_CP1")]}
    ]
    path = tmp_path / "instantiate.json"
    path.write_text(json.dumps(body))
    assert main(["params", "check", str(path)]) == 1
    out = capsys.readouterr().out
    assert f"problem: extVirtualLinks.0.resourceId: {SENTENCE}\n" in out
    assert f"problem: vim_name: {SENTENCE}\n" in out
    assert "2 problems" in out


def _params(name):
    return {"additionalParams": request(changed({name: WHAT}))}


def _cp(name):
    config = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
    return {"cpdId": name, "cpConfig": [config]}
