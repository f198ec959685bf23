# SPDX-License-Identifier: Apache-2.0
"""The installed Tacker's v2 API takes our v2 packages and the sample requests.

Tacker's own code runs here: it reads the VNFD, makes the grant request, and runs the
package's user data in a process of their own. Heat alone is not asked.
"""

import json
import logging
import shutil
import sys
import zipfile

import pytest
import yaml

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.common import csar_utils
from tacker.conf import CONF
from tacker.sol_refactored import objects
from tacker.sol_refactored.api import validator
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import vnfd_utils
from tacker.sol_refactored.conductor import vnflcm_driver_v2
from tacker.sol_refactored.infra_drivers.openstack import openstack

from tacker_k8s_mgmt.tools.csar import body as request_check
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.build import build
from tacker_k8s_mgmt.tools.csar.tacker_api import V2
from tests.contract import request_schemas

VNF = "9c9c9c9c-0000-4000-8000-000000000002"
USER_DATA = {
    "lcm-operation-user-data": "./UserData/k8s_cluster_user_data.py",
    "lcm-operation-user-data-class": "KubernetesClusterUserData",
}


def sample(name):
    return json.loads((parts.samples(V2) / "requests" / name).read_text())


@pytest.fixture(autouse=True)
def _quick(request, monkeypatch):
    """What is started has done its imports, unless a test has it start alone."""
    if "alone" not in request.fixturenames:
        program = request.getfixturevalue("python_for_user_data")
        monkeypatch.setattr(sys, "executable", program)


@pytest.fixture(scope="module", params=["simple", "ha"])
def flavour(request):
    return request.param


@pytest.fixture(scope="module")
def package(tmp_path_factory, flavour):
    path = tmp_path_factory.mktemp("packages") / f"{flavour}.zip"
    return build(flavour, path, api=V2).path


@pytest.fixture(scope="module")
def vnfd(tmp_path_factory, package):
    """The VNFD as the conductor has it."""
    objects.register_all()
    directory = tmp_path_factory.mktemp("csar")
    with zipfile.ZipFile(package) as opened:
        opened.extractall(directory)
    found = vnfd_utils.Vnfd("vnfd")
    found.init_from_csar_dir(str(directory))
    return found


@pytest.fixture
def driver():
    return object.__new__(vnflcm_driver_v2.VnfLcmDriverV2)


def grant_request(operation):
    return objects.GrantRequestV1(
        vnfInstanceId=VNF,
        vnfLcmOpOccId=VNF,
        vnfdId="vnfd",
        operation=operation,
        isAutomaticInvocation=False,
    )


def instance(flavour, workers=0):
    """A VNF instance, instantiated if it has workers."""
    made = objects.VnfInstanceV2(
        id=VNF, vnfdId="vnfd", instantiationState="NOT_INSTANTIATED"
    )
    if workers:
        made.instantiatedVnfInfo = objects.VnfInstanceV2_InstantiatedVnfInfo.from_dict(
            {
                "flavourId": flavour,
                "vnfState": "STARTED",
                "vnfcResourceInfo": [
                    {
                        "id": f"worker-{number}",
                        "vduId": "workerNode",
                        "computeResource": {"resourceId": f"worker-{number}"},
                        "metadata": {},
                    }
                    for number in range(workers)
                ],
                "extVirtualLinkInfo": [
                    {
                        "id": "net0_worker",
                        "resourceHandle": {"resourceId": "external"},
                        "currentVnfExtCpData": sample("change-ext-conn.json")[
                            "extVirtualLinks"
                        ][0]["extCps"],
                    }
                ],
            }
        )
    return made


def instantiate(driver, vnfd, body, flavour):
    """What Tacker's OpenStack driver sends to Heat for an instantiation."""
    asked = objects.InstantiateVnfRequest.from_dict(body)
    inst, granted = instance(flavour), grant_request("INSTANTIATE")
    driver.instantiate_grant(granted, asked, inst, vnfd)
    made = openstack.Openstack()._make_hot(
        asked, inst, granted, objects.GrantV1(), vnfd
    )
    return made["parameters"]["nfv"], yaml.safe_load(made["template"]), made["files"]


@pytest.fixture
def body(flavour):
    return sample(f"instantiate-{flavour}.json")


# --- upload and requests


def test_the_upload_is_accepted(package, flavour, tmp_path):
    logging.getLogger("tacker.tosca.utils").setLevel(logging.CRITICAL)
    CONF.set_override("vnf_package_csar_path", str(tmp_path), group="vnf_package")
    try:
        data, flavours, artifacts = csar_utils.load_csar_data(
            None, "package", str(package)
        )
    finally:
        CONF.clear_override("vnf_package_csar_path", group="vnf_package")
    assert data["product_name"] == "Kubernetes cluster"
    assert [one["flavour_id"] for one in flavours] == [flavour]
    assert "Scripts/kubespray_mgmt_v2.py" in {
        artifact["Source"] for artifact in artifacts
    }


