# SPDX-License-Identifier: Apache-2.0
"""Requests are held against a package: names, levels, networks, files, parameters."""

import copy
import dataclasses

import pytest
import yaml

from tacker_k8s_mgmt.request.reader import ATTRIBUTE
from tacker_k8s_mgmt.tools.csar import archive, request_check, stack_preview, vnfd
from tacker_k8s_mgmt.tools.csar import body as request
from tacker_k8s_mgmt.tools.csar.package_check import check
from tacker_k8s_mgmt.tools.csar.tacker_api import V2
from tacker_k8s_mgmt.topology import base_hot
from tests.helpers.hostile import places
from tests.unit.tools.csar.conftest import DF, HOT, NESTED, packed, sample

DESCRIPTOR = "fd374e20-60bb-4e56-bdb9-052e28185439"


SIMPLE = sample("instantiate-simple")


def contents_of(parts):
    """What the check makes of a package's files."""
    with archive.unpacked(parts) as root:
        flavours = {f.id: f for f in vnfd.flavours(root / "Definitions")}
        read = {name: base_hot.read(parts, name)[0] for name in flavours}
        bases = {name: base for name, base in read.items() if base}
        return request_check.Contents(parts, DESCRIPTOR, flavours, bases)


@pytest.fixture(scope="module")
def contents(parts):
    return contents_of(parts)


def body(**changes):
    return {**copy.deepcopy(SIMPLE), **changes}


def with_params(path, value):
    """The sample with one attribute changed, or taken away with None."""
    changed = body()
    holder = changed["additionalParams"][ATTRIBUTE]
    *steps, last = path.split(".")
    for step in steps:
        holder = holder[step]
    holder[last] = value
    if value is None:
        del holder[last]
    return changed


def with_additional(**changes):
    changed = body()
    changed["additionalParams"] |= changes
    return changed


def with_links(change):
    changed = body()
    change(changed["extVirtualLinks"])
    return changed


def problems(document, contents, stored=None):
    before = request.read(stored) if stored else None
    return request_check.findings(request.read(document), contents, before).problems


@pytest.mark.parametrize("name", ["create", "instantiate-simple", "terminate"])
def test_the_sample_requests_fit_the_sample_package(contents, name):
    found = request_check.findings(request.read(sample(name)), contents)
    assert (found.problems, found.warnings) == ([], [])


OTHER_SCRIPT = {"Scripts/install_external_lb.sh": b"#!/bin/bash\napt-get update\n"}


def test_a_script_that_does_not_know_the_verbs_is_reported(parts):
    (problem,) = problems(SIMPLE, contents_of({**parts, **OTHER_SCRIPT}))
    assert problem.startswith(
        "external_lb_param.script_path: Scripts/install_external_lb.sh: a script for "
        "this driver has the line `# tacker-k8s-mgmt load-balancer contract: 1`"
    )


def test_and_without_a_request_it_is_a_warning(parts, tmp_path):
    report = check(packed({**parts, **OTHER_SCRIPT}, tmp_path))
    assert report.problems == ()
    warning, _ = report.warnings
    assert warning.startswith(
        "Scripts/install_external_lb.sh: a script for this driver"
    )


EDGE = "Files/profiles/edge.yaml"


def test_the_profile_of_a_request_is_that_of_the_package(parts):
    asked = with_params("profile", "edge")
    profile = b"parameters: {cluster: {network: {plugin: flannel, mtu: 1400}}}\n"
    (problem,) = problems(asked, contents_of({**parts, EDGE: profile}))
    assert problem.startswith(
        "cluster.network.mtu (profile edge): flannel finds out by itself"
    )
    fine = contents_of({**parts, EDGE: b"parameters: {cluster: {helm: true}}\n"})
    assert problems(asked, fine) == []
    (problem,) = problems(asked, contents_of(parts))
    assert problem.startswith(f"profile: there is no {EDGE} of the VNF package")
    later = {**sample("scale-out"), "additionalParams": {ATTRIBUTE: {}}}
    assert problems(later, fine, asked) == []


