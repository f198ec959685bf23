# SPDX-License-Identifier: Apache-2.0
"""The installed Tacker takes the `simple` package and the sample requests.

Tacker's own code runs here, from the upload to what it sends to Heat; only its
database and Heat itself are stand-ins.
"""

import contextlib
import json
import logging
import re
import shutil
import types

import pytest
import yaml

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import objects
from tacker.api.schemas import vnf_lcm
from tacker.api.validation import validators
from tacker.common import csar_utils, exceptions
from tacker.conf import CONF
from tacker.extensions import vnfm
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm.infra_drivers.openstack import openstack

from tacker_k8s_mgmt.tools.csar import archive, parts
from tacker_k8s_mgmt.tools.csar import body as request_check
from tacker_k8s_mgmt.tools.csar.build import build
from tacker_k8s_mgmt.tools.csar.tacker_api import V1
from tests.contract import request_schemas
from tests.contract.onboarding import PACKAGE, VNF, hashing_driver, instantiate, request
from tests.helpers import specification

HOOKS = [
    f"{operation}_{moment}"
    for operation in (
        "instantiate",
        "terminate",
        "scale",
        "heal",
        "change_external_connectivity",
        "modify_information",
    )
    for moment in ("start", "end")
]


def sample(name):
    return json.loads((parts.samples() / "requests" / name).read_text())


@contextlib.contextmanager
def upload_of(flavour, root, source=None):
    """A package as Tacker has it after the upload."""
    objects.register_all()
    # A Tacker from PyPI lacks its SOL001 files and logs that with a broken format.
    logging.getLogger("tacker.tosca.utils").setLevel(logging.CRITICAL)
    former = CONF.vnf_package.vnf_package_csar_path
    CONF.set_override("vnf_package_csar_path", str(root), group="vnf_package")
    zip_path = root / "upload.zip"
    build(flavour, zip_path, source=source)
    data, flavours, artifacts = csar_utils.load_csar_data(None, PACKAGE, str(zip_path))
    yield types.SimpleNamespace(
        path=root / PACKAGE, vnf_data=data, flavours=flavours, artifacts=artifacts
    )
    CONF.set_override("vnf_package_csar_path", former, group="vnf_package")


@pytest.fixture(scope="module")
def onboarded(tmp_path_factory):
    with upload_of("simple", tmp_path_factory.mktemp("packages")) as package:
        yield package


@pytest.fixture(autouse=True)
def without_database(monkeypatch):
    """Tacker finds every VNFD in the one package."""
    monkeypatch.setattr(
        objects.VnfPackageVnfd,
        "get_by_id",
        lambda *_: types.SimpleNamespace(package_uuid=PACKAGE),
    )


@pytest.fixture
def tacker(onboarded):
    """Tacker's view of the package."""
    return onboarded


# --- upload


def test_the_upload_is_accepted(onboarded):
    assert onboarded.vnf_data["descriptor_id"] == sample("create.json")["vnfdId"]
    assert onboarded.vnf_data["product_name"] == "Kubernetes cluster"
    (flavour,) = onboarded.flavours
    assert flavour["flavour_id"] == "simple"
    assert set(flavour["instantiation_levels"]["levels"]) == {
        "instantiation_level_1",
        "instantiation_level_2",
    }
    assert {artifact["Source"] for artifact in onboarded.artifacts} >= {
        "Scripts/kubespray_mgmt.py",
        "Scripts/ExternalLB_installation.sh",
        "Scripts/install_external_lb.sh",
        "UserData/k8s_cluster_user_data.py",
    }


def test_an_upload_with_a_wrong_hash_is_refused(onboarded, tmp_path):
    files = archive.read(onboarded.path.parent / "upload.zip")
    files["Scripts/kubespray_mgmt.py"] += b"#"
    changed = tmp_path / "changed.zip"
    archive.write(changed, files)
    with pytest.raises(exceptions.InvalidCSAR, match=r"Scripts/kubespray_mgmt\.py"):
        csar_utils.load_csar_data(None, "changed", str(changed))


def test_the_load_balancer_script_stays_executable(onboarded):
    assert (onboarded.path / "Scripts/install_external_lb.sh").stat().st_mode & 0o100


