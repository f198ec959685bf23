# SPDX-License-Identifier: Apache-2.0
"""The profile of a request on the command line: what it gives, and from where."""

import json

import pytest

from tacker_k8s_mgmt.tools.cli import main
from tests.unit.tools.cli.bodies import installation, simple

EDGE = """\
parameters:
  cluster: {container_manager: crio, helm: true}
  worker_node: {node_labels: [kind=edge, role=compute]}
  kubespray_vars: {event_ttl_duration: 1h}
"""
REFERENCE = {"file": "registry"}


@pytest.fixture
def run(tmp_path, capsys):
    """Return a function: exit code and output of a command for a request."""

    def run(command, body, *options):
        path = tmp_path / "request.json"
        path.write_text(json.dumps(body))
        code = main([*command.split(), str(path), *options])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "edge.yaml").write_text(EDGE)
    return str(tmp_path)


def named(profile="edge"):
    body = simple()
    installation(body)["profile"] = profile
    installation(body)["worker_node"]["node_labels"] = ["kind=video"]
    installation(body)["cluster"] = {"container_manager": "containerd"}
    return body


def test_a_check_says_where_each_value_is_from(run, directory):
    code, out = run("params check", named(), "--profiles", directory)
    assert code == 0
    assert f"\nprofile edge: {directory}/edge.yaml\n" in out
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert lines["cluster.helm"].endswith("true  (profile edge)")
    assert lines["cluster.container_manager"].endswith(
        "containerd  (in place of crio of the profile edge)"
    )
    assert lines["worker_node.node_labels"].endswith(
        '["kind=video", "role=compute"]  (with values of the profile edge)'
    )
    assert lines["kubespray_vars"].endswith("(with values of the profile edge)")
    assert lines["cluster.audit_log"].endswith("false  (default)")


def test_programs_get_it_too(run, directory):
    code, out = run("params check", named(), "--profiles", directory, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["profile"] == {
        "name": "edge",
        "source": f"{directory}/edge.yaml",
        "given": {
            "cluster.helm": True,
            "kubespray_vars.event_ttl_duration": "1h",
            "worker_node.node_labels.1": "role=compute",
        },
        "replaced": {
            "cluster.container_manager": "crio",
            "worker_node.node_labels.0": "kind=edge",
        },
    }
    assert json.loads(run("params check", simple(), "--json")[1])["profile"] is None


def test_a_preview_shows_what_it_stands_for_before_the_files(run, directory):
    code, out = run("inventory preview", named(), "--profiles", directory)
    assert code == 0
    shown, _, files = out.partition("==> hosts.yaml")
    assert shown == (
        f"profile: edge, {directory}/edge.yaml\n"
        "  cluster.helm: true\n"
        "  kubespray_vars.event_ttl_duration: 1h\n"
        "  worker_node.node_labels.1: role=compute\n"
        "  cluster.container_manager: not crio, which the request replaces\n"
        "  worker_node.node_labels.0: not kind=edge, which the request replaces\n"
    )
    assert '"helm_enabled": true' in files
    assert "role: compute" in files
    assert '"container_manager": "containerd"' in files


def test_references_are_shown_as_they_are(run, tmp_path):
    (tmp_path / "edge.yaml").write_text(
        "parameters: {cluster: {registries: [{prefix: r, username: u, "
        "password: {file: registry}}]}}\n"
    )
    options = ("--profiles", str(tmp_path))
    _, out = run("inventory preview", named(), *options)
    assert '"password": {"file": "registry"}' in out
    found = json.loads(run("params check", named(), *options, "--json")[1])
    (registry,) = found["profile"]["given"]["cluster.registries"]
    assert registry["password"] == REFERENCE


@pytest.mark.parametrize("command", ["params check", "inventory preview"])
def test_the_drivers_own_needs_no_directory(run, command):
    body = named("starlingx")
    code, out = run(command, body)
    assert code == 1
    assert "cluster.authentication.webhook.url (profile starlingx): is missing" in out
    installation(body)["cluster"]["authentication"] = {"webhook": None}
    code, out = run(command, body)
    assert code == 0
    assert "of tacker-k8s-mgmt" in out


def test_others_are_asked_for(run):
    code, out = run("params check", named())
    assert code == 1
    assert (
        "problem: profile: there is no profile edge; the driver has starlingx; "
        "--profiles DIR names a directory with others"
    ) in out


def test_a_directory_without_it_and_one_that_cannot_be_read(run, tmp_path):
    options = ("--profiles", str(tmp_path))
    code, out = run("params check", named(), *options)
    assert code == 1
    assert f"profile: there is no {tmp_path}/edge.yaml, and the driver has" in out
    (tmp_path / "edge.yaml").mkdir()
    code, out = run("params check", named(), *options)
    assert code == 1
    assert f"profile: {tmp_path}/edge.yaml: cannot be read: Is a directory" in out


def test_a_later_request_is_checked_on_top_of_it(run, directory, tmp_path):
    (tmp_path / "stored.json").write_text(json.dumps(named()))
    later = {
        "type": "SCALE_OUT",
        "aspectId": "worker_instance",
        "additionalParams": {
            "k8s_cluster_installation_param": {"cluster": {"helm": False}}
        },
    }
    code, out = run(
        *("params check", later, "--profiles", directory),
        *("--stored", str(tmp_path / "stored.json")),
    )
    assert code == 1
    assert "problem: cluster.helm: cannot be changed after instantiation" in out
