# SPDX-License-Identifier: Apache-2.0
"""``cluster plan`` with Tacker's own configuration, database and objects.

Nothing beyond Tacker answers: what is held is that the request reaches the hooks, that
the failure is the plan's, and that nothing is written.
"""

import json

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tests.contract.tacker_configuration import (
    configured,
    database,
    python,
    rows_of,
)

SCALE = {"type": "SCALE_IN", "aspectId": "worker_instance", "numberOfSteps": 1}
VNFC = "2c6e1b7a-7f0b-4a55-9a0f-64a27e4f3c02"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("tacker")


@pytest.fixture(scope="module")
def config_file(place):
    return configured(place)


@pytest.fixture(scope="module")
def known(place, config_file):
    """Ids of the VNF instances, by what they are."""
    return database(place, config_file, port=1)


@pytest.fixture
def plan(config_file, known, place, tmp_path):
    def run(which, body):
        path = tmp_path / "request.json"
        path.write_text(json.dumps(body))
        words = ("cluster", "plan", known.get(which, which), str(path), "--json")
        before = rows_of(place), set(place.rglob("*"))
        done = python(
            *("-m", "tacker_k8s_mgmt.tools.cli", *words, "--config-file", config_file)
        )
        found = rows_of(place), set(place.rglob("*"))
        assert found == before, {*found[1]} - {*before[1]}
        assert "secret" not in done.stdout + done.stderr
        return done

    return run


def refusal(done):
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)["refusal"]


def test_the_v1_heal_of_a_cluster_that_does_not_answer(plan):
    found = refusal(plan("idle", {"vnfcInstanceId": [VNFC]}))
    assert found["step"] == "check that the heal changes no other VM"


def test_a_v1_modification(plan):
    found = refusal(plan("idle", {"metadata": {"k8s_nodes:worker:label:a": "b"}}))
    assert found["step"] == "check the metadata"
    assert "No SSH connection to ansible@127.0.0.1:1" in found["text"]


def test_a_v1_modification_that_is_not_for_the_cluster(plan):
    done = plan("idle", {"metadata": {"other": "b"}})
    assert (done.returncode, json.loads(done.stdout)["steps"]) == (0, [])


def test_a_v1_scale_in_of_which_tacker_does_not_say_who_leaves(plan):
    found = refusal(plan("idle", SCALE))
    assert "Which members Tacker would remove cannot be told" in found["text"]


def test_a_v2_modification(plan):
    found = refusal(plan("v2 idle", {"metadata": {"k8s_nodes:worker:label:a": "b"}}))
    assert found["step"] == "check the metadata"
    assert "No SSH connection to ansible@127.0.0.1:1" in found["text"]


def test_a_v2_package_that_tacker_has_not(plan):
    done = plan("v2 idle", SCALE)
    assert (done.returncode, done.stdout) == (2, "")
    assert "What Tacker would do first cannot be told" in done.stderr


def test_the_change_to_a_package_that_tacker_has_not(config_file, known):
    for which, said in (
        ("v2 idle", "What Tacker would do first cannot be told: VnfPackage of vnfdId"),
        ("idle", "Tacker's v1 API has no change of the package"),
    ):
        words = ("cluster", "plan", known[which], "--package", VNFC)
        more = ("--kubernetes-version", "1.35.4", "--config-file", config_file)
        done = python("-m", "tacker_k8s_mgmt.tools.cli", *words, *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


@pytest.mark.parametrize("which", ["cluster", "v2 cluster"])
def test_an_operation_that_is_open(plan, which):
    found = refusal(plan(which, SCALE))
    assert "Tacker has not ended an operation on it: HEAL " in found["text"]


@pytest.mark.parametrize(
    ("which", "said"),
    [("dormant", "is no cluster"), ("v2 terminated", "is not instantiated")],
)
def test_what_is_no_cluster(plan, which, said):
    done = plan(which, SCALE)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
