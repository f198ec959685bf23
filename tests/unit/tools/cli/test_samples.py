# SPDX-License-Identifier: Apache-2.0
"""Every sample request against every command that takes requests."""

import json

import pytest

from tacker_k8s_mgmt.request.reader import ATTRIBUTE
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.build import build
from tacker_k8s_mgmt.tools.csar.tacker_api import APIS
from tests.helpers import ssh_keys

BODIES = [
    pytest.param(api, path, id=f"{api.name}-{path.stem}")
    for api in APIS.values()
    for path in sorted((parts.samples(api) / "requests").glob("*.json"))
]


def has_parameters(path):
    return ATTRIBUTE in json.loads(path.read_text()).get("additionalParams", {})


def instantiation(api, path):
    """The sample request that comes before another one."""
    flavour = "ha" if path.stem.endswith("-ha") else "simple"
    return str(parts.samples(api) / "requests" / f"instantiate-{flavour}.json")


def may_come_later(path):
    return not path.stem.startswith(("instantiate", "create"))


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The package of each API and flavour, by its names."""
    directory = tmp_path_factory.mktemp("packages")
    for api in APIS.values():
        for flavour in ("simple", "ha"):
            build(flavour, directory / f"{api.name}-{flavour}.zip", api=api)
    return directory


@pytest.mark.parametrize(("api", "path"), BODIES)
class TestAlone:
    def test_params_check(self, api, path, capsys):
        code = main(["params", "check", str(path)])
        said = capsys.readouterr()
        if may_come_later(path) and has_parameters(path):
            assert (code, said.out) == (2, "")
            assert "give that with --stored INSTANTIATE.json" in said.err
            return
        assert (code, said.err) == (0, "")
        assert said.out.startswith(f"{path}: no problems\n")
        assert ("Understood as:" in said.out) == has_parameters(path)
        assert (ATTRIBUTE in said.out) == may_come_later(path)

    def test_inventory_preview(self, api, path, capsys):
        code = main(["inventory", "preview", str(path)])
        said = capsys.readouterr()
        if path.stem.startswith("instantiate"):
            assert (code, said.err) == (0, "")
            assert said.out.startswith("==> hosts.yaml in ")
        else:
            assert (code, said.out) == (2, "")
            assert str(path) in said.err

    def test_preflight_is_for_instantiations(self, api, path, tmp_path, capsys):
        body = json.loads(path.read_text())
        if path.stem.startswith("instantiate"):
            server = body["additionalParams"][ATTRIBUTE]["ansible"]
            server |= {"ip_address": "127.0.0.1", "port": 1}  # nothing listens there
        sent = tmp_path / path.name
        sent.write_text(json.dumps(body))
        (tmp_path / "ansible-server").write_text("secret")
        (tmp_path / "lab").write_text(ssh_keys.make("ed25519").private)
        places = ("--state-path", "--key-directory", "--secret-directory")
        limit = ["--connect-timeout", "0.2"]
        limit += [word for option in places for word in (option, str(tmp_path))]
        code = main(["preflight", str(sent), "--json", *limit])
        said = capsys.readouterr()
        if not path.stem.startswith("instantiate"):
            assert (code, said.out) == (2, "")
            assert "and preflight is for instantiate ones" in said.err
            return
        found = {
            check["check"]
            for check in json.loads(said.out)["checks"]
            if check["findings"]
        }
        assert (code, found) == (1, {"Ansible server"})


@pytest.mark.parametrize(
    ("api", "path"), [one for one in BODIES if may_come_later(one.values[1])]
)
class TestAfterTheInstantiation:
    @pytest.mark.parametrize("options", [[], ["--json"]], ids=["", "json"])
    def test_params_check(self, api, path, options, capsys):
        stored = ["--stored", instantiation(api, path)]
        code = main(["params", "check", str(path), *stored, *options])
        said = capsys.readouterr()
        assert (code, said.err) == (0, ""), said.out
        assert "worker_node.username" in said.out

    def test_inventory_preview(self, api, path, capsys):
        stored = ["--stored", instantiation(api, path)]
        assert main(["inventory", "preview", str(path), *stored]) == 0
        assert capsys.readouterr().out.startswith("==> hosts.yaml in ")


@pytest.mark.parametrize(("api", "path"), BODIES)
def test_csar_check(packages, api, path, capsys):
    flavour = "ha" if path.stem.endswith("-ha") else "simple"
    command = ["csar", "check", str(packages / f"{api.name}-{flavour}.zip")]
    if may_come_later(path):
        command += ["--request", instantiation(api, path)]
    code = main([*command, "--request", str(path)])
    said = capsys.readouterr().out.splitlines()
    if path.stem in ("upgrade", "change-vnfpkg"):
        # They name the package that the VNF is to have then, whose id is to be set.
        assert [line.split(": ")[1] for line in said[1:]] == ["vnfdId"]
    else:
        assert (code, len(said)) == (0, 1), said
