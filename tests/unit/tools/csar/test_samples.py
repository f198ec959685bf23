# SPDX-License-Identifier: Apache-2.0
"""What the sample package must have, and the samples that go with it.

The order of the first part is that of the specification: VNFD, Base HOT, package.
"""

import hashlib
import ipaddress
import json
import re
import shutil
import textwrap
from pathlib import Path

import pytest
import yaml

import lab
from tacker_k8s_mgmt.tools.csar import archive, tacker_api
from tacker_k8s_mgmt.tools.csar import body as request
from tacker_k8s_mgmt.tools.csar import parts as sources
from tacker_k8s_mgmt.tools.csar.build import Site, build
from tacker_k8s_mgmt.tools.csar.consistency import SecurityGroups
from tacker_k8s_mgmt.tools.csar.package_check import check
from tacker_k8s_mgmt.topology import base_hot
from tests.helpers.specification import instantiate
from tests.unit.tools.csar.conftest import DF, HOT, NESTED, TYPES, packed, sample


@pytest.fixture(scope="module")
def topology(parts):
    return yaml.safe_load(parts[DF])["topology_template"]


@pytest.fixture(scope="module")
def top(parts):
    return yaml.safe_load(parts[HOT])["resources"]


@pytest.fixture(scope="module")
def nested(parts):
    return yaml.safe_load(parts[NESTED])["resources"]


def policies(topology, kind):
    return {
        name: policy["properties"]
        for one in topology["policies"]
        for name, policy in one.items()
        if policy["type"] == f"tosca.policies.nfv.{kind}"
    }


# --- VNFD


def test_only_workers_scale(topology):
    (aspects,) = policies(topology, "ScalingAspects").values()
    assert set(aspects["aspects"]) == {"worker_instance"}


def test_every_level_has_an_odd_number_of_control_planes(topology):
    (levels,) = policies(topology, "InstantiationLevels").values()
    assert len(levels["levels"]) > 1
    numbers = policies(topology, "VduInstantiationLevels")
    planes = numbers["masterNode_instantiation_levels"]["levels"]
    assert set(planes) == set(levels["levels"])
    assert all(plane["number_of_instances"] % 2 == 1 for plane in planes.values())


def test_node_vms_are_large_enough_for_kubernetes(topology):
    for vdu in ("masterNode", "workerNode"):
        compute = topology["node_templates"][vdu]["capabilities"]["virtual_compute"][
            "properties"
        ]
        assert compute["virtual_cpu"]["num_virtual_cpu"] >= 2
        memory = compute["virtual_memory"]["virtual_mem_size"]
        (disk,) = compute["virtual_local_storage"]
        for text, least in ((memory, 4), (disk["size_of_storage"], 40)):
            number, unit = text.split()
            assert (int(number) >= least, unit) == (True, "GiB")


# --- Base HOT


def named(kind, *templates):
    """Properties of the resources of a type."""
    return {
        name: one["properties"]
        for resources in templates
        for name, one in resources.items()
        if one["type"] == kind
    }


def test_no_two_vms_share_a_name(top, nested):
    # Without a name, Heat makes one of the stack's, the resource's and a unique part.
    assert not [
        one for one in named("OS::Nova::Server", top, nested).values() if "name" in one
    ]


def test_the_level_decides_how_many_workers_there_are(top):
    wanted = {"get_param": "worker_instance_desired_capacity"}
    assert top["worker_instance"]["properties"]["desired_capacity"] == wanted


def test_every_port_has_security_groups(parts, top, nested):
    base, _ = base_hot.read(parts, "simple")
    groups = SecurityGroups(base, {})
    ports = named("OS::Neutron::Port", top, nested)
    assert len(ports) == 6
    for port in ports:
        assert groups.names(port), port


HOTS = sorted(sources.samples().glob("**/base_hot_top.yaml"))


@pytest.mark.parametrize("path", HOTS, ids=lambda path: str(path.parent)[-9:])
def test_only_what_the_load_balancer_forwards_is_open_to_users(path):
    rules = yaml.safe_load(path.read_text())["resources"]["service_access"]
    assert [rule["protocol"] for rule in rules["properties"]["rules"]] == ["tcp"]


@pytest.mark.parametrize("path", HOTS, ids=lambda path: str(path.parent)[-9:])
def test_no_sample_lets_logins_be_tried_from_everywhere(path):
    """Its default is the network that the sample requests name."""
    tree = yaml.safe_load(path.read_text())
    default = ipaddress.ip_network(tree["parameters"]["management_cidr"]["default"])
    assert (default.is_private, default.prefixlen) == (True, 24)
    for name in ("instantiate-simple", "instantiate-ha"):
        assert sample(name)["additionalParams"]["management_cidr"] == str(default)
    for name in ("management_access", "api_access"):
        for rule in tree["resources"][name]["properties"]["rules"]:
            assert rule["remote_ip_prefix"] == {"get_param": "management_cidr"}


