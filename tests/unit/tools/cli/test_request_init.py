# SPDX-License-Identifier: Apache-2.0
"""`request init` as a command, without a cloud and at one."""

import io
import json
import sys
import uuid

import pytest

from lab.cloud.base import KEY_PAIR
from lab.services import compute, images, network
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import parts
from tests.helpers.openstack_cloud import PROJECT, OpenStack
from tests.unit.tools.cli.bodies import installation
from tests.unit.tools.cli.command_line import commands_in, parsed

KNOWN = (
    *("--ansible-host", "192.0.2.5", "--ansible-private-key", "./ansible"),
    *("--hot", "management_cidr=192.0.2.0/24", "--key-name", "blue"),
    *("--vm-user", "ubuntu", "--vm-private-key", "./blue", "--name", "blue"),
)
#: The VNFD id of the sample package ``simple``.
SIMPLE = "fd374e20-60bb-4e56-bdb9-052e28185439"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No clouds.yaml and no login of this machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("OS_CLOUD", "OS_AUTH_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def openstack(monkeypatch, home):
    with OpenStack().running() as running:
        for name, value in running.environment(home).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def init(capsys, home):
    """Run the command; the request and what was printed."""

    def init(*words):
        code = main(["request", "init", *words])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return json.loads((home / "instantiate.json").read_text()), captured.out

    return init


def test_offline_with_blanks_that_both_checks_name(init, home, capsys):
    body, out = init(*KNOWN)
    assert installation(body)["ansible"]["ip_address"] == "192.0.2.5"
    assert "instantiate.json: 3 left to correct or fill in\n" in out
    assert "  extVirtualLinks.0.resourceId: is still to be filled in: network" in out
    assert (home / "instantiate.json").stat().st_mode & 0o777 == 0o600
    assert main(["params", "check", "instantiate.json"]) == 1
    assert "3 problems" in capsys.readouterr().out
    assert main(["csar", "build", "simple"]) == 0
    words = ["csar", "check", "simple.zip", "--request", "instantiate.json"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert out.count("is still to be filled in") == 3
    assert "simple.zip: 3 problem(s)" in out


def test_the_server_may_be_left_to_the_operator(init, capsys):
    words = ["--ansible-host", "-", *KNOWN[4:]]
    body, out = init(*words)
    assert "ansible" not in installation(body)
    assert "ansible" not in out.partition("next:")[0]


def test_the_next_commands_are_commands(init):
    _, out = init(*KNOWN, "--image", "Rocky 9", "--flavor", "workerNode=large")
    lines = list(commands_in(out))
    assert [line[:2] for line in lines] == [
        *(["csar", "build"], ["csar", "check"], ["preflight", "instantiate.json"]),
        ["runs", "follow"],
    ]
    _, arguments = parsed(lines[0])
    assert arguments.image[0] == "masterNode=Rocky 9"
    assert arguments.flavor == ["workerNode=large"]


def test_of_a_package_and_for_v2(init, capsys):
    assert main(["csar", "build", "ha", "--api", "v2", "-o", "mine.zip"]) == 0
    body, out = init("--package", "mine.zip", *KNOWN, "--network", "inner")
    assert body["flavourId"] == "ha"
    configs = body["extVirtualLinks"][0]["extCps"][0]["cpConfig"]
    assert list(configs) == ["masterNode_CP1"]
    assert "instantiate.json: nothing left" in out
    assert "csar build" not in out
    assert "  openstack --os-tacker-api-version 2 vnflcm create VNFD_ID" in out
    words = ["csar", "check", "mine.zip", "--request", "instantiate.json"]
    assert main(words) == 0


def test_standard_output(home, capsys):
    assert main(["request", "init", "-o", "-", *KNOWN]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["flavourId"] == "simple"
    assert captured.err.startswith("No cloud is asked: neither --os-cloud nor")
    assert not (home / "instantiate.json").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--vm-password", "s3cret"), "--vm-password: this would put a secret"),
        (("other",), "there is no flavour other (there are: ha, simple)"),
        (("--hot", "x"), "--hot needs NAME=VALUE"),
        (
            ("--hot", "x=1"),
            "there is no parameter of the Base HOT x (there are: address_pairs",
        ),
        (("--set", "=1"), "--set needs NAME=VALUE"),
        (("--set", "vim_name.x=1"), "vim_name is no structure"),
        (("--literal-secrets",), "there is no terminal to ask for the password"),
    ],
)
def test_wrong_words(capsys, home, words, text):
    assert main(["request", "init", *words]) == 2
    err = capsys.readouterr().err
    assert text in err
    assert "s3cret" not in err
    assert not (home / "instantiate.json").exists()


def test_an_existing_file_is_kept(init, home, capsys):
    (home / "instantiate.json").write_text("mine")
    assert main(["request", "init"]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert (home / "instantiate.json").read_text() == "mine"
    assert init("--force")[0]["flavourId"] == "simple"


def test_further_parameters(init):
    more = ("--set", "cluster.helm=true", "--set", "cluster.kubernetes_version=1.35.1")
    body, _ = init(*KNOWN, *more)
    assert installation(body)["cluster"] == {
        "helm": True,
        "kubernetes_version": "1.35.1",
    }


class TestCloud:
    def test_what_the_cloud_has_is_filled_in(self, init, openstack):
        body, out = init(*KNOWN[:6], "--vm-private-key", "./lab")
        assert "nothing left to correct or fill in" in out
        ids = {link["resourceId"] for link in body["extVirtualLinks"]}
        assert ids == {network.EXTERNAL_ID}
        assert installation(body)["worker_node"]["username"] == "ubuntu"
        assert body["additionalParams"]["key_name"] == KEY_PAIR

    def test_what_no_package_can_be_built_without_is_left(
        self, init, openstack, monkeypatch, capsys
    ):
        monkeypatch.setattr(images, "IMAGES", images.IMAGES[1:2])
        monkeypatch.setattr(compute, "FLAVORS", compute.FLAVORS[:1])
        _, out = init(*KNOWN, "--yes")
        assert "instantiate.json: 6 left to correct or fill in\n" in out
        assert "  csar build --image masterNode: is still to be filled in: image" in out
        build = next(line for line in commands_in(out) if line[:2] == ["csar", "build"])
        assert main(build) == 1
        assert capsys.readouterr().out.count("is still to be filled in: ") == 6

    def test_offline_asks_none(self, init, openstack):
        openstack.refused |= {"compute", "image", "network"}
        body, _ = init("--offline")
        assert "<fill in: " in body["extVirtualLinks"][0]["resourceId"]

    def test_the_next_commands_are_for_the_same_cloud(self, init, openstack):
        _, out = init("--os-cloud", "envvars", *KNOWN, "--api", "v2")
        lines = [line.strip() for line in out.partition("next:\n")[2].splitlines()]
        assert lines[2] == (
            "tacker-k8s-mgmt preflight instantiate.json --package simple.zip --cloud "
            "--os-cloud envvars"
        )
        assert lines[3:] == [
            "openstack --os-cloud envvars vnf package create",
            "openstack --os-cloud envvars vnf package upload --path simple.zip "
            "PACKAGE_ID",
            "openstack --os-cloud envvars vnf package show PACKAGE_ID "
            "-c 'Onboarding State' -c 'VNFD ID'",
            "openstack --os-cloud envvars --os-tacker-api-version 2 vnflcm create "
            "VNFD_ID --name blue",
            "openstack --os-cloud envvars --os-tacker-api-version 2 vnflcm instantiate "
            "VNF_INSTANCE_ID instantiate.json",
            "tacker-k8s-mgmt runs follow VNF_INSTANCE_ID --wait 600",
        ]

    def test_a_cloud_that_does_not_answer_is_an_error(self, openstack, capsys, home):
        openstack.refused.add("network")
        assert main(["request", "init"]) == 1
        assert "Neutron does not answer as it should" in capsys.readouterr().err
        assert not (home / "instantiate.json").exists()

    def test_a_package_that_tacker_has_is_named(self, openstack, capsys):
        known = {"id": str(uuid.UUID(int=7)), "vnfdId": SIMPLE}
        openstack.packages[known["id"]] = known

        def said():
            assert main(["request", "init", *KNOWN, "--force"]) == 0
            return capsys.readouterr().err

        assert f"the VNF package {known['id']} of the VNFD id {SIMPLE} alr" in said()
        openstack.packages.clear()
        assert "VNFD id" not in said()
        openstack.refused.add("nfv-orchestration")
        assert f"Tacker has the VNFD id {SIMPLE} already is unknown: " in said()

    def test_a_dialogue(self, home, openstack, monkeypatch, capsys):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.setattr(images, "IMAGES", images.IMAGES[1:])
        monkeypatch.setattr(compute, "FLAVORS", compute.FLAVORS[:1])
        answers = [
            *("blue", "instantiation_level_2"),
            *("1", "my-image", "my-image", "m2.node", "m2.node", "1"),
            *("", "", "", "ubuntu"),
            *("", "s3cret", "file:vms", "192.0.2.0/24", "", "192.0.2.5"),
            *("installer", "./key"),
            *("", "", "", "", ""),
        ]
        monkeypatch.setattr(sys, "stdin", Terminal("\n".join(answers) + "\n"))
        assert main(["request", "init"]) == 0
        out, err = capsys.readouterr()
        body = json.loads((home / "instantiate.json").read_text())
        opening, *_ = err.splitlines()
        assert opening.startswith("An instantiate request for Tacker's v1 API, ")
        assert f"the project {PROJECT} at {openstack.auth_url}. Enter takes" in opening
        assert installation(body)["ansible"] == {
            "ip_address": "192.0.2.5",
            "username": "installer",
            "private_key": "./key",
            "kubespray_root_path": "/opt/kubespray",
            "transferring_inventory_path": "/home/installer/clusters/blue",
            "venv_path": "/opt/kubespray-venv",
        }
        assert body["instantiationLevelId"] == "instantiation_level_2"
        assert f"--image masterNode={images.OTHER}" in out
        assert "--image workerNode=my-image" in out
        assert f"--flavor externalLB={compute.TOO_SMALL}" in out
        assert installation(body)["worker_node"]["password"] == {"file": "vms"}


def test_the_samples_say_whose_they_are():
    for path in parts.samples().glob("**/requests/instantiate-[hs]*.json"):
        if "cnf" not in path.parts:
            assert "laboratory's own" in json.loads(path.read_text())["comment"]
