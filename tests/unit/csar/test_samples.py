# SPDX-License-Identifier: Apache-2.0
"""What the sample package must have, and the samples that go with it.

The order of the first part is that of the specification: VNFD, Base HOT, package.
"""

import ast
import hashlib
import ipaddress
import json
import re
from pathlib import Path

import pytest
import yaml

import lab
from tacker_k8s_mgmt.csar import archive, meta, request, sources, vnfd
from tacker_k8s_mgmt.csar.check import check
from tacker_k8s_mgmt.request import params
from tests.helpers.specification import instantiate

DF = "Definitions/kubernetes_df_simple.yaml"
HOT = "BaseHOT/simple/base_hot_top.yaml"
NESTED = "BaseHOT/simple/nested/base_hot_nested_worker.yaml"
VDUS = {"masterNode", "workerNode", "externalLB"}


@pytest.fixture(scope="module")
def topology(parts):
    return yaml.safe_load(parts[DF])["topology_template"]


@pytest.fixture(scope="module")
def nodes(topology):
    return topology["node_templates"]


@pytest.fixture(scope="module")
def top(parts):
    return yaml.safe_load(parts[HOT])["resources"]


@pytest.fixture(scope="module")
def nested(parts):
    return yaml.safe_load(parts[NESTED])["resources"]


def requirements(node):
    return {
        name: target
        for requirement in node["requirements"]
        for name, target in requirement.items()
    }


def policies(topology, kind):
    return {
        name: policy["properties"]
        for one in topology["policies"]
        for name, policy in one.items()
        if policy["type"] == f"tosca.policies.nfv.{kind}"
    }


# --- VNFD


def test_the_load_balancer_is_in_the_vnfd(topology, nodes):
    mapped = topology["substitution_mappings"]["requirements"]
    assert mapped["virtual_link_external"] == ["externalLB_CP1", "virtual_link"]
    assert nodes["externalLB"]["type"] == vnfd.VDU
    for cp, wanted in {
        "externalLB_CP1": {"virtual_binding": "externalLB"},
        "externalLB_CP2": {
            "virtual_binding": "externalLB",
            "virtual_link": "internalVL",
        },
    }.items():
        assert nodes[cp]["type"] == vnfd.CP
        assert requirements(nodes[cp]) == wanted


def test_every_hook_of_the_v1_api_is_the_drivers(nodes):
    named = nodes["VNF"]["interfaces"]["Vnflcm"]
    operations = (
        *("instantiate", "terminate", "scale", "heal"),
        *("change_external_connectivity", "modify_information"),
    )
    wanted = {f"{name}_{when}" for name in operations for when in ("start", "end")}
    assert set(named) == wanted
    assert {one["implementation"] for one in named.values()} == {sources.DRIVER}
    (artifact,) = nodes["VNF"]["artifacts"].values()
    assert artifact["type"] == "tosca.artifacts.Implementation.Python"


def test_only_workers_scale(topology, top):
    (aspects,) = policies(topology, "ScalingAspects").values()
    assert set(aspects["aspects"]) == {"worker_instance"}
    for one in topology["policies"]:
        for policy in one.values():
            if "Aspect" in policy["type"] and "targets" in policy:
                assert policy["targets"] == ["workerNode"]
    assert top["worker_instance"]["type"] == "OS::Heat::AutoScalingGroup"
    for way, step in (("out", 1), ("in", -1)):
        policy = top[f"worker_instance_scale_{way}"]
        assert policy["type"] == "OS::Heat::ScalingPolicy"
        assert policy["properties"]["scaling_adjustment"] == step


def test_every_level_has_an_odd_number_of_control_planes(topology):
    (levels,) = policies(topology, "InstantiationLevels").values()
    assert len(levels["levels"]) > 1
    numbers = policies(topology, "VduInstantiationLevels")
    planes = numbers["masterNode_instantiation_levels"]["levels"]
    assert set(planes) == set(levels["levels"])
    assert all(plane["number_of_instances"] % 2 == 1 for plane in planes.values())


def test_node_vms_are_large_enough_for_kubernetes(nodes):
    for vdu in ("masterNode", "workerNode"):
        compute = nodes[vdu]["capabilities"]["virtual_compute"]["properties"]
        assert compute["virtual_cpu"]["num_virtual_cpu"] >= 2
        memory = compute["virtual_memory"]["virtual_mem_size"]
        (disk,) = compute["virtual_local_storage"]
        for text, least in ((memory, 4), (disk["size_of_storage"], 40)):
            number, unit = text.split()
            assert (int(number) >= least, unit) == (True, "GiB")


# --- Base HOT