SCHEMAS = request_schemas.SCHEMAS["v2"]
LINK = {"id": "n", "resourceId": "n", "extCps": [{"cpdId": "c", "cpConfig": {}}]}
SHAPES = [
    {"vnfdId": ""},
    {"vnfdId": "any", "vnfInstanceName": "n" * 256},
    {"flavourId": "simple"},
    {"flavourId": ""},
    {"flavourId": "simple", "vimConnectionInfo": {"one": {"vimType": "T"}}},
    {"flavourId": "simple", "vimConnectionInfo": {"one": {}}},
    {"flavourId": "simple", "vimConnectionInfo": [{"vimType": "T"}]},
    {"flavourId": "simple", "extVirtualLinks": [LINK]},
    {"extVirtualLinks": {}},
    {"type": "SCALE_OUT", "aspectId": "a", "numberOfSteps": 0},
    {"type": "SCALE_OUT", "aspectId": "a", "numberOfSteps": 2},
    {"vnfcInstanceId": ["workerNode-1"]},
    {"vnfcInstanceId": "workerNode-1"},
    {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0},
    {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 5},
    {"metadata": {"note": "n" * request_check.LONGEST_TEXT}},
    {"metadata": {"note": "n" * (request_check.LONGEST_TEXT + 1)}},
    {"metadata": {"notes": ["n" * (request_check.LONGEST_TEXT + 1)]}},
]


