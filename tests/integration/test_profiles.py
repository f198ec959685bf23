# SPDX-License-Identifier: Apache-2.0
"""Platform profiles through Tacker: used at instantiation, and the same for life."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import settings
from tests.integration.conftest import ROOT, Cluster, Lab
from tests.integration.v2 import ClusterV2, LabV2

#: The entry of the metadata as Tacker's v1 API shows it.
SHOWN = "k8sMgmtProfile"
WEBHOOK = "https://10.99.0.1:8443/webhook"
CONTROL_PLANE = "openstack-control-plane"
COMPUTE_NODE = "openstack-compute-node"
#: Of the package.
MEDIA = """\
parameters:
  cluster:
    network: {plugin: calico, encapsulation: ipip}
"""
#: Of the operator.
EDGE = """\
parameters:
  worker_node:
    node_labels: [example.org/kind=edge, example.org/tier=%s]
  cluster: {metrics_server: true}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """With a package that has a profile."""
    source = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "samples", source, dirs_exist_ok=True)
    profiles = source / "vnfd" / "simple" / "Files" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "media.yaml").write_text(MEDIA)
    return Lab(tmp_path_factory.mktemp("lab"), source=source)


@pytest.fixture(scope="module")
def platform(lab: Lab) -> Iterator[Cluster]:
    webhook = {"authentication": {"webhook": {"url": WEBHOOK}}}
    with lab.instance("platform", cluster=webhook) as made:
        made.parameters["profile"] = "starlingx"
        made.instantiate()
        yield made


@pytest.fixture(scope="module")
def edge() -> Iterator[Path]:
    """A profile in the driver's state path."""
    path = settings.from_environment().journals / "profiles" / "edge.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EDGE % "first")
    yield path
    path.unlink()


def labels(cluster: Cluster, role: str) -> list[dict[str, str]]:
    """The labels of each node of a role."""
    found = [node["metadata"] for node in cluster.nodes()]
    return [one["labels"] for one in found if one["name"].startswith(role)]


def values(lab: Lab, cluster: Cluster) -> dict[str, Any]:
    """The variables of the playbook runs."""
    made: dict[str, Any] = json.loads(lab.ansible(f"cat {cluster.directory}/vars.json"))
    return made


class TestStarlingX:
    def test_nodes_have_the_labels_of_their_roles(self, platform):
        (plane,) = labels(platform, "control-plane")
        assert plane[CONTROL_PLANE] == "enabled"
        for worker in labels(platform, "worker"):
            assert worker[COMPUTE_NODE] == "enabled"
            assert CONTROL_PLANE not in worker

    def test_kubespray_gets_the_platform(self, lab, platform):
        built = values(lab, platform)
        assert {
            "container_manager": "containerd",
            "kube_network_plugin": "calico",
            "helm_enabled": True,
            "local_path_provisioner_enabled": True,
            "registry_enabled": True,
            "registry_storage_class": "local-path",
            "registry_service_cluster_ip": "10.233.0.10",
            "authorization_modes": ["Node", "RBAC", "Webhook"],
            "kube_webhook_token_auth_url": WEBHOOK,
            "kube_webhook_authorization_url": WEBHOOK,
        }.items() <= built.items()
        (mirror,) = built["containerd_registries_mirrors"]
        assert mirror["prefix"] == "registry.local:5000"
        assert mirror["mirrors"][0]["host"] == "http://10.233.0.10:5000"

    def test_what_it_stands_for_is_kept_where_users_see_it(self, platform):
        kept = json.loads(platform.show()["metadata"][SHOWN])
        assert kept["name"] == "starlingx"
        assert kept["parameters"]["cluster"]["helm"] is True

    def test_a_worker_that_is_added_is_one_of_the_platform(self, platform):
        platform.scale("OUT")
        workers = labels(platform, "worker")
        assert len(workers) == 3
        assert {one[COMPUTE_NODE] for one in workers} == {"enabled"}

    def test_it_cannot_be_exchanged(self, platform):
        error = platform.heal(expect="FAILED_TEMP", profile="media")
        assert "profile: cannot be changed after instantiation" in error
        platform.handle("fail", "FAILED")

    def test_terminate_leaves_nothing(self, platform):
        platform.terminate()
        platform.assert_nothing_left()
        assert SHOWN not in (platform.show().get("metadata") or {})


class TestRefused:
    """Before a VM exists, with all reasons."""

    def test_what_contradicts_the_profile_of_the_package(self, lab):
        cluster = {"network": {"plugin": "flannel"}}
        with lab.instance("contradiction", cluster=cluster) as made:
            made.parameters["profile"] = "media"
            error = made.instantiate("FAILED_TEMP")
            assert made.servers() == {}
        assert "cluster.network.encapsulation (profile media): with flannel" in error

    def test_what_the_profile_needs_and_a_file_that_is_wrong(self, lab, edge):
        edge.write_text("parameters: {ansible: {}, cluster: {helm: 1}}\n")
        with lab.instance("wrong") as made:
            made.parameters["profile"] = "edge"
            error = made.instantiate("FAILED_TEMP")
            made.handle("rollback", "ROLLED_BACK")
            made.parameters["profile"] = "starlingx"
            other = made.instantiate("FAILED_TEMP")
            assert made.servers() == {}
        assert f"{edge}: parameters.ansible: is of one cluster" in error
        assert f"{edge}: parameters.cluster.helm: must be true or false" in error
        assert "webhook.url (profile starlingx): is missing" in other


class TestForLife:
    """In the v2 API, with the operator's profile."""

    @pytest.fixture(scope="class")
    def lab_v2(self, tmp_path_factory) -> LabV2:
        return LabV2(tmp_path_factory.mktemp("lab"))

    def test_what_it_stood_for_holds_when_the_file_changes(self, lab_v2, edge):
        edge.write_text(EDGE % "first")
        with lab_v2.instance("edge") as made:
            assert isinstance(made, ClusterV2)
            lab_v2.keep_secrets_in_barbican(made.parameters)
            made.parameters["profile"] = "edge"
            made.instantiate()
            kept = made.metadata["k8s_mgmt"]
            assert kept["parameters"]["profile"] == "edge"
            assert kept["profile"]["parameters"]["cluster"] == {"metrics_server": True}
            edge.write_text(EDGE % "second")
            made.heal()
            workers = labels(made, "worker")
            assert {one["example.org/tier"] for one in workers} == {"first"}
            assert values(lab_v2, made)["metrics_server_enabled"] is True
            edge.write_text("parameters: {ansible: {}}\n")
            made.scale("OUT")
            workers = labels(made, "worker")
            assert len(workers) == 3
            assert {one["example.org/tier"] for one in workers} == {"first"}
            made.terminate()
            made.assert_nothing_left()
