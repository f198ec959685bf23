# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt csar``: exit codes and what is said."""

import hashlib
import json
import re
import uuid
from pathlib import Path

import pytest
import yaml

from tacker_k8s_mgmt.request import structure
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar import archive, parts, vnfd
from tests.unit.tools.csar.conftest import sample


def test_a_built_package_passes_its_check(tmp_path, capsys):
    package = tmp_path / "simple.zip"
    assert main(["csar", "build", "simple", "-o", str(package)]) == 0
    assert main(["csar", "check", str(package)]) == 0
    built, digest, checked, warning = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        re.escape(f"{package}: 13 files, VNFD id ") + "[-0-9a-f]{36}", built
    )
    assert digest == f"SHA-256 {hashlib.sha256(package.read_bytes()).hexdigest()}"
    assert checked == f"{package}: no problems (flavours: simple)"
    assert warning.endswith(
        "build it with --key-name, or give additionalParams.key_name"
    )


@pytest.mark.parametrize("words", [("build", "simple"), ("cnf",)])
def test_a_new_vnfd_id_is_another_each_time(tmp_path, capsys, words):
    output = ("-o", str(tmp_path / "x.zip"), "--force", "--json")
    ids = set()
    for given in ("new", "new", str(uuid.UUID(int=5))):
        assert main(["csar", *words, *output, "--vnfd-id", given]) == 0
        ids.add(uuid.UUID(json.loads(capsys.readouterr().out)["vnfd_id"]))
    assert len(ids) == 3
    assert uuid.UUID(int=5) in ids
    with pytest.raises(SystemExit, match="2"):
        main(["csar", *words, *output, "--vnfd-id", "newer"])
    assert "invalid" in capsys.readouterr().err


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_program_gets_what_the_next_commands_need(tmp_path, capsys, api):
    package, vnfd_id = tmp_path / "x.zip", str(uuid.uuid4())
    words = ["csar", "build", "simple", "--api", api, "-o", str(package), "--json"]
    assert main([*words, "--vnfd-id", vnfd_id]) == 0
    built = json.loads(capsys.readouterr().out)
    assert (built["package"], built["vnfd_id"]) == (str(package), vnfd_id)
    assert built["sha256"] == hashlib.sha256(package.read_bytes()).hexdigest()
    assert built["problems"] == []
    assert main([*words, "--force", "--flavor", "nosuch=x"]) == 1
    refused = json.loads(capsys.readouterr().out)
    assert refused["package"] is None
    assert "there is no VDU nosuch" in refused["problems"][0]


def test_what_a_site_has_becomes_the_defaults_of_the_base_hot(tmp_path, capsys):
    package, data = tmp_path / "simple.zip", tmp_path / "cloud-init.yaml"
    data.write_text("#cloud-config\nruncmd: [ \"echo 'x' 🙂\" ]\n")
    options = {
        "--key-name": "site's: key",
        "--network": "public",
        "--management-cidr": "192.0.2.0/24",
        "--user-data": str(data),
        "--parameter": "api_port=7443",
    }
    words = [word for option in options.items() for word in option]
    assert main(["csar", "build", "simple", "-o", str(package), *words]) == 0
    before, after = (
        yaml.safe_load(text)
        for text in (
            (parts.samples() / "hot" / "simple" / "base_hot_top.yaml").read_bytes(),
            archive.read(package)["BaseHOT/simple/base_hot_top.yaml"],
        )
    )
    defaults = {
        "key_name": "site's: key",
        "public_network": "public",
        "management_cidr": "192.0.2.0/24",
        "user_data": data.read_text(),
        "api_port": 7443,
    }
    for name, value in defaults.items():
        before["parameters"][name]["default"] = value
    assert after == before
    capsys.readouterr()
    assert main(["csar", "check", str(package)]) == 0
    assert "warning" not in capsys.readouterr().out


def test_a_word_on_which_tacker_fails_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("data").write_text("#cloud-config\npassword: x\n")
    assert main(["csar", "build", "simple", "--user-data", "data"]) == 1
    assert "parameters.user_data: Tacker's v1 API fails" in capsys.readouterr().out
    assert main(["csar", "build", "simple", "--user-data", "data", "--api", "v2"]) == 0


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_the_sample_of_user_data_can_be_used_once_it_has_a_hash(tmp_path, api, capsys):
    data = parts.samples() / "cloud-init.yaml"
    words = ["csar", "build", "simple", "--api", api, "-o", str(tmp_path / "x.zip")]
    assert main([*words, "--user-data", str(data)]) == 1
    assert (
        "parameters.user_data.default: is still to be filled in: the hash that openssl "
        "passwd -6 prints" in capsys.readouterr().out
    )
    assert not (tmp_path / "x.zip").exists()
    filled = tmp_path / "filled"
    filled.write_text(re.sub("<fill in: .*>", "$6$salt$hash", data.read_text()))
    assert main([*words, "--user-data", str(filled)]) == 0


def test_blanks_are_refused_wherever_they_are(tmp_path, capsys):
    blank = structure.mark("image of masterNode")
    words = ["-o", str(tmp_path / "x.zip"), "--image", f"masterNode={blank}"]
    assert main(["csar", "build", "simple", *words]) == 1
    out = capsys.readouterr().out
    assert re.search(r"Definitions/\S+: \S+masterNode\S+: is still to be filled", out)


