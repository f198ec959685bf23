# SPDX-License-Identifier: Apache-2.0
"""Packages for Tacker's v2 API: what sets them apart, and that nothing else does."""

import re

import pytest
import yaml

from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.reader import ATTRIBUTE
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar import body as request
from tacker_k8s_mgmt.tools.csar.package_check import check
from tacker_k8s_mgmt.tools.csar.parts import driver, samples
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2, of_package
from tests.unit.tools.csar.conftest import (
    DF,
    ENTRY,
    HOT,
    TYPES,
    packed,
    replaced,
    sample,
)

FLAVOURS = ("simple", "ha")
SCRIPT = "Scripts/kubespray_mgmt_v2.py"


@pytest.fixture(scope="module")
def parts(packages):
    keys = [(flavour, api) for flavour in FLAVOURS for api in ("v1", "v2")]
    return {key: archive.read(packages[key]) for key in keys}


@pytest.fixture
def problems_of(parts, tmp_path):
    """Return a function: the problems of the package with a text replaced."""

    def problems(name, old, new, flavour="simple"):
        files = replaced(parts[flavour, "v2"], (name, old, new))
        return check(packed(files, tmp_path)).problems

    return problems


def topology(parts, flavour, api):
    name = f"Definitions/kubernetes_df_{flavour}.yaml"
    return yaml.safe_load(parts[flavour, api][name])["topology_template"]


# --- the package


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_it_has_the_script_and_not_the_driver_of_the_other_api(parts, flavour):
    for api, other in ((V1, V2), (V2, V1)):
        files = parts[flavour, api.name]
        assert of_package(files) is api
        assert files[api.driver_file] == driver(api)
        assert other.driver_file not in files


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_both_apis_have_the_same_machines_networks_and_levels(parts, flavour):
    v1, v2 = (topology(parts, flavour, api) for api in ("v1", "v2"))
    for one in (v1, v2):
        del one["node_templates"]["VNF"]
    assert v1["node_templates"] == v2["node_templates"]
    assert v1["substitution_mappings"] == v2["substitution_mappings"]

    def policies(tree, *kinds):
        return {
            name: policy
            for entry in tree["policies"]
            for name, policy in entry.items()
            if policy["type"].rpartition(".")[2] in kinds
        }

    for kind in ("VduInstantiationLevels", "AntiAffinityRule"):
        assert policies(v1, kind) == policies(v2, kind)
    (levels,) = policies(v2, "InstantiationLevels").values()
    (before,) = policies(v1, "InstantiationLevels").values()
    for name, level in levels["properties"]["levels"].items():
        other = before["properties"]["levels"][name]
        assert (
            level["scale_info"]["worker_instance"]
            == (other["scale_info"]["worker_instance"])
        )
    (aspects,) = policies(v2, "ScalingAspects").values()
    # Tacker refuses any other aspect, so control planes are not scaled.
    assert set(aspects["properties"]["aspects"]) == {"worker_instance"}


def in_words_of_v1(text):
    """A template of v2 with the names that v1 has for the same things."""
    text = re.sub(r"VDU, (\w+), computeFlavourId", r"VDU, \1, flavor", text)
    text = re.sub(r"VDU, (\w+), vcImageId", r"VDU, \1, image", text)
    text = re.sub(r"image-(master|worker)Node", "image", text)
    return re.sub(
        r"\[ nfv, VDU, (master|worker)Node, desired_capacity \]",
        r"\1_instance_desired_capacity",
        text,
    )


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_both_apis_have_the_same_templates(parts, flavour):
    v1, v2 = parts[flavour, "v1"], parts[flavour, "v2"]
    names = [name for name in v1 if name.startswith("BaseHOT/")]
    assert names == [name for name in v2 if name.startswith("BaseHOT/")]
    for name in names:
        wanted = yaml.safe_load(v1[name])
        for resource, one in list(wanted["resources"].items()):
            if one["type"] == "OS::Heat::ScalingPolicy":
                del wanted["resources"][resource]
            if one["type"] == "OS::Heat::ResourceGroup":
                # Its members have names that Tacker's v2 API cannot sort.
                given = one["properties"]
                wanted["resources"][resource] = {
                    "type": "OS::Heat::AutoScalingGroup",
                    "properties": {
                        "min_size": 1,
                        "max_size": 5,
                        "desired_capacity": given["count"],
                        "resource": given["resource_def"],
                    },
                }
        found = yaml.safe_load(in_words_of_v1(v2[name].decode()))
        assert found["resources"] == wanted["resources"]
        missing = set(wanted["parameters"]) - set(found["parameters"])
        assert missing <= {
            "worker_instance_desired_capacity",
            "master_instance_desired_capacity",
        }


