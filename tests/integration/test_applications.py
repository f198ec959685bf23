# SPDX-License-Identifier: Apache-2.0
"""Applications of a cluster: installed with it, changed, broken, gone back, removed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers import kubeapi
from tests.integration.applications import (
    ENTRY,
    NOTES,
    answer,
    is_exposed,
    notes,
    source,
    want,
    workloads,
)
from tests.integration.cluster import eventually
from tests.integration.cluster_checks import check, differences
from tests.integration.conftest import ROOT, Cluster, Guide, Lab
from tests.integration.v2 import LabV2

pytestmark = pytest.mark.lab

IMAGE = "docker.io/library/web:1"


def wiki(**values: Any) -> dict[str, Any]:
    return {
        "name": "wiki",
        "chart": {"path": "Files/charts/web"},
        "values": values,
        "limits": {"rollout": 20},
    }


SETTINGS = ("get", "configmap", "notes", "-n", "notes")


def hold(cluster: Cluster, finalizers: str) -> None:
    """Give the sample's ConfigMap finalizers."""
    patch = f'{{"metadata":{{"finalizers":{finalizers}}}}}'
    options = ("--type=merge", "-p", patch)
    cluster.kubectl("patch", *SETTINGS[1:], *options)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    place = tmp_path_factory.mktemp("applications")
    return Lab(place, source=source(ROOT / "samples", place / "mysite"))


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with lab.instance("platform", cluster={"helm": True}) as made:
        made.parameters["applications"] = [notes()]
        made.instantiate()
        yield made


class TestApplications:
    def test_installed_with_the_cluster(self, cluster):
        assert workloads(cluster, "notes") == NOTES
        assert is_exposed(cluster)
        done = check(cluster, "--json")
        assert "application notes" in {
            r["name"] for r in json.loads(done.stdout)["rows"]
        }
        assert differences(done) == {}
        assert eventually(lambda: answer(cluster)).startswith("notes-api-")

    def test_a_modification_reconfigures_and_adds(self, cluster, guide: Guide):
        changed = notes()
        changed["config"][0]["data"].append({"key": "debug", "value": "yes"})
        entries = {ENTRY: json.dumps([changed, wiki(image=IMAGE)])}
        guide.writes("applications.json", {"metadata": entries})
        with cluster.by_command():
            guide.does("applications", VNF_INSTANCE_ID=cluster.id)
        assert workloads(cluster, "wiki") == {"deployment.apps/web-wiki"}
        shown = cluster.kubectl(
            "get", "configmap", "notes", "-n", "notes", "-o", "json"
        )
        assert json.loads(shown)["data"]["debug"] == "yes"
        told = guide.does("applications seen", **{"my-cluster": cluster.name})
        assert "No differences." in told

    def test_a_broken_change_goes_back(self, cluster):
        text = want(
            cluster, notes(), wiki(image="images.invalid/web:2"), expect="FAILED_TEMP"
        )
        assert "ImagePullBackOff" in text
        assert "What it was before is in force again." in text
        cluster.handle("fail", "FAILED")

    def test_a_label_that_no_node_has_is_refused_before_anything_changes(self, cluster):
        label = {"label": "openstack-compute-node=enabled", "nodes": 1}
        text = want(cluster, notes(requires=[label]), expect="FAILED_TEMP")
        assert "application notes: it requires 1 nodes with the label" in text
        cluster.handle("fail", "FAILED")
        assert workloads(cluster, "notes") == NOTES

    def test_they_come_back_with_a_cluster_that_is_built_anew(self, cluster):
        want(cluster, notes())
        cluster.heal()
        assert workloads(cluster, "notes") == NOTES
        assert is_exposed(cluster)

    def test_asked_for_again_after_a_removal_that_was_cut_off(self, lab, cluster):
        hold(cluster, '["example.org/slow"]')
        cluster.begin_modification({ENTRY: "[]"})
        deletion = "jsonpath={.metadata.deletionTimestamp}"
        eventually(lambda: cluster.kubectl(*SETTINGS, "-o", deletion))
        lab.kill_conductor()
        # Tacker's v1 API cannot cancel a modification, and accepts the next one.
        hold(cluster, "null")
        want(cluster, notes())
        assert workloads(cluster, "notes") == NOTES
        assert is_exposed(cluster)
        assert "configmap/notes" in cluster.kubectl(*SETTINGS, "-o", "name")

    def test_a_custom_resource_of_others_keeps_the_namespace(self, cluster):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(kubeapi.definition()))
        theirs = json.dumps(kubeapi.custom("theirs", "notes"))
        eventually(lambda: "volumesnapshots" in cluster.kubectl("api-resources"))
        cluster.kubectl("apply", "-f", "-", stdin=theirs)
        want(cluster)
        assert workloads(cluster, "notes") == set()
        found = ("get", "volumesnapshots", "-n", "notes", "-o", "name")
        assert "/theirs" in cluster.kubectl(*found)
        cluster.kubectl("delete", "volumesnapshots", "theirs", "-n", "notes")
        want(cluster, notes())

    def test_removal_leaves_nothing(self, cluster):
        want(cluster)
        spaces = cluster.kubectl("get", "namespaces", "-o", "name")
        assert "namespace/notes" not in spaces.split()
        assert "namespace/wiki" not in spaces.split()
        assert not is_exposed(cluster)
        assert check(cluster).returncode == 0


class TestV2:
    @pytest.fixture(scope="class")
    def cluster(self, tmp_path_factory) -> Iterator[Cluster]:
        place = tmp_path_factory.mktemp("applications-v2")
        samples = source(ROOT / "samples" / "v2", place / "mysite")
        with LabV2(place, source=samples).instance("platform") as made:
            made.instantiate()
            yield made

    def test_added_broken_rolled_back_and_removed(self, cluster):
        cluster.modify({ENTRY: [notes()]})
        assert workloads(cluster, "notes") == NOTES
        limits = {"bootstrap": 600, "rollout": 600, "health": 5}
        broken = notes(probe={"service": "notes-api", "port": 81}, limits=limits)
        broken["config"][0]["data"].append({"key": "debug", "value": "yes"})
        text = cluster.modify({ENTRY: [broken]}, expect="FAILED_TEMP")
        assert "failed in health" in text
        cluster.handle("rollback", "ROLLED_BACK")
        assert workloads(cluster, "notes") == NOTES
        cluster.modify({ENTRY: []})
        spaces = cluster.kubectl("get", "namespaces", "-o", "name")
        assert "namespace/notes" not in spaces.split()
