# SPDX-License-Identifier: Apache-2.0
"""``params check``: what is understood, what is wrong, and never a secret."""

import io
import json
import sys

import pytest

from tacker_k8s_mgmt.request.reader import ATTRIBUTE
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.csar.body import read
from tacker_k8s_mgmt.tools.csar.parts import samples
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2
from tests.unit.tools.cli.bodies import (
    FILE,
    KEY,
    MARK,
    SECRET_REF,
    changed,
    installation,
    leaves,
    named,
    secretive,
    simple,
)


@pytest.fixture
def check(tmp_path, capsys):
    """Return a function: exit code, output and complaints for a document."""

    def run(document, *options, stored=None):
        text = document if isinstance(document, str) else json.dumps(document)
        path = tmp_path / "request.json"
        path.write_text(text)
        if stored is not None:
            (tmp_path / "stored.json").write_text(json.dumps(stored))
            options = (*options, "--stored", str(tmp_path / "stored.json"))
        code = main(["params", "check", str(path), *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def scale(**fields):
    return {"type": "SCALE_OUT", "aspectId": "worker_instance", **fields}


def heal(installation_param, **fields):
    return {**fields, "additionalParams": {ATTRIBUTE: installation_param}}


def test_an_ansible_server_left_to_the_operator(check):
    body = simple()
    del installation(body)["ansible"]
    code, out, _ = check(body)
    assert code == 0
    assert "warning: ansible: is left to Tacker's operator" in out
    assert "ansible.invalid" not in out
    installation(body)["kubespray_vars"] = {"download_localhost": True}
    code, out, _ = check(body)
    assert code == 1
    assert "problem: kubespray_vars.download_localhost: cannot be set" in out


# --- what may be given

FORMS = {
    "a whole request": simple(),
    "additionalParams": simple()["additionalParams"],
    "the structure alone": installation(simple()),
    "the structure in Tacker's spelling": {
        "masterNode": installation(simple())["master_node"],
        "workerNode": installation(simple())["worker_node"],
        "ansible": installation(simple())["ansible"],
    },
}


@pytest.mark.parametrize("document", FORMS.values(), ids=FORMS.keys())
def test_every_form_is_understood(check, document):
    code, out, err = check(document)
    assert (code, err) == (0, "")
    assert "request.json: no problems" in out
    assert "  master_node.ssh_cp_name " in out


def test_standard_input_is_read(monkeypatch, capsys):
    text = json.dumps(simple()).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["params", "check", "-"]) == 0
    assert capsys.readouterr().out.startswith("standard input: no problems")


def test_defaults_and_what_is_not_given_are_shown_as_such(check):
    _, out, _ = check(simple())
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith(" ")}
    assert lines["ansible.port"].endswith("  22  (default)")
    assert lines["external_lb_param.script_path"].endswith(
        "  Scripts/install_external_lb.sh"
    )
    assert lines["proxy"].endswith("  (not given)")
    assert lines["ansible.password"].endswith("  ***")