def api_takes(operation, body):
    try:
        validator.SolSchemaValidator(SCHEMAS[operation]).validate(body)
    except sol_ex.SolValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "body",
    [
        *SHAPES,
        *(sample(path.name) for path in (parts.samples(V2) / "requests").iterdir()),
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_our_check_takes_what_the_api_takes(body):
    read = request_check.read(body, V2)
    assert (read.problems == ()) is api_takes(read.operation, body), read.problems


# --- hooks

DECLARED = [
    *(
        f"{operation}_{when}"
        for operation in (
            "instantiate",
            "terminate",
            "scale",
            "heal",
            "change_external_connectivity",
            "change_current_package",
        )
        for when in ("start", "end")
    ),
    "instantiate_rollback_start",
    "scale_rollback_start",
    "change_external_connectivity_rollback_start",
    "change_external_connectivity_rollback_end",
    "change_current_package_rollback_start",
    "change_current_package_rollback_end",
]


@pytest.mark.parametrize("hook", DECLARED)
def test_every_hook_leads_to_our_script(vnfd, flavour, hook):
    script = vnfd.get_interface_script(flavour, hook)
    copy = f"{vnfd.csar_dir}/Definitions/{script}"
    with open(copy, "rb") as opened:
        assert opened.read() == parts.driver(V2)


@pytest.mark.parametrize(
    "hook", ["modify_information_rollback_start", "scale_rollback_end"]
)
def test_no_process_is_started_for_hooks_without_work(vnfd, flavour, hook):
    assert vnfd.get_interface_script(flavour, hook) is None


# --- user data


@pytest.mark.parametrize("level", ["instantiation_level_1", "instantiation_level_2"])
def test_the_level_decides_how_many_vms_there_are(driver, vnfd, body, flavour, level):
    body["instantiationLevelId"] = level
    nfv, _, _ = instantiate(driver, vnfd, body, flavour)
    first = level.endswith("1")
    assert nfv["VDU"]["workerNode"]["desired_capacity"] == (2 if first else 3)
    if flavour == "ha":
        planes = nfv["VDU"]["masterNode"]["desired_capacity"]
        assert planes == (3 if first else 5)


@pytest.mark.usefixtures("alone")
def test_every_value_that_the_template_takes_is_given(driver, vnfd, body, flavour):
    nfv, template, files = instantiate(driver, vnfd, body, flavour)
    external = {"network": "external", "fixed_ips": []}
    assert nfv["CP"] == dict.fromkeys(
        ("masterNode_CP1", "workerNode_CP2", "externalLB_CP1"), external
    )
    image = "ubuntu-24.04-server-cloudimg-amd64"
    assert {one["vcImageId"] for one in nfv["VDU"].values()} == {image}
    flavors = {vdu: one["computeFlavourId"] for vdu, one in nfv["VDU"].items()}
    assert flavors == {
        "masterNode": "m1.medium",
        "workerNode": "m1.medium",
        "externalLB": "m1.small",
    }
    assert "base_hot_nested_worker.yaml" in files
    assert template["resources"]["worker_instance"]


def test_parameters_of_the_request_outlive_a_stack_that_is_made_anew(
    driver, vnfd, body, flavour
):
    """Tacker makes it from the template and ``nfv``, without other parameters."""
    body["additionalParams"]["internal_cidr"] = "10.20.0.0/24"
    _, template, _ = instantiate(driver, vnfd, body, flavour)
    assert template["parameters"]["internal_cidr"]["default"] == "10.20.0.0/24"
    assert template["parameters"]["service_cidr"]["default"] == "0.0.0.0/0"


def test_parameters_without_a_default_have_to_be_given(
    driver, vnfd, body, flavour, tmp_path
):
    changed = tmp_path / "csar"
    shutil.copytree(vnfd.csar_dir, changed)
    top = changed / "BaseHOT" / flavour / "base_hot_top.yaml"
    top.write_text(top.read_text().replace("    default: 10.99.0.0/24\n", "", 1))
    bare = vnfd_utils.Vnfd("vnfd")
    bare.init_from_csar_dir(str(changed))
    del body["additionalParams"]["management_cidr"]
    with pytest.raises(sol_ex.UserdataExecutionFailed) as caught:
        instantiate(driver, bare, body, flavour)
    assert "additionalParams has no management_cidr, which" in caught.value.detail


def test_one_network_may_be_that_of_all_other_connection_points(
    driver, vnfd, body, flavour
):
    del body["extVirtualLinks"][:2]
    body["additionalParams"]["public_network"] = "public"
    nfv, template, _ = instantiate(driver, vnfd, body, flavour)
    networks = {cp: port["network"] for cp, port in nfv["CP"].items()}
    assert networks == {
        "masterNode_CP1": "public",
        "workerNode_CP2": "public",
        "externalLB_CP1": "external",
    }
    assert template["parameters"]["public_network"]["default"] == "public"


def addresses(body, cp, **wanted):
    for link in body["extVirtualLinks"]:
        (one,) = link["extCps"]
        if one["cpdId"] == cp:
            (protocol,) = one["cpConfig"][cp]["cpProtocolData"]
            protocol["ipOverEthernet"]["ipAddresses"] = [{"type": "IPV4", **wanted}]


def test_addresses_of_the_request_reach_the_port(driver, vnfd, body, flavour):
    addresses(body, "externalLB_CP1", fixedAddresses=["10.9.9.9"], subnetId="s")
    nfv, _, _ = instantiate(driver, vnfd, body, flavour)
    fixed = nfv["CP"]["externalLB_CP1"]["fixed_ips"]
    assert fixed == [{"ip_address": "10.9.9.9", "subnet": "s"}]


@pytest.mark.usefixtures("alone")
def test_what_is_missing_is_reported_in_one_sentence(driver, vnfd, body, flavour):
    addresses(body, "workerNode_CP2", fixedAddresses=["10.9.9.9"])
    del body["extVirtualLinks"][0]
    with pytest.raises(sol_ex.UserdataExecutionFailed) as caught:
        instantiate(driver, vnfd, body, flavour)
    assert "user data: extVirtualLinks has no entry for masterNode_CP1; " in (
        caught.value.detail
    )
    assert "workerNode_CP2 cannot have the fixed address" in caught.value.detail
    assert "Traceback" not in caught.value.detail


def asked_again(vnfd, flavour, kind, operation, body, is_rollback=False):
    """What is sent to Heat for a later operation on two workers."""
    granted = grant_request(operation)
    if operation == "SCALE":
        granted.addResources = [
            objects.ResourceDefinitionV1(
                id="new", type="COMPUTE", resourceTemplateId="workerNode"
            )
        ]
    made = openstack.Openstack()._make_hot(
        kind.from_dict(body),
        instance(flavour, workers=2),
        granted,
        objects.GrantV1(),
        vnfd,
        is_rollback=is_rollback,
    )
    return made["parameters"]["nfv"]


@pytest.mark.parametrize("given", [{}, {"additionalParams": USER_DATA}])
def test_a_scale_out_needs_no_user_data_in_its_request(vnfd, flavour, given):
    body = {**sample("scale-out.json"), **given}
    for is_rollback, workers in ((False, 3), (True, 2)):
        nfv = asked_again(
            vnfd, flavour, objects.ScaleVnfRequest, "SCALE", body, is_rollback
        )
        assert nfv["VDU"]["workerNode"] == {"desired_capacity": workers}
        assert set(nfv) == {"VDU"}


@pytest.mark.parametrize("given", [{}, {"additionalParams": USER_DATA}])
def test_a_heal_changes_no_parameter(vnfd, flavour, given):
    body = {**sample("heal-vnf.json"), **given}
    assert asked_again(vnfd, flavour, objects.HealVnfRequest, "HEAL", body) == {}


def test_a_change_of_networks_changes_what_it_names(vnfd, flavour):
    kind = objects.ChangeExtVnfConnectivityRequest
    body = sample("change-ext-conn.json")
    nfv = asked_again(vnfd, flavour, kind, "CHANGE_EXT_CONN", body)
    assert nfv == {"CP": {"workerNode_CP2": {"network": "external-2", "fixed_ips": []}}}
    before = asked_again(vnfd, flavour, kind, "CHANGE_EXT_CONN", body, True)
    assert before["CP"]["workerNode_CP2"] == {"network": "external", "fixed_ips": []}


def test_another_package_leaves_the_vms_as_they_are(vnfd, flavour):
    kind = objects.ChangeCurrentVnfPkgRequest
    body = sample("change-vnfpkg.json")
    assert asked_again(vnfd, flavour, kind, "CHANGE_VNFPKG", body) == {}
    body["additionalParams"]["vdu_params"] = [{"vdu_id": "workerNode"}]
    with pytest.raises(sol_ex.UserdataExecutionFailed, match="no VM is replaced"):
        asked_again(vnfd, flavour, kind, "CHANGE_VNFPKG", body)