def test_every_sample_has_a_template():
    assert len(HOTS) == 5


def test_workers_keep_away_from_each_other(parts, top, nested):
    group = top["worker_instance"]["properties"]["resource"]["properties"]
    apart = group["server_group"]["get_resource"]
    assert top[apart]["type"] == "OS::Nova::ServerGroup"
    # Not the strict rule: more workers than hypervisors must not fail to start.
    assert top[apart]["properties"]["policies"] == ["soft-anti-affinity"]
    hints = nested["workerNode"]["properties"]["scheduler_hints"]
    assert hints == {"group": {"get_param": "server_group"}}


# --- package


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


def bodies(api=tacker_api.V1):
    return sorted((sources.samples(api) / "requests").glob("*.json"))


@pytest.mark.parametrize(
    ("api", "path"),
    [(api, path) for api in (tacker_api.V1, tacker_api.V2) for path in bodies(api)],
    ids=lambda one: getattr(one, "stem", None) or one.name,
)
def test_a_sample_is_json_of_the_operation_in_its_name(api, path):
    read = request.read(json.loads(path.read_text()), api)
    assert read.problems == ()
    operation = "change-vnfpkg" if path.stem == "upgrade" else path.stem
    assert operation.startswith(read.operation.replace("_", "-"))


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


def filled_in():
    """The specification's body with address and paths."""
    body = instantiate()
    body["additionalParams"]["k8s_cluster_installation_param"]["ansible"] |= {
        "ip_address": "10.99.0.5",
        "kubespray_root_path": "/opt/kubespray",
        "transferring_inventory_path": "/home/ansible/clusters/one",
    }
    return body


UNUSUAL = (
    ("is taken as 192.168.0.0/16", 1),
    ("the URL has no valid port", 2),
    ("externalLB_instance stands for externalLB_CP1", 1),
    ("a stock cloud image refuses this login", 3),
    ("cluster_cp_name: is not used", 1),
    ("the Base HOT has no group master_instance", 1),
)


def test_the_specifications_body_fits_with_address_and_paths(package):
    report = check(package, {"spec": filled_in()})
    assert report.problems == ()
    for words, number in UNUSUAL:
        assert sum(words in text for text in report.warnings) == number, words
    assert len(report.warnings) == sum(number for _, number in UNUSUAL)


def test_the_script_has_both_names(parts):
    own = parts["Scripts/install_external_lb.sh"]
    assert parts["Scripts/ExternalLB_installation.sh"] == own


BY_FLAVOUR = [
    (flavour, version)
    for flavour in ("simple", "ha")
    for version in (tacker_api.V1, tacker_api.V2)
]


@pytest.mark.parametrize(("flavour", "version"), BY_FLAVOUR)
def test_external_ports_admit_the_cluster_and_nobody_else(flavour, version):
    """As nodes meet there in the specification's body."""
    files = sources.collect(flavour, source=sources.samples(version), api=version)
    base, problems = base_hot.read(files, flavour)
    assert not problems
    schemas = base.top.parameters.items()
    values = {name: one["default"] for name, one in schemas if "default" in one}
    groups = SecurityGroups(base, values)
    outside = ("masterNode_CP1", "workerNode_CP2", "externalLB_CP1")
    managed, stranger = map(ipaddress.ip_address, ("10.99.0.5", "10.99.1.5"))
    for port in outside:
        for number in (22, 2379, 6443, 10250, 30000):
            assert all(groups.admit(port, number, other) for other in outside)
        assert groups.admit(port, 22, managed)
        for number in (22, 2379, 6443, 10250):
            assert not groups.admit(port, number, stranger), (port, number)
        for number in (2379, 10250):
            assert not groups.admit(port, number, managed), (port, number)
        # Addresses of others on that network do not count as the cluster's.
        assert "cluster_access" not in groups.names(port)
    for port in outside:
        assert groups.admit(port, 30000, stranger) == (port == "externalLB_CP1")


CLOSED = "{ get_resource: external_cluster_access }"


@pytest.mark.parametrize(
    ("after", "attribute"),
    [
        ("masterNode_CP1, fixed_ips", "master_node.nic_cp_name"),
        ("external_security_groups", "worker_node.nic_cp_name"),
    ],
)
def test_a_port_without_that_group_is_reported(parts, after, attribute, tmp_path):
    """In either direction: what it does not get, and what the others get of it."""
    text = parts[HOT].decode()
    place = text.index(CLOSED, text.index(after))
    line = text.rindex("\n", 0, place)
    less = text[:line] + text[text.index("\n", place) :]
    path = packed({**parts, HOT: less.encode()}, tmp_path)
    report = check(path, {"spec": filled_in()})
    assert report.problems
    named = {text.split(": ")[1] for text in report.problems}
    assert attribute in named
    assert all("do not admit TCP" in text for text in report.problems)


