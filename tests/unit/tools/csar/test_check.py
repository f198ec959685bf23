# SPDX-License-Identifier: Apache-2.0
"""What would make Tacker stumble over a package is found before the upload."""

import zipfile

import pytest

from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar.package_check import _beside_problems, check
from tests.helpers.samples import BESIDE
from tests.unit.tools.csar.conftest import DF, ENTRY, HOT, NESTED

DRIVER = "Scripts/kubespray_mgmt.py"


def test_the_built_package_has_no_problems(package):
    report = check(package)
    assert report.problems == ()
    assert report.flavours == ("simple",)


# By file: text in it, what takes its place, and words of the problem that follows.
BROKEN = {
    DF: {
        "invalid TOSCA": (
            "layer_protocols: [ ipv4 ]",
            "layer_protocols: [ ipv5 ]",
            "tosca-parser: ValidationError: The value",
        ),
        "a type that no file defines": (
            "    internalVL:\n      type: tosca.nodes.nfv.VnfVirtualLink",
            "    internalVL:\n      type: tosca.nodes.nfv.Nothing",
            "tosca.nodes.nfv.Nothing",
        ),
        "no VNF node template": (
            "\n    VNF:\n",
            "\n    TheVnf:\n",
            "no node template is named VNF",
        ),
        "another driver's name": (
            "scale_end:\n            implementation: mgmt-drivers-kubespray",
            "scale_end:\n            implementation: mgmt-drivers-kubernetes",
            "scale_end has the implementation mgmt-drivers-kubernetes",
        ),
        "another driver's file": (
            "file: Scripts/kubespray_mgmt.py",
            "file: Scripts/install_external_lb.sh",
            "instead of Scripts/kubespray_mgmt.py",
        ),
        "a hook left out": (
            "          heal_end:\n            implementation: mgmt-drivers-kubespray\n",
            "",
            "the hook heal_end is not named",
        ),
        "no inputs": ("  inputs:\n", "  outputs: {}\n  x-inputs:\n", "inputs"),
        "an external connection point that is not mapped": (
            "      virtual_link_external_worker: [ workerNode_CP2, virtual_link ]\n",
            "",
            "substitution_mappings does not map it",
        ),
        "an aspect without steps": (
            "          aspect: worker_instance\n",
            "          aspect: workers\n",
            "belongs to the unknown aspect workers",
        ),
        "a level that contradicts its scale level": (
            "            instantiation_level_2:\n              number_of_instances: 3",
            "            instantiation_level_2:\n              number_of_instances: 4",
            "the level instantiation_level_2 has 4 VMs of workerNode, but the "
            "scale_level 1 of worker_instance makes 3",
        ),
        "a VDU that says another number": (
            "max_number_of_instances: 9",
            "max_number_of_instances: 5",
            "workerNode has the max_number_of_instances 5, but scaling goes from 2 to "
            "9",
        ),
        "an unknown default level": (
            "default_level: instantiation_level_1",
            "default_level: smallest",
            "default_level smallest, which is no level",
        ),
    },
    ENTRY: {
        "an entry file without the VNFD's id": (
            "        descriptor_id: fd374e20-60bb-4e56-bdb9-052e28185439\n",
            "",
            "no node template has the property descriptor_id",
        ),
        "types from the Internet": (
            "  - etsi_nfv_sol001_vnfd_types.yaml\n",
            "  - https://forge.etsi.org/etsi_nfv_sol001_vnfd_types.yaml\n",
            "a Tacker without access to that address cannot use the package",
        ),
        "a flavour that the entry file does not import": (
            "  - kubernetes_df_simple.yaml\n",
            "",
            "does not import kubernetes_df_simple.yaml",
        ),
    },
    "Definitions/etsi_nfv_sol001_vnfd_types.yaml": {
        "types that leave occurrences to the parser": (
            "          relationship: tosca.relationships.nfv.VirtualLinksTo\n"
            "          occurrences: [ 0, 1 ]\n"
            "      - virtual_binding",
            "          relationship: tosca.relationships.nfv.VirtualLinksTo\n"
            "      - virtual_binding",
            'Relationship "virtual_link" in template "masterNode_CP1" has a wrong '
            "number of occurrences (in kubernetes_df_simple.yaml alone)",
        )
    },
    HOT: {
        "a VDU without a server": (
            "  masterNode:\n    type: OS::Nova::Server",
            "  controlPlane:\n    type: OS::Nova::Server",
            "no OS::Nova::Server is named masterNode",
        ),
        "a connection point of another type": (
            "  externalLB_CP2:\n    type: OS::Neutron::Port",
            "  externalLB_CP2:\n    type: OS::Neutron::FloatingIP",
            "externalLB_CP2 is OS::Neutron::FloatingIP instead of OS::Neutron::Port",
        ),
        "a hard-coded network": (
            "external_network: { get_param: [ nfv, CP, workerNode_CP2, network ] }",
            "external_network: public",
            "workerNode_CP2 must take its network from the parameter "
            "nfv.CP.workerNode_CP2",
        ),
        "a hard-coded image": (
            "image: { get_param: [ nfv, VDU, externalLB, image ] }",
            "image: ubuntu",
            "externalLB must take its image from the parameter "
            "nfv.VDU.externalLB.image",
        ),
        "a group that cannot grow as far as the aspect": (
            "max_size: 9",
            "max_size: 4",
            "worker_instance has the max_size 4 instead of 9",
        ),
        "a fixed number of workers": (
            "desired_capacity: { get_param: worker_instance_desired_capacity }",
            "desired_capacity: 3",
            "must take its desired_capacity from the parameter "
            "worker_instance_desired_capacity, or have that of the default level, 2",
        ),
        "an aspect without its policy": (
            "  worker_instance_scale_in:\n",
            "  worker_scale_in:\n",
            "no OS::Heat::ScalingPolicy is named worker_instance_scale_in",
        ),
        "a policy with the wrong sign": (
            "scaling_adjustment: -1",
            "scaling_adjustment: 1",
            "has the scaling_adjustment 1 instead of -1",
        ),
        "a resource that does not exist": (
            "group: { get_resource: workers_apart }",
            "group: { get_resource: worker_group }",
            "worker_instance refers to worker_group with get_resource",
        ),
        "a dependency that does not exist": (
            "  externalLB:\n    type: OS::Nova::Server\n",
            "  externalLB:\n    type: OS::Nova::Server\n    depends_on: [a, moon]\n",
            "externalLB refers to moon with depends_on",
        ),
        "a nested parameter without a value": (
            "          server_group: { get_resource: workers_apart }\n",
            "",
            "does not give base_hot_nested_worker.yaml the parameter server_group",
        ),
        "a nested template that is not there": (
            "type: base_hot_nested_worker.yaml",
            "type: worker.yaml",
            "uses worker.yaml, which is not in nested/",
        ),
        "a value that no user data gives": (
            "fixed_ips: { get_param: [ nfv, CP, externalLB_CP1, fixed_ips ] }",
            "fixed_ips: { get_param: [ nfv, CP, externalLB_CP2, fixed_ips ] }",
            "nfv.CP.externalLB_CP2.fixed_ips gets no value",
        ),
        "a HOT that is no YAML": ("parameters:\n", "parameters: [\n", "is no HOT"),
    },
    NESTED: {
        "ports in another order": (
            "- port: { get_resource: workerNode_CP2 }\n"
            "        - port: { get_resource: workerNode_CP1 }",
            "- port: { get_resource: workerNode_CP1 }\n"
            "        - port: { get_resource: workerNode_CP2 }",
            "instead of workerNode_CP2, workerNode_CP1",
        ),
        "the internal network left": (
            "network: { get_param: internal_network }",
            "network: { get_param: external_network }",
            "workerNode_CP1 is not on the network internalVL",
        ),
        "a parameter that does not exist": (
            "flavor: { get_param: flavor }",
            "flavor: { get_param: flavour }",
            "workerNode refers to flavour with get_param",
        ),
    },
    DRIVER: {
        "a driver that is not the installed one": (
            "FROZEN",
            "frozen",
            "is not the installed driver's file",
        )
    },
    "UserData/k8s_cluster_user_data.py": {
        "user data that does not compile": (
            "class KubernetesClusterUserData",
            "klass KubernetesClusterUserData",
            "UserData/k8s_cluster_user_data.py: invalid syntax",
        )
    },
}


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        pytest.param(name, *row, id=case)
        for name, rows in BROKEN.items()
        for case, row in rows.items()
    ],
)
def test_a_broken_package_is_reported_with_the_reason(
    problems_of, parts, name, old, new, expected
):
    text = parts[name].decode()
    assert old in text, "the sample has changed; this row must follow it"
    problems = problems_of({name: text.replace(old, new, 1).encode()})
    assert any(expected in problem for problem in problems), problems