def test_json_has_the_same(check):
    code, out, _ = check(simple(), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["problems"] == []
    assert found["parameters"]["drain.timeout"] == 300
    assert found["parameters"]["worker_node.password"] == "***"
    assert "drain.timeout" in found["defaults"]
    assert "worker_node.username" not in found["defaults"]


# --- problems


def test_every_problem_is_a_line_of_its_own(check):
    body = simple()
    given = installation(body)
    del given["ansible"]["username"]
    given["master_node"]["pod_cidr"] = "not a network"
    given["wroker_node"] = given.pop("worker_node")
    code, out, _ = check(body)
    assert code == 1
    problems = [line for line in out.splitlines() if line.startswith("problem: ")]
    assert len(problems) == 4
    assert "request.json: 4 problems" in out
    assert "problem: ansible.username: is missing" in problems
    assert any("did you mean worker_node?" in line for line in problems)
    assert "Understood as" not in out


def test_problems_are_in_json_too(check):
    body = simple()
    del installation(body)["ansible"]["username"]
    code, out, _ = check(body, "--json")
    assert code == 1
    assert json.loads(out)["problems"] == ["ansible.username: is missing"]
    assert json.loads(out)["parameters"] == {}


def test_a_warning_alone_is_no_failure(check):
    body = simple()
    installation(body)["master_node"]["pod_cidr"] = "192.168.3.0/16"
    code, out, _ = check(body)
    assert code == 0
    assert "request.json: no problems, 1 warning" in out
    assert "warning: master_node.pod_cidr: is taken as 192.168.0.0/16" in out


def test_a_request_without_our_attribute_would_do_nothing(check):
    body = simple()
    body["additionalParams"]["k8s_cluster_instalation_param"] = {}
    del body["additionalParams"][ATTRIBUTE]
    code, out, _ = check(body)
    assert code == 1
    assert "the driver does nothing with the VMs" in out
    assert "k8s_cluster_instalation_param" in out


def test_what_tackers_api_refuses_is_reported(check):
    body = simple()
    body["flavourId"] = 7
    body["vimConnectionInfo"] = [{"id": "a", "vimType": "openstack"}] * 2
    code, out, _ = check(body)
    assert code == 1
    assert "problem: flavourId: must be text" in out
    assert "problem: vimConnectionInfo: must have no more entries than 1" in out


def test_an_attribute_that_is_given_twice_is_reported(check):
    text = json.dumps(simple()).replace(
        '"vim_name": "kubernetes_vim"', '"vim_name": "one", "vim_name": "two"'
    )
    code, out, _ = check(text)
    assert code == 0
    assert (
        "warning: 'vim_name' is given twice in one object; the last one counts" in out
    )


# --- scale and heal


def with_ours(body):
    return {**body, **heal({})}


LATER = [scale(), {"cause": "x"}, {"terminationType": "FORCEFUL"}]


@pytest.mark.parametrize("later", LATER)
def test_a_change_of_parameters_needs_the_instantiation(check, later):
    code, out, err = check(with_ours(later))
    assert (code, out) == (2, "")
    assert "give that with --stored INSTANTIATE.json" in err


@pytest.mark.parametrize("later", LATER)
def test_a_later_request_that_changes_no_parameters_is_checked_alone(check, later):
    code, out, _ = check(later)
    assert code == 0
    assert "changes no parameters; with --stored INSTANTIATE.json" in out
    assert json.loads(check(later, "--json")[1])["parameters"] == {}


CREATE = {"vnfdId": "fd374e20-60bb-4e56-bdb9-052e28185439"}


@pytest.mark.parametrize("first", [simple(), CREATE])
def test_some_requests_come_after_nothing(check, first):
    code, _, err = check(first, stored=simple())
    assert code == 2
    assert "--stored is for requests that come after an instantiation" in err


def test_what_is_stored_is_an_instantiation(check):
    code, _, err = check(scale(), stored=scale())
    assert code == 2
    assert "--stored: it is a scale request, not an instantiate request" in err


def test_scaling_without_parameters_takes_the_stored_ones(check):
    code, out, _ = check(scale(), stored=simple())
    assert code == 0
    assert "worker_node.username" in out


def test_what_a_later_request_changes_is_merged(check):
    change = {"worker_node": {"username": "core", "password": "new"}}
    code, out, _ = check(heal(change, cause="x"), stored=simple())
    assert code == 0
    (line,) = [one for one in out.splitlines() if " worker_node.username" in one]
    assert line.endswith("  core")


def test_what_a_later_request_may_not_change_is_reported(check):
    code, out, _ = check(
        heal({"worker_node": {"nic_cp_name": "other"}}), stored=simple()
    )
    assert code == 1
    assert "worker_node.nic_cp_name: cannot be changed after instantiation" in out


def test_another_version_comes_with_an_upgrade_only(check):
    version = {"cluster": {"kubernetes_version": "1.35.4"}}
    upgrade = json.loads((samples(V2) / "requests" / "upgrade.json").read_text())
    upgrade["additionalParams"][ATTRIBUTE] = version
    code, out, _ = check(upgrade, stored=simple())
    assert code == 0, out
    assert "1.35.4" in out
    code, out, _ = check(heal(version), stored=simple())
    assert code == 1
    assert "another version comes with an upgrade only" in out


def test_problems_of_the_stored_request_are_reported(check):
    stored = simple()
    del installation(stored)["worker_node"]
    code, out, _ = check(scale(), stored=stored)
    assert code == 1
    assert "worker_node: is missing" in out


WRONG_SHAPES = {
    "steps in quotes": (scale(numberOfSteps="1"), "numberOfSteps: must be a whole"),
    "one VNFC alone": ({"vnfcInstanceId": "one"}, "vnfcInstanceId: must be a list"),
    "no type": ({"aspectId": "worker_instance"}, "type: is missing"),
}


@pytest.mark.parametrize(
    ("document", "words"), WRONG_SHAPES.values(), ids=WRONG_SHAPES.keys()
)
def test_a_body_of_the_wrong_shape_is_reported(check, document, words):
    code, out, _ = check(document, stored=simple())
    assert code == 1
    assert words in out


# --- what cannot be read

UNREADABLE = {
    "no JSON": ('{"a": 1,}', "is no JSON: line 1, column 9"),
    "comments": ('{\n// mine\n"a": 1}', "is no JSON: line 2, column 1"),
    "a list": ("[]", "it is no JSON object"),
    "something else": ('{"a": 1}', "there is neither a request nor"),
    "nothing": ("", "is no JSON: line 1, column 1"),
    "too deep": ("[" * 100_000, "too deep"),
}


@pytest.mark.parametrize(("text", "words"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_exit_code_2(check, text, words):
    code, out, err = check(text)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_files_that_cannot_be_read_are_exit_code_2(tmp_path, capsys):
    (tmp_path / "latin").write_bytes(b'{"a": "\xe4"}')
    for path, words in (
        (tmp_path / "none", "cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "latin", "is no text in UTF-8"),
    ):
        assert main(["params", "check", str(path)]) == 2
        assert words in capsys.readouterr().err


def test_only_one_of_two_can_be_standard_input(capsys):
    assert main(["params", "check", "-", "--stored", "-"]) == 2
    assert "only one of the two" in capsys.readouterr().err


# --- secrets


def test_no_secret_is_shown_of_a_good_request(check):
    for options in ((), ("--json",)):
        code, out, err = check(secretive(), *options)
        assert code == 0, out
        assert MARK not in out + err
        assert "http://***@proxy.example:3128" in out
        assert "1.33.1" in out


def test_no_secret_is_shown_of_a_request_with_any_mistake(check):
    body = secretive()
    for place, value in leaves(body):
        # A variable of any name shows what it is by its text alone.
        by_text = place[-1] in ("files_repo", "some_pem")
        secret = isinstance(value, str) and MARK in value and not by_text
        wrong = (f"{MARK}\n", [MARK], {MARK: MARK}) if secret else ("\x00", "{{ x }}")
        for new in (None, 7, [], {}, "", *wrong):
            _, out, err = check(changed(body, place, new))
            assert MARK not in out + err, (place, new)


def test_no_secret_is_shown_of_a_change(check):
    change = {
        name: installation(secretive())[name] for name in ("worker_node", "proxy")
    }
    for document in (heal(change), heal({"worker_node": f"{MARK}"}), change):
        _, out, err = check(document, stored=secretive())
        assert MARK not in out + err


def test_no_secret_is_shown_of_a_text_that_is_cut_off(check):
    text = json.dumps(secretive(), indent=1)
    for end in range(0, len(text), 97):
        _, out, err = check(text[:end])
        assert MARK not in out + err


def test_a_secret_that_is_short_or_a_user_name_is_hidden_as_well(check):
    body = simple()
    given = installation(body)
    given["worker_node"] |= {"username": "root", "password": "root"}
    given["ansible"]["password"] = "x"
    given["kubespray_vars"] = {"registry_password": "root", "pin_token": 1234}
    _, out, _ = check(body)
    for name in ("worker_node.password", "ansible.password"):
        (line,) = [one for one in out.splitlines() if f" {name} " in one]
        assert line.endswith("  ***")
    assert '{"registry_password": "***", "pin_token": "***"}' in out


def test_a_private_key_that_is_a_path_is_shown(check):
    body = simple()
    installation(body)["ansible"]["private_key"] = "/etc/tacker/k8s_mgmt/keys/id"
    code, out, _ = check(body)
    assert code == 0
    assert "/etc/tacker/k8s_mgmt/keys/id" in out
    installation(body)["ansible"]["private_key"] = KEY
    assert "PRIVATE KEY" not in check(body)[1]


def test_the_secrets_of_options_are_hidden_in_lists_too(check):
    body = simple()
    registry = {"prefix": "r", "username": "puller", "password": MARK}
    installation(body)["cluster"] = {
        "registries": [registry],
        "offline": {"files_repo": f"https://u:{MARK}@files.example.org"},
    }
    code, out, _ = check(body)
    assert code == 0
    assert MARK not in out
    assert "cluster.registries.0.username" in out
    assert MARK not in check(body, "--json")[1]


# --- references


def test_references_are_shown_and_not_followed(check):
    code, out, _ = check(named())
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith(" ")}
    for name, reference in (
        ("ansible.password", FILE),
        ("worker_node.password", SECRET_REF),
    ):
        expected = f"  {json.dumps(reference)}  (resolved when a hook begins)"
        assert lines[name].endswith(expected)
    assert lines["kubespray_vars"].endswith(
        json.dumps({"registry_password": SECRET_REF})
    )
    assert lines["master_node.password"].endswith("  ***")


def test_and_in_json(check):
    found = json.loads(check(named(), "--json")[1])["parameters"]
    assert found["ansible.password"] == FILE
    assert found["worker_node.password"] == SECRET_REF


def test_one_that_is_written_wrongly_is_a_problem(check):
    body = named()
    installation(body)["ansible"]["password"] = {"secret_ref": MARK}
    code, out, _ = check(body)
    assert code == 1
    assert "problem: ansible.password: secret_ref must be the URL of a secret" in out
    assert MARK not in out


LONG = json.dumps([{"name": "blue", "vim_name": "x" * 40}] * 20)
ANNOTATION = "k8s_nodes:worker:annotation:example.org/text"


def test_texts_of_the_metadata_that_tackers_v2_api_refuses_are_warned_of(check):
    body = {"metadata": {"k8s_applications": LONG[:1024], ANNOTATION: "x" * 1025}}
    body["metadata"]["k8s_tenants"] = LONG
    _, out, _ = check(body)
    warnings = [line for line in out.splitlines() if line.startswith("warning:")]
    refuses = "and Tacker's v2 API refuses more than 1024"
    assert warnings == [
        f"warning: metadata.{ANNOTATION}: its text has 1025 characters, {refuses}",
        f"warning: metadata.k8s_tenants: its text has {len(LONG)} characters, "
        f"{refuses}; it takes the JSON itself, not as text",
    ]


def test_lists_of_the_metadata_may_be_long(check):
    _, out, _ = check({"metadata": {"k8s_tenants": json.loads(LONG)[:1]}})
    assert "warning" not in out


@pytest.mark.parametrize(
    ("api", "problems"), [(V1, 0), (V2, 1)], ids=["of v1", "of v2"]
)
def test_text_is_judged_by_the_api_of_the_package(api, problems):
    found = read({"metadata": {ANNOTATION: "x" * 1025}}, api)
    assert (len(found.problems), found.warnings) == (problems, ())