@pytest.mark.parametrize(
    ("option", "code", "text"),
    [
        (["--parameter", "nosuch=1"], 1, "there is no parameter nosuch; it has "),
        (["--parameter", "api_port=0"], 1, "parameters.api_port: 0 is less than 1"),
        (["--parameter", "api_port"], 2, "it must be NAME=VALUE"),
        (["--management-cidr", "192.0.2.1/24"], 2, "192.0.2.1/24 has host bits set"),
        (["--user-data", "nosuch"], 2, "nosuch cannot be read"),
    ],
)
def test_what_is_no_default_is_refused(
    tmp_path, monkeypatch, capsys, option, code, text
):
    monkeypatch.chdir(tmp_path)
    assert main(["csar", "build", "simple", *option]) == code
    said = capsys.readouterr()
    assert text in said.out + said.err
    assert list(tmp_path.iterdir()) == []


def test_without_output_the_package_is_named_after_the_flavour(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["csar", "build", "simple"]) == 0
    assert (tmp_path / "simple.zip").is_file()


def test_names_of_a_site_are_taken_by_vdu(tmp_path, capsys):
    package = str(tmp_path / "simple.zip")
    options = ["--image", "jammy", "--image", "nosuch=focal", "--flavor", "big"]
    assert main(["csar", "build", "simple", "-o", package, *options]) == 1
    assert "there is no VDU nosuch" in capsys.readouterr().out


def test_an_existing_file_is_replaced_only_by_force(tmp_path, capsys):
    package = tmp_path / "simple.zip"
    package.write_text("mine")
    command = ["csar", "build", "simple", "-o", str(package)]
    assert main(command) == 2
    assert package.read_text() == "mine"
    assert "--force replaces it" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    assert package.read_bytes().startswith(b"PK")


USAGE = {
    "an unknown flavour": (["build", "huge"], "no flavour huge"),
    "a missing directory": (["build", "simple", "-o", "no/x.zip"], "no directory no"),
    "missing types": (["build", "simple", "--types", "no"], "no directory no"),
    "a missing package": (["check", "no.zip"], "no file no.zip"),
}


@pytest.mark.parametrize(("arguments", "words"), USAGE.values(), ids=USAGE.keys())
def test_a_wrong_command_line_is_exit_code_2(
    tmp_path, monkeypatch, capsys, arguments, words
):
    monkeypatch.chdir(tmp_path)
    assert main(["csar", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_id_that_is_none_is_refused():
    with pytest.raises(SystemExit) as caught:
        main(["csar", "build", "simple", "--vnfd-id", "one"])
    assert caught.value.code == 2


# --- requests


@pytest.fixture
def request_file(tmp_path):
    """Return a function that writes a request; its path."""
    body = sample("instantiate-simple")

    def write(name="request.json", **changes):
        path = tmp_path / name
        path.write_text(json.dumps({**body, **changes}))
        return str(path)

    return write


def test_requests_that_fit_are_no_problem(package, request_file, capsys):
    scale = parts.samples() / "requests" / "scale-out.json"
    command = ["csar", "check", str(package), "--request", request_file()]
    assert main([*command, "--request", str(scale)]) == 0
    assert capsys.readouterr().out == f"{package}: no problems (flavours: simple)\n"


def test_problems_of_a_request_name_its_file(package, request_file, capsys):
    path = request_file(flavourId="large")
    assert main(["csar", "check", str(package), "--request", path]) == 1
    (head, only) = capsys.readouterr().out.splitlines()
    assert head == f"{package}: 1 problem(s)"
    assert only.startswith(f"  1. {path}: flavourId: the package has no such flavour")


def test_what_is_only_unusual_is_a_warning_and_no_failure(
    package, request_file, capsys
):
    path = request_file(
        additionalParams={
            **sample("instantiate-simple")["additionalParams"],
            "internal_cdir": "10.1.0.0/24",
        }
    )
    assert main(["csar", "check", str(package), "--request", path]) == 0
    _, warning = capsys.readouterr().out.splitlines()
    assert warning.startswith(f"warning: {path}: additionalParams.internal_cdir")


def test_a_request_that_cannot_be_read_is_exit_code_2(package, tmp_path, capsys):
    path = tmp_path / "request.json"
    path.write_text("{")
    assert main(["csar", "check", str(package), "--request", str(path)]) == 2
    assert "is no JSON: line 1" in capsys.readouterr().err


def test_no_secret_of_a_request_is_shown(package, tmp_path, capsys):
    secret = "MaRk3d"
    body = sample("instantiate-simple")
    given = body["additionalParams"]["k8s_cluster_installation_param"]
    given["ansible"] |= {"password": secret, "private_key": secret}
    given["ansible"]["port"] = "22"
    given["worker_node"] |= {"password": [secret], "nic_cp_name": "none"}
    given["kubespray_vars"] = {"registry_password": secret}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(body))
    assert main(["csar", "check", str(package), "--request", str(path)]) == 1
    said = capsys.readouterr()
    assert "ansible.port: must be a whole number" in said.out
    assert secret not in said.out + said.err


@pytest.mark.parametrize("command", [["build", "simple"], ["check", "simple.zip"]])
def test_without_the_parsers_the_remedy_is_named(
    tmp_path, monkeypatch, capsys, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "simple.zip").touch()
    monkeypatch.setattr(vnfd, "find_spec", lambda name: None)
    assert main(["csar", *command, *(["--force"] if "build" in command else [])]) == 2
    said = capsys.readouterr().err
    assert "tosca-parser and heat-translator" in said
    assert "pip install 'tacker-k8s-mgmt[csar]'" in said
    assert (tmp_path / "simple.zip").read_bytes() == b""
