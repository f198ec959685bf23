"""Packages of CNFs: what is put into them, and what is refused."""

import pytest
import yaml

from tacker_k8s_mgmt.csar import archive, cnf, meta, sources
from tacker_k8s_mgmt.errors import PackageError

OTHER = "5d1f7a1e-5a0b-4c6d-9e57-0b8f4d2c6a92"


@pytest.mark.parametrize("api", cnf.DRIVER_FILES)
def test_sample_has_the_drivers_file_as_its_vnfd_names_it(tmp_path, api):
    output = tmp_path / "web.zip"
    names = cnf.pack(output, api=api, vnfd_id=OTHER)
    files = archive.read(output)
    assert tuple(sorted(files)) == names
    assert not [name for name in names if "requests" in name]
    path, named = cnf.DRIVER_FILES[api]
    assert files[path] == sources.own_file(path.rpartition("/")[2])
    vnf = yaml.safe_load(files["Definitions/web_df.yaml"])["topology_template"]
    (artifact,) = vnf["node_templates"]["VNF"]["artifacts"].values()
    assert artifact["file"] == named
    assert OTHER.encode() in files["Definitions/web.vnfd.yaml"]
    listed = meta.parse(files[meta.PATH].decode())
    assert listed.entry_definitions == "Definitions/web.vnfd.yaml"
    assert not list(meta.problems(listed, files))


def test_directory_without_a_vnfd_is_refused(tmp_path):
    output = tmp_path / "web.zip"
    (tmp_path / "empty").mkdir()
    with pytest.raises(PackageError, match=r"named \*\.vnfd\.yaml"):
        cnf.pack(output, source=tmp_path / "empty", api="v1")
    assert not output.exists()
