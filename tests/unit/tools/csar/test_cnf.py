# SPDX-License-Identifier: Apache-2.0
"""Packages of CNFs: what is put into them, and what is refused."""

import io
import json
import shutil
import tarfile

import pytest
import yaml

from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import archive, build, parts

OTHER = "5d1f7a1e-5a0b-4c6d-9e57-0b8f4d2c6a92"


@pytest.mark.parametrize("api", build.DRIVER_FILES)
def test_sample_has_the_drivers_file_as_its_vnfd_names_it(tmp_path, api):
    output = tmp_path / "web.zip"
    names = build.pack(output, api=api, vnfd_id=OTHER).files
    files = archive.read(output)
    assert tuple(sorted(files)) == names
    assert not [name for name in names if "requests" in name]
    path, named = build.DRIVER_FILES[api]
    assert files[path] == parts.own_file(path.rpartition("/")[2])
    vnf = yaml.safe_load(files["Definitions/web_df.yaml"])["topology_template"]
    (artifact,) = vnf["node_templates"]["VNF"]["artifacts"].values()
    assert artifact["file"] == named
    assert OTHER.encode() in files["Definitions/web.vnfd.yaml"]
    listed = archive.parse(files[archive.PATH].decode())
    assert listed.entry_definitions == "Definitions/web.vnfd.yaml"
    assert not list(archive.problems(files))


def test_the_samples_of_both_apis_can_be_in_one_tacker(tmp_path):
    output = tmp_path / "web.zip"
    ids = [build.pack(output, api=api).vnfd_id for api in build.DRIVER_FILES]
    assert len({*ids}) == 2
    assert ids[1].encode() in archive.read(output)["Definitions/web.vnfd.yaml"]


@pytest.mark.parametrize("api", build.DRIVER_FILES)
def test_the_check_of_clusters_packages_says_that_it_is_none(tmp_path, capsys, api):
    output = tmp_path / "web.zip"
    build.pack(output, api=api)
    assert main(["csar", "check", str(output)]) == 1
    out = capsys.readouterr().out
    assert "1 problem(s)" in out
    assert "the package of a CNF" in out


def test_v1_package_has_the_chart_as_helm_packs_it(tmp_path):
    output = tmp_path / "web.zip"
    build.pack(output, api="v1")
    files = archive.read(output)
    packed = io.BytesIO(files["Files/helm/web-0.1.0.tgz"])
    with tarfile.open(fileobj=packed) as chart:
        members = {m.name: chart.extractfile(m).read() for m in chart}
    directory = "Files/helm/"
    assert members == {
        name.removeprefix(directory): content
        for name, content in files.items()
        if name.startswith(f"{directory}web/")
    }
    # Tacker takes what is before the last hyphen for the chart's directory.
    assert {name.partition("/")[0] for name in members} == {"web"}
    request = json.loads(
        (parts.samples() / "cnf/requests/instantiate-helm.json").read_text()
    )
    (release,) = request["additionalParams"]["using_helm_install_param"]
    assert release["helmchartfile_path"] in files


def test_chart_without_a_version_is_refused(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(parts.samples() / "cnf", source)
    (source / "Files/helm/web/Chart.yaml").write_text("name: web\n")
    with pytest.raises(PackageError, match="no name and version"):
        build.pack(tmp_path / "web.zip", source=source, api="v1")


def test_directory_without_a_vnfd_is_refused(tmp_path):
    output = tmp_path / "web.zip"
    (tmp_path / "empty").mkdir()
    with pytest.raises(PackageError, match=r"named \*\.vnfd\.yaml"):
        build.pack(output, source=tmp_path / "empty", api="v1")
    assert not output.exists()


def test_command_prints_a_document(tmp_path, capsys):
    output = tmp_path / "web.zip"
    assert main(["csar", "cnf", "-o", str(output), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["package"] == str(output)
    assert set(document["files"]) == set(archive.read(output))


def test_problems_of_the_command_are_a_document(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    output = tmp_path / "web.zip"
    words = ["csar", "cnf", str(tmp_path / "empty"), "-o", str(output), "--json"]
    assert main(words) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["package"] is None
    assert "*.vnfd.yaml, there is: none" in document["problems"][0]
    assert not output.exists()
