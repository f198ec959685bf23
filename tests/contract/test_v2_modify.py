# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes through the v2 API: the conductor's own code runs our script."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.sol_refactored.common import exceptions as sol_ex

from tests.contract import v2_world
from tests.contract.v2_operations import (
    EIGHT,
    FIFTY_FIVE,
    FIVE,
    heal,
    instantiate,
    modify,
    referring,
    scale,
)
from tests.helpers.requests import VNF, additional_params

pytestmark = pytest.mark.usefixtures("quick_hooks")

DISK = {"k8s_nodes:worker:label:disk": "ssd"}
OUT = "k8s_nodes:vnfc:workerNode-server-5:maintenance"
NEW_OUT = "k8s_nodes:vnfc:workerNode-server-5-new:maintenance"


@pytest.fixture(name="referring")
def cluster_with_references(tacker, tmp_path):
    """A cluster whose requests only name their secrets."""
    instantiate(tacker, **referring(tmp_path))
    return tacker


def labels(tacker, name):
    marks = tacker.site.marks.get(name)
    return dict(marks.labels) if marks else {}


def routes(tacker):
    return {name for name, _ in tacker.site.routes}


def test_labels_are_set_kept_by_new_nodes_and_removed(referring):
    modify(referring, **DISK)
    assert labels(referring, FIVE) == {"disk": "ssd"}
    assert referring.instance["metadata"].items() >= DISK.items()
    scale(referring, "SCALE_OUT", params={})
    assert labels(referring, EIGHT) == {"disk": "ssd"}
    heal(referring, params={})
    assert labels(referring, FIFTY_FIVE) == {"disk": "ssd"}
    modify(referring, **dict.fromkeys(DISK))
    assert labels(referring, FIVE) == {}
    assert list(referring.instance["metadata"]) == ["k8s_mgmt"]


def test_maintenance_follows_its_vnfc_which_has_another_id_after_a_heal(referring):
    modify(referring, **{OUT: "true"})
    assert routes(referring) == {FIFTY_FIVE}
    heal(referring, "workerNode-server-5", params={})
    metadata = referring.instance["metadata"]
    assert (OUT in metadata, metadata[NEW_OUT]) == (False, "true")
    assert routes(referring) == {FIFTY_FIVE}
    assert referring.site.cordoned == {FIVE}
    modify(referring, **{NEW_OUT: None})
    assert (routes(referring), referring.site.cordoned) == ({FIVE, FIFTY_FIVE}, set())


def test_what_is_wrong_is_refused_and_nothing_is_stored(referring):
    before = referring.instance
    wrong = {"k8s_nodes:worker:label:k8s.io/a": "b", "k8s_nodes:vnfc:x:label:a": "b"}
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        modify(referring, **wrong, **DISK)
    text = caught.value.detail
    assert "The metadata of the VNF instance have 2 problem(s)" in text
    assert "or `fail` to give the operation up" in text
    assert referring.instance == before
    assert labels(referring, FIVE) == {}
    changes = list(referring.site.changes)
    referring.rollback()
    assert referring.site.changes == changes


def test_a_drain_that_fails_is_retried_or_rolled_back(referring):
    with referring.world() as site:
        site.budget = "PodDisruptionBudget a/b"
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        modify(referring, **{OUT: "true"}, **DISK)
    assert "PodDisruptionBudget a/b" in caught.value.detail
    assert "`rollback` gives the cluster what it had before" in caught.value.detail
    assert (labels(referring, FIVE), routes(referring)) == (
        {"disk": "ssd"},
        {FIVE, FIFTY_FIVE},
    )
    referring.rollback()
    assert labels(referring, FIVE) == {}
    assert OUT not in referring.instance["metadata"]
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
        modify(referring, **{OUT: "true"}, **DISK)
    with referring.world() as site:
        site.budget = ""
    referring.retry()
    assert routes(referring) == {FIFTY_FIVE}
    assert labels(referring, FIVE) == {"disk": "ssd"}


def test_a_rollback_takes_what_was_in_force_as_it_is(referring):
    """An earlier release may have stored what this one refuses."""
    wrong = "k8s_nodes:worker:label:-"
    referring.instance["metadata"][wrong] = "x"
    with referring.world() as site:
        site.faults.add("cluster.mark")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed, match=r"fault in"):
        modify(referring, **{wrong: None}, **DISK)
    referring.rollback()
    assert labels(referring, FIVE) == {}
    assert referring.instance["metadata"][wrong] == "x"


def test_other_metadata_are_none_of_ours(referring):
    calls = len(referring.site.calls)
    modify(referring, owner={"team": ["a", 1]})
    assert referring.instance["metadata"]["owner"] == {"team": ["a", 1]}
    assert len(referring.site.calls) == calls


def test_tenants_are_made_kept_by_a_heal_and_removed(referring):
    modify(referring, k8s_tenants=[{"name": "blue", "quota": {"pods": 5}}])
    namespace = ("Namespace", "", "blue")
    assert namespace in referring.site.objects
    # The request of a CNF has the whole login.
    assert referring.instance["metadata"]["k8s_tenants"][0]["name"] == "blue"
    heal(referring, params={})
    assert namespace in referring.site.objects
    modify(referring, k8s_tenants=[])
    assert referring.site.objects == {}


def test_tenants_of_a_failed_request_go_with_its_rollback(referring):
    with referring.world() as site:
        site.faults.add("manifests.delete")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed, match="fault in"):
        modify(referring, k8s_tenants=[{"name": "blue"}])
    assert ("Namespace", "", "blue") in referring.site.objects
    referring.rollback()
    assert referring.site.objects == {}
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        modify(referring, k8s_tenants=[{"name": "Red"}])
    assert "k8s_tenants.0.name: must be the name" in caught.value.detail
    assert referring.site.objects == {}


class TestLiteralSecrets:
    """The request of a modification has no place for them."""

    def test_without_the_database_the_error_says_what_to_do(self, tacker):
        instantiate(tacker)
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            modify(tacker, **DISK)
        text = caught.value.detail
        assert "could not be read" in text
        assert "Let the conductor" in text
        assert "references in place of literal secrets" in text

    def test_they_are_in_the_requests_that_tackers_database_has(
        self, tacker, tmp_path, v2_environment
    ):
        instantiate(tacker)
        database = f"\n[database]\nconnection = sqlite:///{tmp_path}/tacker.sqlite\n"
        v2_environment.write_text(v2_environment.read_text() + database)
        given = tmp_path / "params.json"
        given.write_text(json.dumps(additional_params()))
        made = subprocess.run(
            [
                *(sys.executable, "-m", "tests.contract.tacker_database"),
                *(str(v2_environment), str(given)),
            ],
            cwd=v2_world.ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env=dict(os.environ),
        )
        assert made.returncode == 0, made.stderr
        known = json.loads(made.stdout.splitlines()[-1])["v2 cluster"]
        with sqlite3.connect(tmp_path / "tacker.sqlite") as opened:
            for table, column in (
                ("VnfInstanceV2", "id"),
                ("VnfLcmOpOccV2", "vnfInstanceId"),
            ):
                opened.execute(
                    f"update {table} set {column} = ? where {column} = ?",  # noqa: S608
                    (VNF, known),
                )
        modify(tacker, **DISK)
        assert labels(tacker, FIVE) == {"disk": "ssd"}