# --- the specification's Base HOT


@pytest.fixture(scope="module")
def specified(tmp_path_factory):
    """The samples with the specification's Base HOT, as the documentation puts it."""
    root = tmp_path_factory.mktemp("specified") / "samples"
    shutil.copytree(sources.samples(), root)
    own = root / "hot" / "specification"
    shutil.copytree(own, root / "hot" / "simple", dirs_exist_ok=True)
    return root


def specified_package(source, path, **values):
    site = Site(flavors={"": "m1.large"}, parameters=values)
    return build("simple", path, source=source, names=site).path


def test_it_has_the_specifications_parameters_and_server_name(specified):
    tree = yaml.safe_load((specified / "hot/simple/base_hot_top.yaml").read_text())
    for name in ("flavor", "image", "public_network", "net1"):
        assert tree["parameters"][name]["type"] == "string"
        assert "default" not in tree["parameters"][name]
    assert "OS::Neutron::Net" not in {one["type"] for one in tree["resources"].values()}
    server = tree["resources"]["externalLB"]["properties"]
    assert server["name"] == "externalLB"
    assert server["flavor"] == {"get_param": "flavor"}
    assert server["image"] == {"get_param": "image"}
    wanted = {"externalLB_CP1": "public_network", "externalLB_CP2": "net1"}
    for port, network in wanted.items():
        found = tree["resources"][port]["properties"]["network"]
        assert found == {"get_param": network}


def test_the_specifications_body_fits_it(specified, tmp_path):
    path = specified_package(specified, tmp_path / "one.zip", net1="inside")
    assert check(path, {"spec": filled_in()}).problems == ()


def test_so_does_the_sample_request(specified, tmp_path):
    path = specified_package(specified, tmp_path / "one.zip", net1="inside")
    report = check(path, {"own": sample("instantiate-simple")})
    assert (report.problems, report.warnings) == ((), ())


def test_what_has_one_value_for_all_is_missing_where_there_are_several(
    specified, tmp_path
):
    """As the package's user data say at the instantiation."""
    path = build("simple", tmp_path / "one.zip", source=specified).path
    body = filled_in()
    body["extVirtualLinks"][0]["resourceId"] = "another"
    assert check(path, {"spec": body}).problems == (
        "spec: additionalParams.net1: is missing: the Base HOT's parameter has no "
        "default",
        "spec: additionalParams.flavor: is missing: the Base HOT has one for all, and "
        "the VNFD has m1.medium, m1.small",
        "spec: additionalParams.public_network: is missing: the Base HOT has one for "
        "all, and extVirtualLinks has another, b0b84da3-3259-4855-b4cd-5711ba5e5de1",
    )
    given = {"flavor": "m1.large", "public_network": "external", "net1": "inside"}
    body["additionalParams"] |= given
    assert check(path, {"spec": body}).problems == ()


# --- a VNFD of one's own

PAGE = Path(lab.__file__).parents[1] / "doc" / "source" / "own-vnfd.rst"


def shown():
    """The blocks of YAML on the page."""
    found = re.findall(
        r"^( *)\.\. code-block:: yaml\n\n((?:\1   .*\n|\n)+)", PAGE.read_text(), re.M
    )
    return [yaml.safe_load(textwrap.dedent(text)) for _, text in found]


def without_balancer(tree):
    """A tree without everything that the page shows of a load balancer."""
    if isinstance(tree, dict):
        return {
            key: without_balancer(value)
            for key, value in tree.items()
            if not str(key).startswith("externalLB") and key != "virtual_link_external"
        }
    if isinstance(tree, list):
        kept = [without_balancer(one) for one in tree]
        return [new for old, new in zip(tree, kept, strict=True) if new or not old]
    return tree


def merged(tree, more):
    """A tree with another one's mappings and lists added."""
    if isinstance(more, dict):
        return {**tree, **{k: merged(tree.get(k, {}), v) for k, v in more.items()}}
    return [*(tree or []), *more] if isinstance(more, list) else more


def test_what_it_shows_is_all_that_a_load_balancer_needs(parts, tmp_path):
    trees = {p: without_balancer(yaml.safe_load(parts[p])) for p in (TYPES, DF, HOT)}
    assert not any("externalLB" in yaml.safe_dump(tree) for tree in trees.values())
    for block in shown():
        (key,) = block
        path = {"node_types": TYPES, "topology_template": DF, "resources": HOT}[key]
        trees[path] = merged(trees[path], block)
    files = {**parts, **{p: yaml.safe_dump(t).encode() for p, t in trees.items()}}
    report = check(packed(files, tmp_path), {"own": sample("instantiate-simple")})
    assert (report.problems, report.warnings) == ((), ())
