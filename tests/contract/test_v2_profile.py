# SPDX-License-Identifier: Apache-2.0
"""A profile in a cluster's life through the v2 API: what it stood for holds."""

import json

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.sol_refactored.common import exceptions as sol_ex

from tests.contract.v2_operations import (
    EIGHT,
    heal,
    instantiate,
    no_secrets,
    scale,
    terminate,
)

TEXT = "parameters: {cluster: {container_manager: %s, metrics_server: true}}\n"

pytestmark = pytest.mark.usefixtures("quick_hooks")


@pytest.fixture
def write(tacker, tmp_path):
    """Write the profile ``edge`` into one of its two places."""

    def write(engine, of_package=True):
        package = tacker.path.parent / "csar" / "Files" / "profiles"
        directory = package if of_package else tacker.state / "profiles"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "edge.yaml").write_text(TEXT % engine)

    return write


def kept(tacker):
    return tacker.instance["metadata"]["k8s_mgmt"]["profile"]


def written(tacker):
    return json.loads(tacker.site.files["vars.json"])["container_manager"]


@pytest.mark.parametrize("of_package", [True, False])
def test_it_is_used_and_kept_and_holds(tacker, write, of_package):
    write("crio", of_package)
    instantiate(tacker, profile="edge")
    assert written(tacker) == "crio"
    assert kept(tacker) == {
        "name": "edge",
        "parameters": {
            "cluster": {"container_manager": "crio", "metrics_server": True}
        },
    }
    no_secrets(tacker)
    write("docker", of_package)
    scale(tacker, "SCALE_OUT")
    assert EIGHT in tacker.site.members
    heal(tacker)
    assert written(tacker) == "crio"
    assert kept(tacker)["parameters"]["cluster"]["container_manager"] == "crio"
    terminate(tacker)
    assert "k8s_mgmt" not in tacker.instance["metadata"]


def test_an_attribute_that_is_null_is_left_out_for_life(tacker, write):
    write("crio")
    instantiate(tacker, profile="edge", cluster={"metrics_server": None})
    assert "metrics_server" not in kept(tacker)["parameters"]["cluster"]
    heal(tacker)
    variables = json.loads(tacker.site.files["vars.json"])
    assert variables["container_manager"] == "crio"
    assert "metrics_server_enabled" not in variables


def test_a_retry_of_the_instantiation_reads_it_anew(tacker, write):
    write("crio")
    with tacker.world() as site:
        site.faults.add("run cluster")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
        instantiate(tacker, profile="edge")
    write("containerd")
    tacker.retry()
    assert written(tacker) == "containerd"
    assert kept(tacker)["parameters"]["cluster"]["container_manager"] == "containerd"


def test_a_rollback_needs_no_profile(tacker, write):
    write("crio")
    with tacker.world() as site:
        site.faults.add("run cluster")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
        instantiate(tacker, profile="edge")
    write("podman")
    tacker.rollback()
    assert tacker.deleted
    assert tacker.site.owner is None


def test_without_what_is_kept_nothing_changes_but_it_can_end(tacker, write):
    write("crio")
    instantiate(tacker, profile="edge")
    del tacker.instance["metadata"]["k8s_mgmt"]["profile"]
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        scale(tacker, "SCALE_OUT")
    assert "give the metadata back what they were" in caught.value.detail
    terminate(tacker)
    assert tacker.site.owner is None


def test_one_that_is_wrong_is_refused_before_a_vm_exists(tacker, write):
    write("podman")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        instantiate(tacker, profile="edge")
    assert "Files/profiles/edge.yaml of the VNF package" in caught.value.detail
    assert tacker.site.owner is None