@pytest.mark.parametrize("name", [DRIVER, HOT, NESTED, DF], ids=lambda n: n)
def test_a_missing_file_is_reported(problems_of, name):
    assert problems_of({name: None})


def test_all_problems_come_in_one_report(problems_of, parts):
    problems = problems_of(
        {
            HOT: parts[HOT].replace(b"max_size: 9", b"max_size: 4"),
            DRIVER: parts[DRIVER] + b"\n",
            DF: parts[DF].replace(b"default_level: i", b"default_level: x"),
        }
    )
    assert len(problems) == 3


def test_an_invalid_vnfd_does_not_hide_problems_of_the_hot(problems_of, parts):
    problems = problems_of(
        {
            DF: parts[DF].replace(b"num_virtual_cpu: 2", b"num_virtual_cpu: two"),
            NESTED: parts[NESTED].replace(b"get_param: image", b"get_param: picture"),
        }
    )
    assert any("tosca-parser" in problem for problem in problems)
    assert any("picture" in problem for problem in problems)


def test_a_resource_unknown_to_tacker_is_reported(problems_of, parts):
    extra = b"\n  bastion:\n    type: OS::Nova::Server\n"
    (problem,) = problems_of({HOT: parts[HOT] + extra})
    assert "bastion (OS::Nova::Server) is not in the VNFD" in problem