def servers(top, nested):
    return {
        name: one["properties"]
        for resources in (top, nested)
        for name, one in resources.items()
        if one["type"] == "OS::Nova::Server"
    }


def ports(top, nested):
    return {
        name: one["properties"]
        for resources in (top, nested)
        for name, one in resources.items()
        if one["type"] == "OS::Neutron::Port"
    }


def test_the_load_balancer_has_a_port_outside_and_one_inside(top):
    server = top["externalLB"]["properties"]
    assert server["networks"] == [
        {"port": {"get_resource": "externalLB_CP1"}},
        {"port": {"get_resource": "externalLB_CP2"}},
    ]
    outside = top["externalLB_CP1"]["properties"]["network"]
    assert outside == {"get_param": ["nfv", "CP", "externalLB_CP1", "network"]}
    inside = top["externalLB_CP2"]["properties"]["network"]
    assert inside == {"get_resource": "internalVL"}


def test_nothing_of_a_site_is_written_into_the_hot(top, nested):
    assert set(servers(top, nested)) == VDUS
    for server in servers(top, nested).values():
        for key in ("image", "flavor"):
            assert "get_param" in server[key]
    for port in ports(top, nested).values():
        assert isinstance(port["network"], dict)


def test_no_two_vms_share_a_name(top, nested):
    # Without a name, Heat makes one of the stack's, the resource's and a unique part.
    assert not [one for one in servers(top, nested).values() if "name" in one]


def test_the_level_decides_how_many_workers_there_are(top):
    wanted = {"get_param": "worker_instance_desired_capacity"}
    assert top["worker_instance"]["properties"]["desired_capacity"] == wanted


def test_every_port_has_security_groups(parts, top, nested):
    tree = yaml.safe_load(parts[HOT])
    group = tree["resources"]["worker_instance"]["properties"]["resource"]
    known = {n for n, r in top.items() if r["type"] == "OS::Neutron::SecurityGroup"}
    assert len(ports(top, nested)) == 6
    for port in ports(top, nested).values():
        assert port["security_groups"]
        for security_group in port["security_groups"]:
            if "get_param" in security_group:
                security_group = group["properties"][security_group["get_param"]]
            assert security_group["get_resource"] in known


def test_ssh_and_the_api_can_be_narrowed_to_a_network(parts, top):
    tree = yaml.safe_load(parts[HOT])
    for name in ("management_access", "api_access"):
        for rule in top[name]["properties"]["rules"]:
            assert rule["remote_ip_prefix"] == {"get_param": "management_cidr"}
    schema = tree["parameters"]["management_cidr"]
    assert (schema["type"], schema.get("default")) == ("string", None)


HOTS = sorted(sources.samples().glob("**/base_hot_top.yaml"))


@pytest.mark.parametrize("path", HOTS, ids=lambda path: str(path.parent)[-9:])
def test_only_what_the_load_balancer_forwards_is_open_to_users(path):
    rules = yaml.safe_load(path.read_text())["resources"]["service_access"]
    assert [rule["protocol"] for rule in rules["properties"]["rules"]] == ["tcp"]


def test_every_sample_has_a_template():
    assert len(HOTS) == 4


def test_workers_keep_away_from_each_other(parts, top, nested):
    group = top["worker_instance"]["properties"]["resource"]["properties"]
    apart = group["server_group"]["get_resource"]
    assert top[apart]["type"] == "OS::Nova::ServerGroup"
    # Not the strict rule: more workers than hypervisors must not fail to start.
    assert top[apart]["properties"]["policies"] == ["soft-anti-affinity"]
    hints = nested["workerNode"]["properties"]["scheduler_hints"]
    assert hints == {"group": {"get_param": "server_group"}}


def test_the_lab_knows_every_type_of_resource(top, nested):
    plugins = Path(lab.__file__).parent / "cloud" / "heat_plugins"
    known = {
        key.value
        for path in plugins.glob("*.py")
        for function in ast.parse(path.read_text()).body
        if isinstance(function, ast.FunctionDef) and function.name == "resource_mapping"
        for result in function.body
        if isinstance(result, ast.Return) and isinstance(result.value, ast.Dict)
        for key in result.value.keys
    }
    used = {
        resource["type"]
        for resources in (top, nested)
        for resource in resources.values()
    }
    own = {one for one in used if not one.startswith("OS::Heat::")}
    assert own - {NESTED.rpartition("/")[2]} <= known


# --- package


def test_it_has_the_script_and_the_installed_driver(parts):
    assert parts["Scripts/kubespray_mgmt.py"] == sources.driver()
    assert parts["Scripts/install_external_lb.sh"].startswith(b"#!/")
    assert "UserData/k8s_cluster_user_data.py" in parts
    assert {f"Definitions/{name}" for name in sources.TYPES} <= set(parts)