def test_both_packages_can_be_onboarded_side_by_side(parts):
    ids = {
        re.search(rb"descriptor_id: (\S+)", files[ENTRY])[1] for files in parts.values()
    }
    assert len(ids) == len(parts)


# --- the check

BROKEN = {
    "the path as v1 wants it": (
        DF,
        f"file: ../{SCRIPT}",
        f"file: {SCRIPT}",
        f"has the file {SCRIPT} instead of ../{SCRIPT}",
    ),
    "a type that Tacker does not run": (
        DF,
        "type: tosca.artifacts.Implementation.Python",
        "type: tosca.artifacts.Implementation.Bash",
        "has the type tosca.artifacts.Implementation.Bash instead of",
    ),
    "no rollback of a scale-out": (
        DF,
        "          scale_rollback_start:\n"
        "            implementation: mgmt-drivers-kubespray\n",
        "",
        "the hook scale_rollback_start is not named",
    ),
    "a hook that the types do not declare": (
        TYPES,
        "    instantiate_rollback_start:\n",
        "    rollback_start:\n",
        'unknown field "instantiate_rollback_start"',
    ),
    "the image under v1's name": (
        HOT,
        "[ nfv, VDU, externalLB, vcImageId ]",
        "[ nfv, VDU, externalLB, image ]",
        "externalLB must take its image from the parameter "
        "nfv.VDU.externalLB.vcImageId",
    ),
    "a number of workers that is no parameter": (
        HOT,
        "desired_capacity: { get_param: [ nfv, VDU, workerNode, desired_capacity ] }",
        "desired_capacity: 2",
        "worker_instance must take its desired_capacity from the parameter "
        "nfv.VDU.workerNode.desired_capacity",
    ),
    "another script": (
        SCRIPT,
        "import",
        "import  ",
        f"{SCRIPT} is not the installed driver's file; build",
    ),
}


@pytest.mark.parametrize(
    ("name", "old", "new", "words"), BROKEN.values(), ids=BROKEN.keys()
)
def test_what_would_make_tacker_stumble_is_found(problems_of, name, old, new, words):
    found = problems_of(name, old, new)
    assert any(words in text for text in found), found


def test_the_number_of_control_planes_comes_from_the_level(problems_of):
    (found,) = problems_of(
        "BaseHOT/ha/base_hot_top.yaml",
        "desired_capacity: { get_param: [ nfv, VDU, masterNode, desired_capacity ] }",
        "desired_capacity: 3",
        flavour="ha",
    )
    assert found.endswith("from the parameter nfv.VDU.masterNode.desired_capacity")


# --- requests


def requests_of(flavour):
    names = ["scale-out", "scale-in", "heal-worker", "heal-vnf", "heal-vnf-all"]
    names += ["change-ext-conn", "terminate", f"instantiate-{flavour}"]
    return {name: sample(name, V2) for name in names}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_sample_requests_fit_their_package(packages, flavour):
    report = check(packages[flavour, "v2"], requests_of(flavour))
    assert (report.problems, report.warnings) == ((), ())


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_sample_requests_work_one_after_the_other(flavour):
    """The logins of the instantiation are references, which later hooks have."""
    bodies = requests_of(flavour)
    made = bodies.pop(f"instantiate-{flavour}")["additionalParams"]
    kept = reader.without_secrets(made)
    assert kept == {ATTRIBUTE: made[ATTRIBUTE]}
    for body in bodies.values():
        merged = reader.RequestReader().update(kept, body.get("additionalParams", {}))
        assert merged is None or merged.references


def test_requests_of_the_other_api_do_not_fit(packages):
    body = {"request": sample("instantiate-simple")}
    (*_, found) = check(packages["simple", "v2"], body).problems
    assert found == (
        "request: extVirtualLinks.2.extCps.0.cpConfig: must be a structure with "
        "attributes"
    )
    found = check(
        packages["simple", "v1"], {"request": sample("instantiate-simple", V2)}
    ).problems
    assert any("cpConfig: must be a list" in text for text in found)


