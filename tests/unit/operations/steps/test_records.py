# SPDX-License-Identifier: Apache-2.0
"""Files of the cluster's directory that are cut off, emptied, overwritten or gone."""

import copy
import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    heal_end,
    heal_start,
    instantiated,
    run,
    scale_in,
    scale_out,
)
from tests.helpers.requests import params

NO_TEXT = "\ufffd"
SPOILED = {
    "halved": lambda text: text[: len(text) // 2],
    "emptied": lambda _: "",
    "zeroed": lambda text: "\0" * len(text),
    "no text": lambda _: NO_TEXT,
    "another kind": lambda _: "42\n",
}
NODES_MTU = {"cluster": {"network": {"mtu": "nodes"}}}


def made(wanted=None) -> FakeSite:
    """A cluster with every file that there may be."""
    site = instantiated(wanted)
    site.exposed = (ExposedService("web", 8080, 30080, ()),)
    site.workers.append(machine(Role.WORKER, 6))
    scale_out(site, "server-6", wanted=wanted)
    site.files["healing.json"] = "{}\n"
    site.files["upgrade.json"] = json.dumps({"version": "1.31.9"}, indent=2) + "\n"
    site.changes.clear()
    site.runs.clear()
    return site


def in_by_one(site: FakeSite, wanted=None) -> None:
    scale_in(site, "server-5", wanted=wanted)


def out_by_one(site: FakeSite, wanted=None) -> None:
    site.workers.append(machine(Role.WORKER, 7))
    scale_out(site, "server-7", wanted=wanted)


def healed(site: FakeSite, wanted=None) -> None:
    heal_start(site, "server-5", wanted=wanted)
    place = next(n for n, one in enumerate(site.workers) if one.server_id == "server-5")
    site.workers[place] = machine(Role.WORKER, 5, server="anew")
    heal_end(site, "anew", wanted=wanted)


def end(site: FakeSite) -> tuple[object, ...]:
    return site.members, site.listed, site.routes, site.files, site.known


@pytest.mark.parametrize("operation", [in_by_one, out_by_one, healed])
@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize(
    "name",
    ["hosts.yaml", "machines.json", "joined.json", "services.json", "upgrade.json"],
)
def test_what_can_be_derived_again_is_rebuilt_and_logged(name, how, operation, caplog):
    whole = made()
    operation(whole)
    site = made()
    site.files[name] = SPOILED[how](site.files[name])
    operation(site)
    # Not the load balancer's key: it is in no inventory, and taken for a new VM's.
    for one in (site, whole):
        known = json.loads(one.files["machines.json"])
        known.pop("server-9", None)
        one.files["machines.json"] = json.dumps(known, sort_keys=True)
    assert end(site) == end(whole)
    assert f"/srv/clusters/one/{name} on the Ansible server" in caplog.text


@pytest.mark.parametrize("name", ["hosts.yaml", "machines.json", "joined.json"])
@pytest.mark.parametrize("operation", [in_by_one, out_by_one, healed])
def test_what_was_deleted_is_rebuilt_too(name, operation):
    site = made()
    del site.files[name]
    operation(site)
    whole = made()
    operation(whole)
    assert (site.members, site.listed) == (whole.members, whole.listed)
    assert site.files["joined.json"] == whole.files["joined.json"]
    assert [one.limit for one in site.runs] == [one.limit for one in whole.runs]


@pytest.mark.parametrize("how", SPOILED)
def test_smallest_mtu_is_asked_of_the_nodes(how):
    wanted = params(**NODES_MTU)
    site = made(wanted)
    site.files["nic_mtu.json"] = SPOILED[how]("[\n  1450\n]\n")
    in_by_one(site, wanted)
    assert json.loads(site.files["nic_mtu.json"]) == [1450]


@pytest.mark.parametrize("operation", [in_by_one, out_by_one, healed])
@pytest.mark.parametrize("how", SPOILED)
def test_what_cannot_be_rebuilt_is_refused_before_anything_is_touched(how, operation):
    site = made()
    site.files["healing.json"] = SPOILED[how]('{\n  "rebuilt": ["a", "b"]\n}\n')
    before = copy.deepcopy(end(site))
    with pytest.raises(errors.StepFailed) as caught:
        operation(site)
    assert end(site) == before
    text = str(caught.value)
    assert "step 1/" in text
    assert "The file /srv/clusters/one/healing.json on the Ansible server" in text
    assert "If no heal is under way and none was abandoned, delete it" in text
    assert "defect" not in text


def test_an_upgrade_that_has_stopped_is_not_guessed():
    site = made()
    site.files["upgrade.json"] = "{"
    site.version = "v1.32.8"
    with pytest.raises(errors.StepFailed, match=r"one/upgrade\.json .*\"aim\""):
        in_by_one(site)
    assert site.changes == []


def test_services_of_a_load_balancer_that_does_not_answer_are_not_guessed():
    site = made()
    site.files["services.json"] = "{"
    site.faults.add("balancer.status")
    with pytest.raises(errors.StepFailed, match=r"services\.json .*Delete it; when"):
        in_by_one(site)
    assert site.changes == []


def test_a_spoiled_inventory_without_a_copy_is_refused():
    site = made()
    site.files["hosts.yaml"] = ""
    site.files["hosts.last.yaml"] = "all: {"
    with pytest.raises(errors.StepFailed, match=r"one/hosts\.yaml .* it is empty"):
        in_by_one(site)
    assert site.changes == []


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize("name", ["hosts.yaml", "machines.json"])
def test_the_heal_of_a_whole_vnf_keeps_the_names(name, how):
    site = made()
    before = inventory.parse(site.files["hosts.yaml"])
    site.files[name] = SPOILED[how](site.files[name])
    run(Instantiate, site)
    assert inventory.parse(site.files["hosts.yaml"]) == before


def test_the_copy_is_what_the_inventory_is():
    site = made()
    assert site.files["hosts.last.yaml"] == site.files["hosts.yaml"]
    in_by_one(site)
    kept = inventory.parse(site.files["hosts.last.yaml"])
    assert "server-5" not in {node.server_id for node in kept}
    assert site.files["hosts.last.yaml"] == site.files["hosts.yaml"]