def test_profiles_of_a_package_are_checked_without_a_request_too(parts, tmp_path):
    own = {
        EDGE: b"parameters: {cluster: {helm: 1}}\n",
        "Files/profiles/starlingx.yaml": b"parameters: {}\n",
        "Files/profiles/Core.yml": b"parameters: {}\n",
    }
    core, edge, starlingx = check(packed({**parts, **own}, tmp_path)).problems
    assert core.startswith("Files/profiles/Core.yml: is no profile")
    assert edge == f"{EDGE}: parameters.cluster.helm: must be true or false"
    assert starlingx.startswith(
        "Files/profiles/starlingx.yaml: there are several profiles starlingx"
    )


def test_what_a_termination_brings_is_checked(contents):
    wrong = {"ansible": {"pasword": "x"}}
    terminate = {**sample("terminate"), "additionalParams": {ATTRIBUTE: wrong}}
    (problem,) = problems(terminate, contents, SIMPLE)
    assert problem.startswith("ansible.pasword: is not a known attribute")


@pytest.mark.parametrize("name", ["scale-out", "scale-in", "heal-worker", "heal-vnf"])
def test_the_later_samples_fit_the_sample_package(contents, name):
    read = request.read(sample(name))
    assert read.operation == name.split("-")[0]
    found = request_check.findings(read, contents, request.read(SIMPLE))
    assert (found.problems, found.warnings) == ([], [])


def rename_cp(links):
    links[0]["extCps"][0]["cpdId"] = "masterNode_CP7"


def connect_internal(links):
    links[0]["extCps"][0]["cpdId"] = "masterNode_CP2"


def connect_twice(links):
    links[1]["extCps"].append(copy.deepcopy(links[1]["extCps"][0]))