def test_every_file_has_the_hash_that_it_has(package):
    files = archive.read(package)
    entries = meta.parse(files.pop(meta.PATH).decode()).entries
    assert {entry["Name"]: entry["Hash"] for entry in entries} == {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }


def test_a_script_that_was_changed_afterwards_is_reported_with_both_hashes(
    package, tmp_path
):
    files = archive.read(package)
    name = "Scripts/install_external_lb.sh"
    before = hashlib.sha256(files[name]).hexdigest()
    files[name] += b"# changed\n"
    path = tmp_path / "changed.zip"
    archive.write(path, files)
    (problem,) = check(path).problems
    assert problem.startswith(name)
    assert before in problem
    assert hashlib.sha256(files[name]).hexdigest() in problem


def test_user_data_leave_healing_to_tacker(parts):
    """And have a say in scaling: see hooks/v1/rollback.py."""
    source = parts["UserData/k8s_cluster_user_data.py"].decode()
    methods = re.findall(r"^    def (\w+)", source, re.MULTILINE)
    assert methods == ["instantiate", "scale"]


# --- requests


def bodies():
    return sorted((sources.samples() / "requests").glob("*.json"))


@pytest.mark.parametrize("path", bodies(), ids=lambda path: path.stem)
def test_a_sample_is_json_of_the_operation_in_its_name(path):
    read = request.read(json.loads(path.read_text()))
    assert read.problems == ()
    assert path.stem.startswith(read.operation.replace("_", "-"))


def test_the_sample_request_is_accepted():
    path = sources.samples() / "requests" / "instantiate-simple.json"
    parsed = params.parse(json.loads(path.read_text())["additionalParams"])
    assert parsed is not None
    assert parsed.warnings == ()
    assert parsed.vim_name == "kubernetes_vim"
    assert parsed.workers.aspect_id == "worker_instance"
    assert parsed.control_plane.aspect_id is None
    assert parsed.load_balancer is not None


def test_samples_name_no_real_machines_or_secrets():
    """Addresses are private, and a password is the user's name or says what it is."""
    for path in bodies():
        text = path.read_text()
        for address in re.findall(r"\d+\.\d+\.\d+\.\d+", text):
            assert ipaddress.ip_address(address).is_private, address
        assert not re.search(r"//[^/\s\"]*:[^/\s\"]*@", text)
        given = re.findall(r'"(?:ssh_)?(username|password)": "([^"]*)"', text)
        names = {value for kind, value in given if kind == "username"}
        assert {value for kind, value in given if kind == "password"} <= names


def test_placeholders_of_the_specifications_body_are_reported(package):
    """It parses; what is wrong are its placeholders, its script and its LB port."""
    report = check(package, {"spec": instantiate()})
    assert [text.split(": ")[:2] for text in report.problems] == [
        ["spec", "additionalParams.management_cidr"],
        ["spec", "ansible.ip_address"],
        ["spec", "ansible.kubespray_root_path"],
        ["spec", "ansible.transferring_inventory_path"],
        ["spec", "external_lb_param.script_path"],
        ["spec", "external_lb_param.ssh_cp_name"],
        *(["spec", f"{group}.nic_cp_name"] for group in ("master_node", "worker_node")),
    ]


def test_the_specifications_body_fits_when_these_are_filled_in(package):
    body = instantiate()
    given = body["additionalParams"]["k8s_cluster_installation_param"]
    body["additionalParams"]["management_cidr"] = "192.0.2.0/24"
    given["ansible"] |= {
        "ip_address": "192.0.2.5",
        "kubespray_root_path": "/opt/kubespray",
        "transferring_inventory_path": "/home/ansible/clusters/one",
    }
    given["external_lb_param"] |= {
        "ssh_cp_name": "externalLB_CP1",
        "script_path": "./Scripts/install_external_lb.sh",
    }
    # Its nodes meet on the network that the sample package opens for SSH and the API.
    master, worker = check(package, {"spec": body}).problems
    assert master.startswith("spec: master_node.nic_cp_name: the security groups of ")
    assert "masterNode_CP1 (management_access, api_access) do not admit" in master
    assert worker.startswith("spec: worker_node.nic_cp_name: the security groups of ")
    given["master_node"]["nic_cp_name"] = "masterNode_CP2"
    given["worker_node"]["nic_cp_name"] = "workerNode_CP1"
    report = check(package, {"spec": body})
    assert report.problems == ()
    assert any("is taken as 192.168.0.0/16" in text for text in report.warnings)