WRONG_META = {
    "a changed hash": ("Hash: ", "Hash: 0", "its sha-256 is"),
    "an unknown algorithm": ("SHA-256", "MD5", "unknown hash algorithm MD5"),
    "a file that is not there": (
        "Name: BaseHOT",
        "Name: NoHOT",
        "TOSCA.meta: it is not there",
    ),
    "no entry file": ("Entry-Definitions", "Entry", "Entry-Definitions names nothing"),
    "another entry file": (ENTRY, "Definitions/top.yaml", "Definitions/top.yaml"),
    "an entry file outside": (
        ENTRY,
        "/etc/hostname",
        "names /etc/hostname, which is not",
    ),
}


@pytest.mark.parametrize(
    ("old", "new", "expected"), WRONG_META.values(), ids=WRONG_META.keys()
)
def test_a_wrong_tosca_meta_is_reported(problems_of, parts, old, new, expected):
    text = archive.render(parts, ENTRY).decode()
    problems = problems_of({}, text.replace(old, new, 1).encode())
    assert any(expected in problem for problem in problems), problems


def test_a_file_without_a_hash_is_a_warning_as_tacker_takes_it(parts, tmp_path):
    listed = {name: text for name, text in parts.items() if name != HOT}
    path = tmp_path / "unlisted.zip"
    archive.write(path, {**parts, archive.PATH: archive.render(listed, ENTRY)})
    report = check(path)
    assert report.problems == ()
    assert report.warnings[0] == f"{HOT}: no hash in {archive.PATH}"


@pytest.mark.parametrize("content", BESIDE.values(), ids=BESIDE)
def test_yaml_that_v1_reads_with_the_vnfd_is_reported(parts, content):
    found = list(_beside_problems({**parts, "Files/app.yaml": content}))
    assert [text.split(":")[0] for text in found] == ["Files/app.yaml"]
    below = {**parts, "Files/manifests/app.yaml": content, "Files/app.txt": content}
    assert list(_beside_problems(below)) == []


def test_a_flavour_id_that_is_a_number_is_reported(problems_of, parts):
    number = parts[DF].replace(b"flavour_id: simple", b"flavour_id: 1")
    problems = problems_of({DF: number})
    assert any("flavour_id is 1 and no text" in text for text in problems), problems


def test_an_import_is_not_looked_for_in_the_working_directory(
    problems_of, parts, tmp_path, monkeypatch
):
    name = "etsi_nfv_sol001_vnfd_types.yaml"
    (tmp_path / name).write_bytes(parts[f"Definitions/{name}"])
    monkeypatch.chdir(tmp_path)
    problems = problems_of({f"Definitions/{name}": None})
    assert f"{ENTRY}: it imports {name}, which is not there" in problems


def test_what_is_no_zip_is_reported(tmp_path):
    path = tmp_path / "text.zip"
    path.write_text("not a zip")
    (problem,) = check(path).problems
    assert "cannot be read as a zip" in problem


@pytest.mark.parametrize("position", [100, 200, 1000, 5000, -500, -22, -3])
def test_a_damaged_zip_is_reported(package, tmp_path, position):
    content = bytearray(package.read_bytes())
    content[position] ^= 0xFF
    path = tmp_path / "damaged.zip"
    path.write_bytes(content)
    assert check(path).problems


def test_a_zip_without_tosca_meta_is_reported(parts, tmp_path):
    path = tmp_path / "bare.zip"
    archive.write(path, parts)
    assert check(path).problems == (f"{archive.PATH} is missing",)


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "a/../../evil", "a\\..\\evil"]
)
def test_names_that_leave_the_package_are_refused(tmp_path, name):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr(name, "x")
    (problem,) = check(path).problems
    assert "outside the package" in problem