WRONG = {
    "an unknown flavour": (
        body(flavourId="large"),
        "flavourId: the package has no such flavour (it has: simple)",
    ),
    "an unknown level": (
        body(instantiationLevelId="level_9"),
        "instantiationLevelId: the package has no such level (it has: "
        "instantiation_level_1, instantiation_level_2)",
    ),
    "a network for an unknown connection point": (
        with_links(rename_cp),
        "extVirtualLinks: the VNFD has no connection point masterNode_CP7; did you "
        "mean masterNode_CP1?",
        "extVirtualLinks: there is no entry for masterNode_CP1",
    ),
    "a network for an internal connection point": (
        with_links(connect_internal),
        "extVirtualLinks: masterNode_CP2 is connected to internalVL by the VNFD",
        "extVirtualLinks: there is no entry for masterNode_CP1",
    ),
    "a connection point twice": (
        with_links(connect_twice),
        "extVirtualLinks: workerNode_CP2 is connected twice",
    ),
    "no networks": (
        body(extVirtualLinks=[]),
        *(
            f"extVirtualLinks: there is no entry for {cp}"
            for cp in ("externalLB_CP1", "masterNode_CP1", "workerNode_CP2")
        ),
    ),
    "no user data": (
        with_additional(**{"lcm-operation-user-data": None}),
        "additionalParams: lcm-operation-user-data and "
        "lcm-operation-user-data-class must be given, or Tacker does not use the "
        "Base HOT",
    ),
    "user data that is not there": (
        with_additional(**{"lcm-operation-user-data": "UserData/other.py"}),
        "additionalParams.lcm-operation-user-data: the package has no file "
        "UserData/other.py",
    ),
    "a class that is not there": (
        with_additional(**{"lcm-operation-user-data-class": "Other"}),
        "additionalParams.lcm-operation-user-data-class: "
        "./UserData/k8s_cluster_user_data.py has no class Other",
    ),
    "no parameters": (
        with_additional(**{ATTRIBUTE: None}),
        f"additionalParams: there is no {ATTRIBUTE}, so the driver does nothing",
    ),
    "a script that is not there": (
        with_params("external_lb_param.script_path", "Scripts/other.sh"),
        "external_lb_param.script_path: the VNF package has no file Scripts/other.sh",
    ),
    "a port for SSH that is not there": (
        with_params("master_node.ssh_cp_name", "masterNode_FIP"),
        "master_node.ssh_cp_name: there is no masterNode_FIP in the stack",
    ),
    "a port in the cluster that is not there": (
        with_params("worker_node.nic_cp_name", "workerNode_CP9"),
        "worker_node.nic_cp_name: there is no workerNode_CP9 beside workerNode_CP2",
    ),
    "a port of another VM": (
        with_params("external_lb_param.nic_cp_name", "masterNode_CP2"),
        "external_lb_param.nic_cp_name: masterNode_CP2 belongs to another VM than",
    ),
    "a server in place of a port": (
        with_params("master_node.ssh_cp_name", "masterNode"),
        "master_node.ssh_cp_name: masterNode is an OS::Nova::Server, not a port",
    ),
    "a group that is not there": (
        with_params("worker_node.aspect_id", "workers"),
        "worker_node.aspect_id: the Base HOT has no group workers (it has: "
        "worker_instance)",
    ),
    "workers of an unknown aspect": (
        with_params("worker_node.aspects", [{"aspect_id": "gpu"}]),
        "worker_node.aspects.0.aspect_id: there is no group gpu in the stack",
    ),
    "control planes in a scaling aspect": (
        with_params("master_node.aspect_id", "worker_instance"),
        "master_node.ssh_cp_name: there is no masterNode_CP1 in the group",
    ),
    "pods at the addresses of the nodes": (
        with_params("master_node.pod_cidr", "10.10.0.0/16"),
        *(
            f"master_node.pod_cidr: the VM {vm} has the address"
            for vm in (
                "stack/masterNode",
                "stack/worker_instance/0/workerNode",
                "stack/worker_instance/1/workerNode",
                "stack/externalLB",
            )
        ),
    ),
    "services at addresses that the request gives to the nodes": (
        with_additional(internal_cidr="10.233.0.0/24"),
        *(["master_node.cluster_cidr: the VM "] * 4),
    ),
    "values that Heat refuses": (
        with_additional(management_cidr="banana", api_port=70000),
        "additionalParams.management_cidr: banana is no network such as",
        "additionalParams.api_port: 70000 is more than 65535",
    ),
    "two mistakes that have nothing to do with each other": (
        with_params("ansible.kubespray_root_path", "") | {"flavourId": "simple"},
        "ansible.kubespray_root_path: must not be empty",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_reported(contents, case):
    document, *words = WRONG[case]
    assert_reported(problems(document, contents), words)


def assert_reported(found, words):
    assert len(found) == len(words), found
    for text, expected in zip(found, words, strict=True):
        assert text.startswith(expected), found


def test_a_wrong_parameter_does_not_hide_names_that_are_not_there(contents):
    document = with_params("ansible.ip_address", "0.0.0.0")
    balancer = document["additionalParams"][ATTRIBUTE]["external_lb_param"]
    balancer |= {"ssh_cp_name": "externalLB_CP3", "script_path": "lb.sh"}
    assert [text.split(": ")[0] for text in problems(document, contents)] == [
        "ansible.ip_address",
        "external_lb_param.script_path",
        "external_lb_param.ssh_cp_name",
    ]


def test_an_unknown_flavour_does_not_hide_what_is_wrong_with_the_only_one(contents):
    document = with_params("worker_node.nic_cp_name", "none") | {"flavourId": "large"}
    assert [text.split(": ")[0] for text in problems(document, contents)] == [
        "flavourId",
        "worker_node.nic_cp_name",
    ]


def test_of_parameters_that_are_all_wrong_only_that_is_reported(contents):
    document = with_params("master_node", "none")
    document["additionalParams"][ATTRIBUTE]["worker_node"]["nic_cp_name"] = 7
    assert len(problems(document, contents)) == 2


def unencapsulated(pairs=None, **attributes):
    """The sample with pods whose packets nothing carries."""
    document = with_additional(**({} if pairs is None else {"address_pairs": pairs}))
    given = document["additionalParams"][ATTRIBUTE]
    given["cluster"] = {"network": {"encapsulation": "none"}}
    given["master_node"] |= attributes
    return document


PODS = {"ip_address": "10.233.64.0/18"}


@pytest.mark.parametrize(
    "pairs",
    [
        None,
        [],
        [{"ip_address": "10.233.0.0/18"}],
        [{"ip_address": "10.233.64.0/19"}],
        [{"ip_address": "::/0"}, {"ip_address": "pods"}, {}],
    ],
)
def test_ports_at_which_neutron_drops_pod_packets_are_reported(contents, pairs):
    found = problems(unencapsulated(pairs), contents)
    assert [text.partition(": give")[0].rpartition(" at ")[2] for text in found] == [
        "masterNode_CP2",
        "workerNode_CP1",
    ]
    for text in found:
        assert text.startswith("cluster.network.encapsulation: without one")
        assert "allowed_address_pairs with 10.233.64.0/18" in text
        assert "additionalParams.address_pairs" in text


@pytest.mark.parametrize(
    ("place", "name"),
    [(("cluster", "network"), "plugin"), (("kubespray_vars",), "kube_network_plugin")],
)
def test_a_plugin_that_routes_without_encapsulation_needs_address_pairs_too(
    contents, place, name
):
    document = unencapsulated()
    given = document["additionalParams"][ATTRIBUTE]
    chosen: dict = {name: "kube-router"}
    for part in reversed(place):
        chosen = {part: chosen}
    del given["cluster"]
    given |= chosen
    found = problems(document, contents)
    assert [text.partition(": give")[0] for text in found] == [
        f"{'.'.join((*place, name))}: kube-router has no encapsulation by default, so "
        f"Neutron drops the packets of pods at {port}"
        for port in ("masterNode_CP2", "workerNode_CP1")
    ]
    document["additionalParams"]["address_pairs"] = [PODS]
    assert problems(document, contents) == []


@pytest.mark.parametrize("plugin", ["calico", "cilium", "flannel", "cloud"])
def test_no_address_pairs_are_needed_by_a_plugin_that_encapsulates(contents, plugin):
    document = unencapsulated()
    network = {"network": {"plugin": plugin}}
    document["additionalParams"][ATTRIBUTE]["cluster"] = network
    assert problems(document, contents) == []


@pytest.mark.parametrize("wide", [PODS, {"ip_address": "10.0.0.0/8"}])
def test_address_pairs_of_the_pods_let_them_pass(contents, wide):
    found = request_check.findings(request.read(unencapsulated([PODS, wide])), contents)
    assert (found.problems, found.warnings) == ([], [])


def test_it_is_the_network_of_the_pods_that_counts(contents):
    document = unencapsulated([PODS], pod_cidr="172.20.0.0/16")
    assert len(problems(document, contents)) == 2
    kubesprays = unencapsulated([PODS], pod_cidr=None)
    assert problems(kubesprays, contents) == []


@pytest.mark.parametrize("holder", ["network", "ports"])
def test_without_port_security_nothing_is_cut_off(parts, holder):
    top, nested = yaml.safe_load(parts[HOT]), yaml.safe_load(parts[NESTED])
    resources = {**top["resources"], **nested["resources"]}
    names = {"network": ["internalVL"], "ports": ["masterNode_CP2", "workerNode_CP1"]}
    for name in names[holder]:
        properties = resources[name].setdefault("properties", {})
        properties["port_security_enabled"] = False
    changed = {HOT: yaml.safe_dump(top), NESTED: yaml.safe_dump(nested)}
    encoded = {name: text.encode() for name, text in changed.items()}
    assert problems(unencapsulated(), contents_of({**parts, **encoded})) == []


FLOATING = """
  {cp}:
    type: OS::Neutron::FloatingIP
    properties:
      floating_network: {{ get_param: [ nfv, CP, masterNode_CP1, network ] }}
      port_id: {{ get_resource: {port} }}
"""


@pytest.fixture(scope="module")
def with_floating_ips(parts):
    top = parts[HOT].decode() + FLOATING.format(cp="lb_FIP", port="externalLB_CP1")
    top += FLOATING.format(cp="master_FIP", port="masterNode_CP1")
    return contents_of({**parts, HOT: top.encode()})


def test_a_floating_ip_leads_to_the_port_behind_it(with_floating_ips):
    document = with_params("external_lb_param.ssh_cp_name", "lb_FIP")
    assert problems(document, with_floating_ips) == []
    given = document["additionalParams"][ATTRIBUTE]
    del given["external_lb_param"]["nic_cp_name"]
    given["master_node"]["ssh_cp_name"] = "master_FIP"
    del given["master_node"]["nic_cp_name"]
    assert problems(document, with_floating_ips) == []


LOOSE = """
  lb_FIP:
    type: OS::Neutron::FloatingIP
    properties:
      floating_network: public
"""
ASSOCIATED = """
  lb_FIP_association:
    type: OS::Neutron::FloatingIPAssociation
    properties:
      floatingip_id: { get_resource: lb_FIP }
      port_id: { get_resource: externalLB_CP1 }
"""


def test_a_floating_ip_of_no_port_needs_one_beside_it(parts):
    document = with_params("external_lb_param.ssh_cp_name", "lb_FIP")
    del document["additionalParams"][ATTRIBUTE]["external_lb_param"]["nic_cp_name"]
    loose = parts[HOT] + LOOSE.encode()
    (problem,) = problems(document, contents_of({**parts, HOT: loose}))
    assert problem.endswith(
        "lb_FIP belongs to no port of the stack; name the VM's port in nic_cp_name"
    )
    associated = loose + ASSOCIATED.encode()
    assert problems(document, contents_of({**parts, HOT: associated})) == []


def test_a_template_within_itself_is_expanded_once(parts):
    """Heat refuses it; the check of the package has to end all the same."""
    itself = "resources:\n  itself:\n    type: base_hot_nested_worker.yaml\n"
    text = parts[NESTED].decode().replace("resources:\n", itself, 1)
    assert text != parts[NESTED].decode()
    assert problems(SIMPLE, contents_of({**parts, NESTED: text.encode()})) == []


# --- what is only odd


def test_a_group_that_is_not_needed_is_a_warning(contents):
    document = with_params("master_node.aspect_id", "master_instance")
    found = request_check.findings(request.read(document), contents)
    assert found.problems == []
    (warning,) = found.warnings
    assert "the Base HOT has no group master_instance; the whole stack" in warning


def test_unused_parameters_are_a_warning(contents):
    document = with_additional(internal_cdir="10.1.0.0/24", api_port=6443)
    found = request_check.findings(request.read(document), contents)
    assert found.problems == []
    assert found.warnings == [
        "additionalParams.internal_cdir: nothing reads it; did you mean internal_cidr?"
    ]


def test_link_ports_that_have_no_effect_are_a_warning(contents):
    def give_port(links):
        links[0]["extCps"][0]["cpConfig"][0]["linkPortId"] = "port"

    found = request_check.findings(request.read(with_links(give_port)), contents)
    assert found.problems == []
    assert "linkPortId of masterNode_CP1 has no effect" in found.warnings[0]


# --- scale and heal


def scale(**fields):
    return {"type": "SCALE_OUT", "aspectId": "worker_instance", **fields}


LATER = {
    "an unknown aspect": (
        scale(aspectId="master_instance"),
        "aspectId: the package has no such scaling aspect (it has: worker_instance)",
    ),
    "more steps than there are": (
        scale(numberOfSteps=8),
        "numberOfSteps: it must be from 1 to the max_scale_level, 7",
    ),
    "no step": (scale(numberOfSteps=0), "numberOfSteps: it must be from 1"),
    "steps in quotes": (
        scale(numberOfSteps="1"),
        "numberOfSteps: must be a whole number",
    ),
    "one VNFC that is no list": (
        {"vnfcInstanceId": DESCRIPTOR},
        "vnfcInstanceId: must be a list",
    ),
    "a change of what cannot change": (
        {
            "cause": "x",
            "additionalParams": {ATTRIBUTE: {"worker_node": {"aspect_id": "other"}}},
        },
        "worker_node.aspect_id: cannot be changed after instantiation",
    ),
    "a change to a script that is not there": (
        scale(
            additionalParams={
                ATTRIBUTE: {"external_lb_param": {"script_path": "Scripts/x.sh"}}
            }
        ),
        "external_lb_param.script_path: the VNF package has no file Scripts/x.sh",
    ),
    "another package": (
        {"vnfdId": "00000000-0000-4000-8000-000000000000"},
        f"vnfdId: the package's descriptor_id is {DESCRIPTOR}",
    ),
}


@pytest.mark.parametrize("case", LATER)
def test_what_does_not_fit_later_is_reported(contents, case):
    document, *words = LATER[case]
    assert_reported(problems(document, contents, stored=SIMPLE), words)


def test_a_change_without_what_it_changes_is_not_called_good(contents):
    change = scale(additionalParams={ATTRIBUTE: {"worker_node": {"username": "u"}}})
    (warning,) = request_check.findings(request.read(change), contents).warnings
    assert "it was not checked; give the instantiate request" in warning


# --- in one report with the package


def test_package_and_requests_come_in_one_report(parts, tmp_path):
    broken = {**parts, HOT: parts[HOT].replace(b"max_size: 9", b"max_size: 4")}
    path = tmp_path / "broken.zip"
    archive.write(path, broken)
    report = check(
        path,
        {
            "one.json": body(flavourId="large"),
            "two.json": [],
            "three.json": {"aspectId": "none", "type": "SCALE_IN"},
        },
    )
    said = "\n".join(report.problems)
    assert "TOSCA-Metadata/TOSCA.meta is missing" in said
    assert "worker_instance has the max_size 4 instead of 9" in said
    assert "one.json: flavourId: the package has no such flavour" in said
    assert "two.json: it is no JSON object" in said
    assert "three.json: aspectId: the package has no such scaling aspect" in said
    assert len(report.problems) == 5


def test_requests_are_checked_where_the_vnfd_cannot_be_read(parts, tmp_path):
    path = tmp_path / "broken.zip"
    archive.write(path, {**parts, DF: b"a: [", NESTED: b"a: ["})
    report = check(path, {"r.json": with_params("ansible.username", "")})
    said = "\n".join(report.problems)
    assert f"{DF}: " in said
    assert "r.json: flavourId: the package has no such flavour (it has: none)" in said
    assert "r.json: ansible.username: must not be empty" in said


@pytest.mark.parametrize(
    "document",
    [SIMPLE, scale(numberOfSteps=1, additionalParams=SIMPLE["additionalParams"])],
    ids=["instantiate", "scale"],
)
@pytest.mark.parametrize("odd", [None, 7, "", [], {}, [[]], [{}], {"": []}, "x" * 300])
def test_requests_of_any_shape_are_survived(contents, document, odd):
    simple = request.read(SIMPLE)
    later = request.read(scale(additionalParams={ATTRIBUTE: {"drain": {}}}))
    for place in places(document):
        changed = {"": copy.deepcopy(document)}
        holder, steps = changed, ("", *place)
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = odd
        try:
            read = request.read(changed[""])
        except ValueError:
            continue
        for one, stored in ((read, None), (read, simple), (later, read)):
            found = request_check.findings(one, contents, stored)
            assert all(isinstance(text, str) for text in found.problems)


# --- parameters of the Base HOT


def test_a_parameter_without_a_default_has_to_be_given(parts):
    bare = parts[HOT].replace(b"    default: 10.99.0.0/24\n", b"", 1)
    without = body()
    del without["additionalParams"]["management_cidr"]
    assert problems(without, contents_of({**parts, HOT: bare})) == [
        "additionalParams.management_cidr: is missing: the Base HOT's parameter has no "
        "default"
    ]


@pytest.mark.parametrize(
    ("host", "changes", "is_warned"),
    [
        ("10.99.0.5", {}, False),
        ("192.0.2.5", {}, True),
        ("192.0.2.5", {"management_cidr": "192.0.2.0/24"}, False),
        ("192.0.2.5", {"management_cidr": "192.0.2.6/32"}, True),
        ("2001:db8::5", {}, True),
        ("ansible.example.org", {}, False),
    ],
)
def test_an_ansible_server_that_the_vms_do_not_admit_is_warned_of(
    contents, host, changes, is_warned
):
    given = with_params("ansible.ip_address", host)
    del given["additionalParams"]["management_cidr"]
    given["additionalParams"] |= changes
    found = [text for text in warnings(given, contents) if "admit SSH from" in text]
    assert found == [
        "ansible.ip_address: the security groups of masterNode_CP1, workerNode_CP2, "
        f"externalLB_CP1 do not admit SSH from {host}; in the sample packages "
        "additionalParams.management_cidr says from where they do"
    ] * int(is_warned)


def test_with_a_bastion_its_address_counts(contents):
    bastion = {"ip_address": "192.0.2.9", "username": "jump", "password": "secret"}
    given = with_params("bastion", bastion)
    (found,) = (text for text in warnings(given, contents) if "admit SSH" in text)
    assert found.startswith("bastion.ip_address: the security groups of masterNode_CP1")
    given = with_params("bastion", {**bastion, "used_for": ["ansible"]})
    assert not [text for text in warnings(given, contents) if "admit SSH" in text]


@pytest.mark.parametrize(
    "text",
    ["#cloud-config\nssh_pwauth: true\n", "a\\b", 'it\'s "quoted"'],
    ids=["lines", "backslash", "quotes"],
)
def test_a_text_that_tacker_would_change_is_refused(contents, text):
    given = body()
    given["additionalParams"]["user_data"] = text
    (problem,) = problems(given, contents)
    assert problem.startswith("additionalParams.user_data: has lines or quotes")
    v2 = dataclasses.replace(contents, api=V2)
    assert not any("has lines" in text for text in problems(given, v2))


def test_connection_points_may_have_a_network_in_common(contents):
    given = body(extVirtualLinks=[])
    assert len(problems(given, contents)) == 3
    given["additionalParams"]["public_network"] = "public"
    assert problems(given, contents) == []


# --- logins


def warnings(body, contents):
    read = request.read(body, contents.api)
    return request_check.findings(read, contents).warnings


KEY, PASSWORD = {"private_key": {"file": "lab"}}, {"password": "secret"}
PWAUTH = "#cloud-config {ssh_pwauth: true}"
REFUSED_KEY = (
    "worker_node: a stock cloud image refuses this login: workerNode gets no public "
    "key, without key_name and user_data"
)
REFUSED_PASSWORD = (
    "worker_node: a stock cloud image refuses this login: workerNode accepts no "
    "passwords without ssh_pwauth in user_data"
)


@pytest.mark.parametrize(
    ("login", "given", "expected"),
    [
        (KEY, {"key_name": "lab"}, []),
        (KEY, {"key_name": "", "user_data": "#cloud-config {}"}, []),
        (KEY, {"key_name": ""}, [REFUSED_KEY]),
        (PASSWORD, {"key_name": "lab"}, [REFUSED_PASSWORD]),
        (PASSWORD, {"user_data": "#cloud-config {}"}, [REFUSED_PASSWORD]),
        (PASSWORD, {"user_data": PWAUTH}, []),
    ],
)
def test_a_login_that_a_stock_image_refuses_is_a_warning(
    contents, login, given, expected
):
    changed = body()
    parameters = changed["additionalParams"]
    parameters.update(given)
    del parameters[ATTRIBUTE]["worker_node"]["private_key"]
    parameters[ATTRIBUTE]["worker_node"].update(login)
    found = warnings(changed, contents)
    assert [text for text in found if text.startswith("worker_node")] == expected


def test_the_way_in_is_looked_for_behind_a_floating_ip(parts):
    ip = """
  workerNode_IP:
    type: OS::Neutron::FloatingIP
    properties:
      floating_network: public
      port_id: { get_resource: workerNode_CP2 }
"""
    changed = body()
    changed["additionalParams"]["key_name"] = ""
    node = changed["additionalParams"][ATTRIBUTE]["worker_node"]
    node |= {"ssh_cp_name": "workerNode_IP", "nic_cp_name": "workerNode_CP1"}
    contents = contents_of({**parts, NESTED: parts[NESTED] + ip.encode()})
    assert REFUSED_KEY in warnings(changed, contents)


@pytest.mark.parametrize("name", ["user_data", "admin_pass"])
def test_a_package_whose_servers_have_a_way_in_has_no_warning(parts, name):
    before = b"      user_data_format: RAW\n"
    added = f"      {name}: x\n".encode()
    own = {
        path: parts[path]
        .replace(b"\n      user_data: { get_param: user_data }", b"")
        .replace(before, before + added)
        for path in (HOT, NESTED)
    }
    (base,) = contents_of({**parts, **own}).bases.values()
    assert list(stack_preview.of_package(base)) == []


def test_without_a_parameter_the_servers_themselves_need_a_key(parts):
    text = parts[HOT].replace(b"{ get_param: key_name }", b"''")
    text = text.replace(
        b"  key_name:\n    type: string\n", b"  other:\n    type: string\n"
    )
    (base,) = contents_of({**parts, HOT: text}).bases.values()
    (warning,) = stack_preview.of_package(base)
    assert warning.endswith("give the servers a key_name")


# --- security groups of nodes

TCP = {"protocol": "tcp", "port_range_min": 6443, "port_range_max": 10250}
ADMITTING = [
    {},
    {"remote_mode": "remote_group_id"},
    TCP,
    {"protocol": 6, "port_range_min": 1, "port_range_max": 65535},
    {"protocol": "tcp"},
    {"protocol": {"get_param": "unknown"}, "port_range_min": 22},
    {"remote_mode": "remote_group_id", "remote_group_id": "of-the-project"},
    {
        "remote_mode": "remote_group_id",
        "remote_group_id": {"get_resource": "cluster_access"},
    },
    {**TCP, "port_range_min": {"get_param": "unknown"}},
]
CLOSED = [
    {**TCP, "direction": "egress"},
    {**TCP, "protocol": "udp"},
    {"protocol": "icmp"},
    {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22},
    {"protocol": "tcp", "port_range_min": 22},
    {**TCP, "port_range_min": 10251, "port_range_max": 10260},
    {**TCP, "port_range_min": 6443, "port_range_max": 6443},
    {
        "remote_mode": "remote_group_id",
        "remote_group_id": {"get_resource": "management_access"},
    },
]


def opened_by(parts, rules):
    tree = yaml.safe_load(parts[HOT])
    tree["resources"]["cluster_access"]["properties"]["rules"] = rules
    return contents_of({**parts, HOT: yaml.safe_dump(tree).encode()})


@pytest.mark.parametrize("rule", ADMITTING, ids=str)
def test_groups_that_admit_the_kubelet_are_no_problem(parts, rule):
    assert problems(SIMPLE, opened_by(parts, [CLOSED[0], rule])) == []


@pytest.mark.parametrize("rules", [[], CLOSED, *([rule] for rule in CLOSED)], ids=str)
def test_groups_that_do_not_are(parts, rules):
    found = problems(SIMPLE, opened_by(parts, rules))
    assert [text.split(":")[0] for text in found] == [
        "master_node.nic_cp_name",
        "worker_node.nic_cp_name",
    ]
    assert "workerNode_CP1 (cluster_access) do not admit TCP 10250" in found[1]


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({"vnfInstanceName": "one"}, "modify"),
        ({"vnfInstanceDescription": "text"}, "modify"),
        ({"metadata": {"a": "b"}}, "modify"),
        ({"vnfdId": DESCRIPTOR}, "create"),
        ({"vnfdId": DESCRIPTOR, "vnfInstanceName": "one"}, "create"),
        ({"vnfdId": DESCRIPTOR, "additionalParams": {}}, "change_vnfpkg"),
    ],
)
def test_the_operation_of_a_body_is_recognised(document, operation):
    assert request.read(document, V2).operation == operation


def test_a_change_of_package_is_checked_as_the_hook_does(contents):
    given = {"upgrade_type": "RollingUpdate", "vdu_params": [{"vduId": "workerNode"}]}
    body = {"vnfdId": DESCRIPTOR, "additionalParams": given}
    v2 = dataclasses.replace(contents, api=V2)
    found = request_check.findings(request.read(body, V2), v2).problems
    assert found[-2:] == [
        "additionalParams.vdu_params must be []",
        "additionalParams must have lcm-operation-user-data and "
        "lcm-operation-user-data-class as the request of the instantiation, for "
        "without them Tacker sets images and flavours again",
    ]