# --- requests

SCHEMAS = request_schemas.SCHEMAS["v1"]
BODIES = sorted(path.name for path in (parts.samples() / "requests").iterdir())


def api_takes(operation, body):
    """Whether Tacker's API lets a body pass."""
    try:
        validators._SchemaValidator(SCHEMAS[operation]).validate(body)
    except exceptions.ValidationError:
        return False
    return True


@pytest.mark.parametrize("name", BODIES)
def test_sample_requests_fit_the_api(name):
    operation = request_check.read(sample(name), V1).operation
    schema = validators._SchemaValidator(SCHEMAS[operation]).validator
    assert [error.message for error in schema.iter_errors(sample(name))] == []


def test_the_specifications_request_fits_the_api():
    assert api_takes("instantiate", specification.instantiate())


def links(**changes):
    body = sample("instantiate-simple.json")
    body["extVirtualLinks"][0] |= changes
    return body


VIM = {"id": "one", "vimType": "openstack"}
ETHERNET = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
SHAPES = [
    {"vnfdId": "no-id"},
    {"vnfInstanceName": "one"},
    {"vnfdId": VNF, "vnfInstanceName": "n" * 256},
    {"flavourId": "simple"},
    {"flavourId": 7},
    {"flavourId": "f" * 256},
    {"instantiationLevelId": "one"},
    {"flavourId": "simple", "additionalParams": []},
    {"flavourId": "simple", "extVirtualLinks": {}},
    {"flavourId": "simple", "vimConnectionInfo": [VIM]},
    {"flavourId": "simple", "vimConnectionInfo": [VIM, VIM]},
    {"flavourId": "simple", "vimConnectionInfo": [{"id": "one"}]},
    links(),
    links(id=None),
    links(resourceId=[]),
    links(extCps=[]),
    links(extCps=[{"cpdId": "a", "cpConfig": []}]),
    links(extCps=[{"cpdId": "a", "cpConfig": [ETHERNET]}]),
    links(extCps=[{"cpdId": "a", "cpConfig": [ETHERNET, ETHERNET]}]),
    links(extCps=[{"cpdId": "a", "cpConfig": {"key": ETHERNET}}]),
    links(
        extCps=[
            {"cpdId": "a", "cpConfig": [{"cpProtocolData": [{"layerProtocol": "IP"}]}]}
        ]
    ),
    {"type": "SCALE_OUT", "aspectId": "a"},
    {"type": "OUT", "aspectId": "a"},
    {"type": "SCALE_OUT"},
    {"aspectId": "a"},
    {"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": 2},
    {"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": "2"},
    {"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": 1.5},
    {"type": "SCALE_IN", "aspectId": "a", "additionalParams": None},
    {"cause": "x"},
    {"cause": 7},
    {"vnfcInstanceId": []},
    {"vnfcInstanceId": [VNF]},
    {"vnfcInstanceId": VNF},
    {"vnfcInstanceId": ["one"]},
    {"terminationType": "FORCEFUL"},
    {"terminationType": "NOW"},
    {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 60},
    {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": -1},
    {"gracefulTerminationTimeout": 1},
]


@pytest.mark.parametrize("body", SHAPES, ids=lambda body: json.dumps(body)[:60])
def test_our_check_takes_what_the_api_takes(body):
    read = request_check.read(body, V1)
    assert (read.problems == ()) is api_takes(read.operation, body), read.problems


def test_the_request_names_files_of_the_package(onboarded):
    params = sample("instantiate-simple.json")["additionalParams"]
    script = params["k8s_cluster_installation_param"]["external_lb_param"]
    assert (onboarded.path / script["script_path"]).is_file()
    assert (onboarded.path / params["lcm-operation-user-data"]).is_file()


# --- hooks


@pytest.fixture
def lcm_driver():
    return hashing_driver()


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_leads_to_our_driver(tacker, lcm_driver, hook):
    vnfd = vnflcm_utils.get_vnfd_dict(None, "vnfd", "simple")
    instance = types.SimpleNamespace(vnfd_id="vnfd")
    assert lcm_driver._load_vnf_interface(None, hook, instance, vnfd) == parts.DRIVER


def test_another_driver_file_in_the_package_is_refused(tacker, lcm_driver):
    lcm_driver._mgmt_driver_hash = {parts.DRIVER: "0" * 64}
    vnfd = vnflcm_utils.get_vnfd_dict(None, "vnfd", "simple")
    instance = types.SimpleNamespace(vnfd_id="vnfd")
    with pytest.raises(exceptions.MgmtDriverHashMatchFailure):
        lcm_driver._load_vnf_interface(None, "instantiate_end", instance, vnfd)


# --- instantiation


def vnf_instance(tacker, body):
    """The instance before the stack is made (conductor, ``_instantiate_grant``)."""
    vnfd = vnflcm_utils.get_vnfd_dict(None, "vnfd", "simple")
    info = objects.InstantiatedVnfInfo(flavour_id="simple", vnf_instance_id=VNF)
    info.reinitialize()
    instance = objects.VnfInstance(
        id=VNF, instantiated_vnf_info=info, vim_connection_info=[]
    )
    vnflcm_utils._build_instantiated_vnf_info(vnfd, request(body), instance, "")
    return instance


@pytest.mark.parametrize(
    ("level", "workers"),
    [(None, 2), ("instantiation_level_1", 2), ("instantiation_level_2", 3)],
)
def test_the_level_decides_the_number_of_workers(tacker, monkeypatch, level, workers):
    body = sample("instantiate-simple.json")
    if level:
        body["instantiationLevelId"] = level
    expected = ["externalLB", "masterNode", *["workerNode"] * workers]
    vnfcs = vnf_instance(tacker, body).instantiated_vnf_info.vnfc_resource_info
    assert sorted(vnfc.vdu_id for vnfc in vnfcs) == expected
    created, vnf = instantiate(tacker, monkeypatch, body)
    assert created["parameters"]["worker_instance_desired_capacity"] == workers
    (status,) = vnf["scale_status"]
    assert (status.aspect_id, status.scale_level) == ("worker_instance", workers - 2)


def test_the_sample_request_fills_the_hot(tacker, monkeypatch):
    created, _ = instantiate(tacker, monkeypatch, sample("instantiate-simple.json"))
    node = {"flavor": "m1.medium", "image": "ubuntu-24.04-server-cloudimg-amd64"}
    external = {"network": "external", "fixed_ips": []}
    assert created["parameters"] == {
        "nfv": {
            "VDU": {
                "masterNode": node,
                "workerNode": node,
                "externalLB": {**node, "flavor": "m1.small"},
            },
            "CP": {
                "masterNode_CP1": external,
                "workerNode_CP2": external,
                "externalLB_CP1": external,
            },
        },
        "worker_instance_desired_capacity": 2,
        "key_name": "lab",
        "management_cidr": "10.99.0.0/24",
    }
    assert list(created["files"]) == ["base_hot_nested_worker.yaml"]


@pytest.mark.parametrize("flavour", ["simple", "ha"])
def test_every_value_that_the_hot_takes_is_given(tmp_path, monkeypatch, flavour):
    with upload_of(flavour, tmp_path) as package:
        body = sample(f"instantiate-{flavour}.json")
        created, _ = instantiate(package, monkeypatch, body)
    paths = [
        list(map(str.strip, path.split(",")))
        for path in re.findall(
            r"get_param: \[([^]]+)\]",
            (package.path / f"BaseHOT/{flavour}/base_hot_top.yaml").read_text(),
        )
    ]
    assert len(paths) == 12
    for path in paths:
        value = created["parameters"]
        for key in path:
            value = value[key]
        assert value not in (None, "")


def test_parameters_of_the_hot_can_be_overridden(tacker, monkeypatch):
    body = sample("instantiate-simple.json")
    body["additionalParams"] |= {"internal_cidr": "10.20.0.0/24", "nfv": "mine"}
    created, _ = instantiate(tacker, monkeypatch, body)
    assert created["parameters"]["internal_cidr"] == "10.20.0.0/24"
    assert set(created["parameters"]["nfv"]) == {"VDU", "CP"}


def cp_config(body, cp, *addresses):
    """Ask for addresses of one connection point."""
    for link in body["extVirtualLinks"]:
        if link["extCps"][0]["cpdId"] == cp:
            (protocol,) = link["extCps"][0]["cpConfig"][0]["cpProtocolData"]
            protocol["ipOverEthernet"] = {"ipAddresses": list(addresses)}
    return body


ADDRESSES = {
    "any": ({"numDynamicAddresses": 1}, []),
    "of a subnet": ({"numDynamicAddresses": 1, "subnetId": "s"}, [{"subnet": "s"}]),
    "fixed": ({"fixedAddresses": ["10.9.9.9"]}, [{"ip_address": "10.9.9.9"}]),
    "two fixed of a subnet": (
        {"fixedAddresses": ["10.9.9.9", "10.9.9.8"], "subnetId": "s"},
        [
            {"ip_address": "10.9.9.9", "subnet": "s"},
            {"ip_address": "10.9.9.8", "subnet": "s"},
        ],
    ),
}


@pytest.mark.parametrize(("asked", "given"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_addresses_of_the_request_reach_the_port(tacker, monkeypatch, asked, given):
    body = sample("instantiate-simple.json")
    cp_config(body, "externalLB_CP1", {"type": "IPV4", **asked})
    validators._SchemaValidator(vnf_lcm.instantiate).validate(body)
    created, _ = instantiate(tacker, monkeypatch, body)
    port = created["parameters"]["nfv"]["CP"]["externalLB_CP1"]
    assert port == {"network": "external", "fixed_ips": given}


def test_workers_cannot_share_a_fixed_address(tacker, monkeypatch):
    body = sample("instantiate-simple.json")
    cp_config(body, "workerNode_CP2", {"type": "IPV4", "fixedAddresses": ["10.9.9.9"]})
    with pytest.raises(vnfm.LCMUserDataFailed, match="workerNode_CP2 cannot have"):
        instantiate(tacker, monkeypatch, body)


def test_missing_networks_are_named_together(tacker, monkeypatch):
    body = sample("instantiate-simple.json")
    del body["extVirtualLinks"][:2]
    with pytest.raises(vnfm.LCMUserDataFailed) as caught:
        instantiate(tacker, monkeypatch, body)
    assert str(caught.value) == (
        "LCM user data failed: extVirtualLinks has no entry for masterNode_CP1; "
        "extVirtualLinks has no entry for workerNode_CP2"
    )


def test_one_network_may_be_that_of_all_other_connection_points(tacker, monkeypatch):
    body = sample("instantiate-simple.json")
    del body["extVirtualLinks"][:2]
    body["additionalParams"]["public_network"] = "public"
    created, _ = instantiate(tacker, monkeypatch, body)
    networks = {
        cp: port["network"] for cp, port in created["parameters"]["nfv"]["CP"].items()
    }
    assert networks == {
        "masterNode_CP1": "public",
        "workerNode_CP2": "public",
        "externalLB_CP1": "external",
    }


@pytest.mark.parametrize("text", ["#cloud-config\n{}\n", "both \" and '", "a\\b"])
def test_a_text_that_tacker_does_not_keep_is_refused(tacker, monkeypatch, text):
    body = sample("instantiate-simple.json")
    body["additionalParams"]["user_data"] = text
    with pytest.raises(vnfm.LCMUserDataFailed, match=r"user_data has lines or quotes"):
        instantiate(tacker, monkeypatch, body)


def specification_body(**parameters):
    """The specification's body, and these parameters of the Base HOT."""
    body = specification.instantiate()
    body["additionalParams"] |= parameters
    return body


def test_the_specifications_body_needs_no_parameter(tacker, monkeypatch):
    created, _ = instantiate(tacker, monkeypatch, specification_body())
    network = specification.EXTERNAL_NETWORK
    points = created["parameters"]["nfv"]["CP"]
    assert {cp: port["network"] for cp, port in points.items()} == {
        "masterNode_CP1": network,
        "workerNode_CP2": network,
        "externalLB_CP1": network,
    }


@pytest.fixture
def specified(tmp_path_factory):
    """The package with the specification's Base HOT."""
    source = tmp_path_factory.mktemp("specified") / "samples"
    shutil.copytree(parts.samples(), source)
    own = source / "hot" / "specification"
    shutil.copytree(own, source / "hot" / "simple", dirs_exist_ok=True)
    root = tmp_path_factory.mktemp("packages")
    with upload_of("simple", root, source=source) as package:
        yield package


def test_parameters_of_the_specification_are_filled(specified, monkeypatch):
    body = specification_body(flavor="m1.large", net1="inside")
    created, _ = instantiate(specified, monkeypatch, body)
    found = {
        name: created["parameters"][name]
        for name in ("flavor", "image", "public_network", "net1")
    }
    assert found == {
        "flavor": "m1.large",
        "image": "ubuntu-24.04-server-cloudimg-amd64",
        "public_network": specification.EXTERNAL_NETWORK,
        "net1": "inside",
    }
    template = yaml.safe_load(created["template"])
    server = template["resources"]["externalLB"]["properties"]
    assert server["name"] == "externalLB"


def test_what_differs_has_to_be_given_where_the_hot_has_one_for_all(
    specified, monkeypatch
):
    with pytest.raises(vnfm.LCMUserDataFailed) as caught:
        instantiate(specified, monkeypatch, sample("instantiate-simple.json"))
    assert str(caught.value) == (
        "LCM user data failed: additionalParams has no flavor, which the Base HOT "
        "requires; additionalParams has no net1, which the Base HOT requires"
    )


# --- scaling and healing


def asked_again(tacker, monkeypatch, operation, request):
    """The parameters before, and those that Tacker has the user data make of them."""
    body = sample("instantiate-simple.json")
    created, vnf = instantiate(tacker, monkeypatch, body)
    instance = vnf_instance(tacker, body)
    instance.vnfd_id = "vnfd"
    # Tacker keeps the parameters as Python writes them and reads that as YAML.
    stored = yaml.safe_load(str(created["parameters"]))
    parameters = openstack.OpenStack()._stack_param_update(
        None,
        instance.instantiated_vnf_info,
        {**vnf, "vnfd_id": "vnfd", "res_num": 4},
        instance,
        request,
        stored,
        body["additionalParams"],
        request_type=operation,
    )
    return created["parameters"], parameters


def test_a_heal_leaves_what_was_instantiated_as_it_is(tacker, monkeypatch):
    request = objects.HealVnfRequest(vnfc_instance_id=[])
    before, after = asked_again(tacker, monkeypatch, "heal", request)
    assert after == before


def test_the_rollback_of_a_scale_out_goes_back_to_the_size_before_it(
    tacker, monkeypatch
):
    """Else Heat would take the size of the instantiation."""
    request = objects.ScaleVnfRequest(
        type="SCALE_OUT", aspect_id="worker_instance", number_of_steps=1
    )
    before, after = asked_again(tacker, monkeypatch, "scale", request)
    assert before["worker_instance_desired_capacity"] == 2
    assert after == {**before, "worker_instance_desired_capacity": 4}


def test_healing_the_whole_vnf_keeps_the_workers_that_were_added(tacker, monkeypatch):
    body = sample("instantiate-simple.json")
    instance = vnf_instance(tacker, body)
    again = objects.InstantiateVnfRequest.from_vnf_instance(instance)
    monkeypatch.setitem(globals(), "request", lambda _: again)
    scaled = [{"aspect_id": "worker_instance", "scale_level": 3}]
    created, _ = instantiate(tacker, monkeypatch, body, scale_status=scaled)
    group = yaml.safe_load(created["template"])["resources"]["worker_instance"]
    assert group["properties"]["desired_capacity"] == 5
    assert set(created["parameters"]["nfv"]["CP"]) == {
        "masterNode_CP1",
        "workerNode_CP2",
        "externalLB_CP1",
    }


def test_healing_one_worker_changes_no_parameter(tacker, monkeypatch):
    body = sample("instantiate-simple.json")
    created, vnf = instantiate(tacker, monkeypatch, body)
    info = vnf_instance(tacker, body).instantiated_vnf_info
    one = [v.id for v in info.vnfc_resource_info if v.vdu_id == "workerNode"][:1]
    heal = objects.HealVnfRequest(vnfc_instance_id=one)
    vnf |= {"vnfd_id": "vnfd"}
    assert vnflcm_utils.get_stack_param(None, vnf, heal, info) == created["parameters"]
