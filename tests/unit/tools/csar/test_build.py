# SPDX-License-Identifier: Apache-2.0
"""Packages are built whole or not at all, and the same parts give the same bytes."""

import hashlib
import importlib
import re
import shutil
import time
import zipfile
from pathlib import Path

import pytest

import tacker_k8s_mgmt
from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar import parts as sources
from tacker_k8s_mgmt.tools.csar.build import Site, build
from tests.unit.tools.csar.conftest import DF


@pytest.fixture
def own_samples(tmp_path):
    """An operator's copy of our samples."""
    copy = tmp_path / "samples"
    shutil.copytree(sources.samples(), copy)
    return copy


def test_two_builds_are_the_same_bytes(package, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000)
    again = build("simple", tmp_path / "again.zip")
    assert again.path.read_bytes() == package.read_bytes()
    assert again.sha256 == hashlib.sha256(package.read_bytes()).hexdigest()


def test_the_package_has_what_tacker_looks_for(parts):
    assert set(parts) == {
        "BaseHOT/simple/base_hot_top.yaml",
        "BaseHOT/simple/nested/base_hot_nested_worker.yaml",
        "Definitions/etsi_nfv_sol001_common_types.yaml",
        "Definitions/etsi_nfv_sol001_vnfd_types.yaml",
        DF,
        "Definitions/kubernetes_top.vnfd.yaml",
        "Definitions/kubernetes_types.yaml",
        "Scripts/ExternalLB_installation.sh",
        "Scripts/install_external_lb.sh",
        "Scripts/kubespray_mgmt.py",
        "UserData/__init__.py",
        "UserData/k8s_cluster_user_data.py",
    }


def test_the_driver_is_a_copy_of_the_installed_file(parts):
    installed = Path(tacker_k8s_mgmt.__file__).with_name("kubespray_mgmt.py")
    assert parts["Scripts/kubespray_mgmt.py"] == installed.read_bytes()


def test_every_file_has_its_hash(package, parts):
    with zipfile.ZipFile(package) as opened:
        text = opened.read(archive.PATH).decode()
    hashes = dict(re.findall(r"Name: (.*)\n.*\nAlgorithm: SHA-256\nHash: (.*)\n", text))
    assert hashes == {
        name: hashlib.sha256(content).hexdigest() for name, content in parts.items()
    }


def test_scripts_can_be_executed_after_unpacking(package):
    with zipfile.ZipFile(package) as opened:
        modes = {i.filename: i.external_attr >> 16 & 0o777 for i in opened.infolist()}
    assert modes["Scripts/install_external_lb.sh"] == 0o755
    assert modes["Scripts/ExternalLB_installation.sh"] == 0o755
    assert modes["Scripts/kubespray_mgmt.py"] == 0o644


def test_a_package_with_a_problem_is_not_written(own_samples, tmp_path):
    top = own_samples / "hot/simple/base_hot_top.yaml"
    top.write_text(top.read_text().replace("max_size: 9", "max_size: 4"))
    output = tmp_path / "simple.zip"
    output.write_text("the earlier package")
    with pytest.raises(PackageError, match="max_size 4 instead of 9"):
        build("simple", output, source=own_samples)
    assert output.read_text() == "the earlier package"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["samples", "simple.zip"]


def test_every_missing_part_is_named(own_samples, tmp_path):
    shutil.rmtree(own_samples / "vnfd/types")
    (own_samples / "vnfd/types").mkdir()
    with pytest.raises(PackageError) as caught:
        build("simple", tmp_path / "simple.zip", source=own_samples)
    assert [problem.split(" ")[0] for problem in caught.value.problems] == [
        f"Definitions/{name}" for name in sources.TYPES
    ]


def test_an_unknown_flavour_is_reported_with_the_known_ones(tmp_path):
    known = r"has no flavour huge \(it has: ha, simple\)"
    with pytest.raises(PackageError, match=known):
        build("huge", tmp_path / "huge.zip")


def test_types_come_from_the_given_directory(tmp_path):
    types = tmp_path / "types"
    shutil.copytree(sources.samples() / "vnfd/types", types)
    other = types / "etsi_nfv_sol001_vnfd_types.yaml"
    url = "https://forge.etsi.org/rep/nfv/SOL001/raw/v2.6.1/"
    text = other.read_text().replace("- etsi_nfv_sol001", f"- {url}etsi_nfv_sol001")
    other.write_text(text + "\n# official\n")
    built = build("simple", tmp_path / "simple.zip", types=types)
    files = archive.read(built.path)
    packed = files[f"Definitions/{other.name}"].decode()
    assert packed.endswith("\n# official\n")
    assert url not in packed


def test_leftovers_of_editors_and_python_stay_out(own_samples, tmp_path):
    for name in ("Definitions/.x.swp", "Definitions/x.yaml~", "UserData/x.pyc"):
        (own_samples / "vnfd/simple" / name).write_text("")
    cache = own_samples / "vnfd/simple/UserData/__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "x").write_text("")
    built = build("simple", tmp_path / "simple.zip", source=own_samples)
    assert len(built.files) == 13


def _image(text, vdu):
    block = text.split(f"\n    {vdu}:\n")[1]
    return re.search(r"sw_image_data:\n +name: (.*)\n", block)[1]


def _flavor(text, vdu):
    block = text.split(f"\n    {vdu}:\n")[1]
    return re.search(r"requested_additional_capability_name: (.*)\n", block)[1]


def test_a_site_has_its_own_names(tmp_path):
    names = Site(
        images={"": "jammy: golden"},
        flavors={"": "k8s.large", "externalLB": "lb.small"},
    )
    built = build("simple", tmp_path / "simple.zip", names=names)
    text = archive.read(built.path)[DF].decode()
    vdus = ("masterNode", "workerNode", "externalLB")
    assert {_image(text, vdu) for vdu in vdus} == {"'jammy: golden'"}
    assert [_flavor(text, vdu) for vdu in vdus] == [
        "'k8s.large'",
        "'k8s.large'",
        "'lb.small'",
    ]
    assert "# Tacker looks for the hooks" in text


def test_a_vdu_that_does_not_exist_is_refused(tmp_path):
    names = Site(images={"worker": "jammy"})
    with pytest.raises(
        PackageError, match=r"no VDU worker; it has externalLB, masterN"
    ):
        build("simple", tmp_path / "simple.zip", names=names)


def test_another_vnfd_id_is_set_everywhere(tmp_path):
    vnfd_id = "11111111-2222-4333-8444-555555555555"
    built = build("simple", tmp_path / "s.zip", names=Site(vnfd_id=vnfd_id))
    everything = b"".join(archive.read(built.path).values())
    assert everything.count(vnfd_id.encode()) == 3
    assert b"fd374e20" not in everything


def test_samples_are_found_inside_an_installed_package(tmp_path, monkeypatch):
    installed = tmp_path / "tacker_k8s_mgmt"
    (installed / "samples").mkdir(parents=True)
    monkeypatch.setattr(tacker_k8s_mgmt, "__file__", str(installed / "__init__.py"))
    reloaded = importlib.reload(sources)
    try:
        assert reloaded.samples() == installed / "samples"
    finally:
        monkeypatch.undo()
        importlib.reload(sources)