WRONG = {
    "an unknown connection point": (
        lambda body: body["extVirtualLinks"][0]["extCps"][0].update(cpdId="nothing"),
        "change-ext-conn",
        "nothing is no external connection point (there are: externalLB_CP1, ",
    ),
    "a network inside": (
        lambda body: body["extVirtualLinks"][0]["extCps"][0].update(
            cpdId="workerNode_CP1"
        ),
        "change-ext-conn",
        "workerNode_CP1 is no external connection point",
    ),
    "user data without their class": (
        lambda body: body["additionalParams"].pop("lcm-operation-user-data-class"),
        "instantiate-simple",
        "lcm-operation-user-data and lcm-operation-user-data-class go together",
    ),
    "a protocol without addresses": (
        lambda body: body["extVirtualLinks"][0]["extCps"][0]["cpConfig"][
            "masterNode_CP1"
        ]["cpProtocolData"][0].pop("ipOverEthernet"),
        "instantiate-simple",
        "cpProtocolData.0.ipOverEthernet: is missing",
    ),
    "all that is no boolean": (
        lambda body: body["additionalParams"].update(all="yes"),
        "heal-vnf-all",
        "additionalParams.all: must be true or false",
    ),
    "another kind of upgrade": (
        lambda body: body["additionalParams"].update(upgrade_type="BlueGreen"),
        "change-vnfpkg",
        "additionalParams.upgrade_type: must be RollingUpdate",
    ),
}


@pytest.mark.parametrize(("change", "name", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_tacker_would_refuse_of_a_request_is_reported(
    packages, change, name, words
):
    body = sample(name, V2)
    change(body)
    found = check(packages["simple", "v2"], {"request": body}).problems
    assert any(words in text for text in found), found


def test_user_data_need_not_be_named(packages):
    body = sample("instantiate-simple", V2)
    for name in ("lcm-operation-user-data", "lcm-operation-user-data-class"):
        del body["additionalParams"][name]
    assert check(packages["simple", "v2"], {"request": body}).problems == ()


def test_a_change_of_the_package_is_for_the_new_one(packages):
    body = sample("change-vnfpkg", V2)
    (found,) = check(packages["simple", "v2"], {"request": body}).problems
    assert "vnfdId: the package's descriptor_id is " in found
    body["vnfdId"] = found.rpartition(" ")[2]
    assert check(packages["simple", "v2"], {"request": body}).problems == ()
    (found,) = check(packages["simple", "v1"], {"request": body}).problems
    assert found == "request: the package's API has no change_vnfpkg"


def test_a_body_shows_its_api_by_its_shape():
    link = {"id": "n", "resourceId": "n", "extCps": [{"cpdId": "c", "cpConfig": {}}]}
    (found,) = request.read({"extVirtualLinks": [link]}).problems
    assert "cpConfig: must not be empty" in found
    link["extCps"][0]["cpConfig"] = []
    (found,) = request.read({"extVirtualLinks": [link]}).problems
    assert "cpConfig: must not be empty" in found
    assert request.read({"vnfcInstanceId": ["workerNode-1"]}).problems == ()


# --- the command line


def test_the_command_builds_it_and_its_check_knows(tmp_path, capsys):
    package = tmp_path / "simple.zip"
    command = ["csar", "build", "simple", "--api", "v2", "-o", str(package)]
    assert main(command) == 0
    assert SCRIPT in archive.read(package)
    requests = samples(V2) / "requests"
    given = ["--request", str(requests / "instantiate-simple.json")]
    assert main(["csar", "check", str(package), *given]) == 0
    assert "no problems (flavours: simple)" in capsys.readouterr().out
    upgrade = sample("upgrade", V2)
    command = ["csar", "build", "simple", "--api", "v2", "-o", str(package)]
    assert main([*command, "--vnfd-id", upgrade["vnfdId"], "--force"]) == 0
    given += ["--request", str(requests / "upgrade.json")]
    assert main(["csar", "check", str(package), *given]) == 0, capsys.readouterr().out


def test_an_own_source_is_laid_out_as_the_samples_of_the_api(tmp_path, capsys):
    package = str(tmp_path / "x.zip")
    own = str(samples(V2))
    command = ["csar", "build", "ha", "--api", "v2", "--source", own, "-o", package]
    assert main(command) == 0
