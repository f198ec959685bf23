# SPDX-License-Identifier: Apache-2.0
"""Changing over from Tacker's sample driver, with its package and its request."""

import copy
import json

import pytest

from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import archive, parts
from tacker_k8s_mgmt.tools.csar.build import build
from tacker_k8s_mgmt.tools.csar.package_check import check
from tests.helpers import sampledriver, sampledriver_vnfd


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return sampledriver.write(tmp_path_factory.mktemp("sample") / "vnf_package")


@pytest.fixture(scope="module")
def built(tree, tmp_path_factory):
    return build("simple", tmp_path_factory.mktemp("csar") / "x.zip", source=tree)


@pytest.fixture
def request_file(tmp_path):
    path = tmp_path / "request.json"
    path.write_text(json.dumps(sampledriver.body()))
    return str(path)


def test_only_the_scripts_are_other_ones(tree, built):
    files = archive.read(built.path)
    assert built.replaced == (sampledriver.SCRIPT, "Scripts/kubespray_mgmt.py")
    assert files["Scripts/kubespray_mgmt.py"] == parts.driver()
    added = {*parts.SCRIPTS, *(f"Definitions/{name}" for name in parts.TYPES)}
    kept = files.keys() - added - {archive.PATH, *built.replaced}
    assert {name: (tree / name).read_bytes() for name in kept} == {
        name: files[name] for name in kept
    }
    assert len(kept) == 8


def test_the_request_fits_the_package_as_it_is(built):
    report = check(built.path, {"body": sampledriver.body()})
    assert report.problems == ()
    cps = [cp for cp, _, _ in sampledriver_vnfd.VDUS.values()]
    assert [text.split(": ")[1] for text in report.warnings] == [
        *["extVirtualLinks"] * len(cps),
        "master_node.aspect_id",
        # Its servers have neither a key pair nor user data.
        *["master_node", "worker_node", "external_lb_param"],
    ]


def test_another_level_than_the_fixed_one_is_reported(built):
    body = sampledriver.body() | {"instantiationLevelId": "instantiation_level_2"}
    assert [
        text.split(": ")[1:] for text in check(built.path, {"b": body}).problems
    ] == [
        [
            "instantiationLevelId",
            f"the level instantiation_level_2 has {level} VMs in {group}, and the Base "
            f"HOT makes {fixed} whatever the level is",
        ]
        for group, level, fixed in (
            ("master_instance", 3, 1),
            ("worker_instance", 4, 2),
        )
    ]


def test_the_commands_take_package_and_request(tree, tmp_path, request_file, capsys):
    package = str(tmp_path / "simple.zip")
    command = ["csar", "build", "simple", "--source", str(tree), "-o", package]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"replaced by this driver's: {sampledriver.SCRIPT}",
        "replaced by this driver's: Scripts/kubespray_mgmt.py",
    ]
    assert main(["csar", "check", package, "--request", request_file]) == 0
    assert main(["params", "check", request_file]) == 0
    assert main(["inventory", "preview", request_file]) == 0


def test_as_a_package_it_is_refused_with_the_way_out(tree, tmp_path, request_file):
    files = {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file()
    }
    types = parts.samples() / "vnfd" / "types"
    files |= {f"Definitions/{n}": (types / n).read_bytes() for n in parts.TYPES}
    entry = archive.parse(files.pop(archive.PATH).decode()).entry_definitions
    files[archive.PATH] = archive.render(files, entry)
    archive.write(tmp_path / "old.zip", files)
    found = check(tmp_path / "old.zip", {"body": sampledriver.body()}).problems
    assert [text.split(",")[0].split(": a ")[0] for text in found] == [
        "Scripts/kubespray_mgmt.py is not the installed driver's file",
        f"body: external_lb_param.script_path: {sampledriver.SCRIPT}",
    ]
    assert all("csar build" in text or "build the package" in text for text in found)


def test_a_requirement_without_occurrences_is_reported_with_line_and_remedy(tmp_path):
    tree = sampledriver.write(tmp_path / "package", occurrences=False)
    with pytest.raises(PackageError) as caught:
        build("simple", tmp_path / "x.zip", source=tree)
    (problem,) = caught.value.problems
    lines = (tree / sampledriver_vnfd.TYPES).read_text().splitlines()
    (line,) = (
        n for n, text in enumerate(lines, 1) if "- virtual_link_internal" in text
    )
    assert f"sample_kubernetes_types.yaml, line {line}: the requirement" in problem
    assert "add `occurrences: [ 0, 1 ]` to it" in problem
    assert not (tmp_path / "x.zip").exists()


def test_a_script_that_knows_the_verbs_is_kept(tmp_path):
    tree = sampledriver.write(tmp_path / "package")
    own = b"#!/bin/bash\n# tacker-k8s-mgmt load-balancer contract: 2\n: mine\n"
    (tree / sampledriver.SCRIPT).write_bytes(own)
    made = build("simple", tmp_path / "x.zip", source=tree)
    assert archive.read(made.path)[sampledriver.SCRIPT] == own
    assert made.replaced == ("Scripts/kubespray_mgmt.py",)


@pytest.mark.parametrize(("contract", "kept"), [(1, False), (2, True), (3, True)])
def test_a_script_that_keeps_an_earlier_contract_than_the_drivers_is_replaced(
    contract, kept, tmp_path, monkeypatch
):
    own = tmp_path / "scripts" / "install_external_lb.sh"
    own.parent.mkdir()
    own.write_bytes(b"# tacker-k8s-mgmt load-balancer contract: 2\n: the driver's\n")
    roots = {"scripts": own.parent, "samples": parts.samples()}
    monkeypatch.setattr(parts, "_root", roots.get)
    tree = sampledriver.write(tmp_path / "package")
    present = f"# tacker-k8s-mgmt load-balancer contract: {contract}\n: mine\n".encode()
    (tree / sampledriver.SCRIPT).write_bytes(present)
    made = build("simple", tmp_path / "x.zip", source=tree)
    expected = present if kept else own.read_bytes()
    assert archive.read(made.path)[sampledriver.SCRIPT] == expected
    assert (sampledriver.SCRIPT in made.replaced) is not kept


def test_types_of_the_package_are_kept_and_may_be_replaced(tmp_path):
    tree = sampledriver.write(tmp_path / "package")
    types, name = parts.samples() / "vnfd" / "types", parts.TYPES[0]
    own = (types / name).read_bytes() + b"\n# mine\n"
    (tree / "Definitions" / name).write_bytes(own)
    made = build("simple", tmp_path / "x.zip", source=tree)
    assert archive.read(made.path)[f"Definitions/{name}"] == own
    made = build("simple", tmp_path / "y.zip", source=tree, types=types)
    assert archive.read(made.path)[f"Definitions/{name}"] == (types / name).read_bytes()


def test_of_a_directory_that_is_neither_the_layout_is_explained(tmp_path, capsys):
    assert main(["csar", "build", "simple", "--source", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "neither vnfd/FLAVOUR/Definitions with hot/FLAVOUR" in err
    assert "nor Definitions with BaseHOT/FLAVOUR" in err


def test_a_node_without_its_port_is_found_behind_its_floating_ip(built):
    body = copy.deepcopy(sampledriver.body())
    given = body["additionalParams"]["k8s_cluster_installation_param"]
    for group in ("master_node", "worker_node"):
        del given[group]["nic_cp_name"]
    assert check(built.path, {"body": body}).problems == ()
