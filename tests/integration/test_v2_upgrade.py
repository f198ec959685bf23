# SPDX-License-Identifier: Apache-2.0
"""Kubernetes upgrades through Tacker's v2 API: a change of the VNF package."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from lab import client
from tests.integration import verbs
from tests.integration.conftest import PARAMETERS, eventually
from tests.integration.interruptions import attached, plays_on, wait_until_attached
from tests.integration.v2 import REQUESTS, ClusterV2, LabV2
from tests.integration.workloads import (
    WORKLOADS,
    budget,
    consistent,
    machine_ids,
    names,
    running,
)

pytestmark = pytest.mark.lab

OLD, NEW, TOO_NEW = "1.33.7", "1.34.3", "1.35.4"
#: Until the file is there, the upgrade takes its time where it is told to.
GO = f"/tmp/go-{uuid.uuid4().hex}"
KEPT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {key: value}\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LabV2:
    return LabV2(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> LabV2:
    """The same with another package."""
    return LabV2(tmp_path_factory.mktemp("newer"))


def instantiated(lab: LabV2, cluster: Any) -> ClusterV2:
    """A cluster of the old version with something in it."""
    assert isinstance(cluster, ClusterV2)
    # The proxy's password would have to be given with each request.
    del cluster.parameters["proxy"]
    lab.keep_secrets_in_barbican(cluster.parameters)
    cluster.instantiate()
    cluster.kubectl("apply", "-f", "-", stdin=KEPT)
    cluster.kubectl("apply", "-f", "-", stdin=WORKLOADS)
    running(cluster)
    return cluster


@pytest.fixture(scope="module")
def cluster(lab: LabV2) -> Iterator[ClusterV2]:
    with lab.instance("upgraded", cluster={"kubernetes_version": OLD}) as made:
        yield instantiated(lab, made)


def change(made: ClusterV2, vnfd_id: str, expect: str, **more: Any) -> str:
    """Change the package; the error text of the operation.

    :param more: structures of our parameters, or ``vdu_params``.
    """
    body = json.loads((REQUESTS / "change-vnfpkg.json").read_text())
    body["vnfdId"] = vnfd_id
    given = body["additionalParams"]
    given["vdu_params"] = more.pop("vdu_params", [])
    given[PARAMETERS] = more
    return made.perform("change_vnfpkg", body, expect)


def upgrade(
    made: ClusterV2, vnfd_id: str, expect: str = "COMPLETED", **more: Any
) -> str:
    version = {"kubernetes_version": more.pop("version", NEW)}
    return change(made, vnfd_id, expect, cluster=version, **more)


def kubelets(cluster: ClusterV2) -> dict[str, str]:
    """The version of each node."""
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"]
        for node in cluster.nodes()
    }


def api_servers(cluster: ClusterV2) -> dict[str, str]:
    """The version of each control plane's own API server, by its VM."""
    planes = [one for one, vdu in cluster.servers().items() if vdu == "masterNode"]
    ask = "kubectl --kubeconfig /etc/kubernetes/admin.conf --server {} get --raw "
    told = {}
    for host in client.hosts():
        if host.id in planes:
            inner = next(a for a in host.addresses if a.startswith("10.10."))
            line = ask.format(f"https://{inner}:6443") + "/version"
            answer = json.loads(client.on_host(host.id, "sh", "-c", line))
            told[inner] = answer["gitVersion"]
    return told


def closed(cluster: ClusterV2) -> list[str]:
    """Names of the nodes that take no pods."""
    return [
        node["metadata"]["name"]
        for node in cluster.nodes()
        if node["spec"].get("unschedulable")
    ]


def fault(host: str) -> dict[str, Any]:
    """Variables with which the upgrade fails once on a host, before its kubelet."""
    wish = {"task": "Install kubelet", "host": host, "message": "no room", "times": 1}
    return {"kubespray_vars": {"lab_fault": wish}}


def assert_survived(cluster: ClusterV2, before: dict[str, str]) -> None:
    """What the cluster held is there, on the machines that there were."""
    assert machine_ids(cluster) == before
    kept = json.loads(cluster.kubectl("get", "configmap", "kept", "-o", "json"))
    assert kept["data"] == {"key": "value"}
    running(cluster)


class TestUpgrade:
    def test_two_minor_releases_at_once_are_refused(self, cluster, newer):
        error = upgrade(cluster, newer.vnfd_id, "FAILED_TEMP", version=TOO_NEW)
        assert "change_current_package_start failed" in error
        assert f"from {OLD} to {TOO_NEW} is more than one minor release" in error
        assert "No node was touched" in error
        cluster.handle("rollback", "ROLLED_BACK")
        assert set(kubelets(cluster).values()) == {f"v{OLD}"}
        assert cluster.show()["vnfdId"] != newer.vnfd_id

    def test_another_image_is_refused_before_a_vm_is_touched(self, cluster, newer):
        before = machine_ids(cluster)
        vdus = [{"vdu_id": "workerNode"}]
        error = upgrade(cluster, newer.vnfd_id, "FAILED_TEMP", vdu_params=vdus)
        assert "vdu_params must be []" in error
        cluster.handle("fail", "FAILED")
        assert machine_ids(cluster) == before

    def test_a_budget_stops_it_at_the_first_worker(self, cluster, newer):
        before = machine_ids(cluster)
        first, second = sorted(names(cluster))
        budget(cluster, at_least=4)
        error = upgrade(
            *(cluster, newer.vnfd_id, "FAILED_TEMP"),
            drain={"timeout": 3},
            **fault(second),
        )
        assert "web-budget" in error
        assert f"Kubernetes by now: {NEW}: control-plane-" in error
        versions = kubelets(cluster)
        assert versions.pop(first) == versions.pop(second) == f"v{OLD}"
        assert set(versions.values()) == {f"v{NEW}"}
        assert set(api_servers(cluster).values()) == {f"v{NEW}"}
        assert closed(cluster) == []
        consistent(cluster, 2)
        assert_survived(cluster, before)

    def test_it_fails_at_the_second_worker_and_cannot_be_rolled_back(self, cluster):
        before = machine_ids(cluster)
        first, second = sorted(names(cluster))
        cluster.kubectl("delete", "pdb", "web-budget")
        error = cluster.handle("retry", "FAILED_TEMP")
        assert f"{second}: kubeadm : Install kubelet: no room" in error
        assert "batch 2/2 of workers" in error
        assert kubelets(cluster)[first] == f"v{NEW}"
        assert kubelets(cluster)[second] == f"v{OLD}"
        assert closed(cluster) == []
        consistent(cluster, 2)
        error = cluster.handle("rollback", "FAILED_TEMP")
        assert "Kubernetes cannot go back" in error
        assert_survived(cluster, before)

    def test_retry_takes_up_what_is_left(self, cluster, newer):
        before = machine_ids(cluster)
        runs = len(cluster.runs())
        cluster.handle("retry", "COMPLETED")
        assert [one.split("-", 1)[1] for one in cluster.runs()[runs:]] != []
        assert set(kubelets(cluster).values()) == {f"v{NEW}"}
        assert closed(cluster) == []
        consistent(cluster, 2)
        assert_survived(cluster, before)
        assert cluster.show()["vnfdId"] == newer.vnfd_id
        kept = cluster.metadata["k8s_mgmt"]["parameters"]
        assert kept["cluster"]["kubernetes_version"] == NEW

    def test_the_same_again_changes_nothing(self, cluster, newer, guide):
        runs = cluster.runs()
        body = json.loads((REQUESTS / "upgrade.json").read_text())
        body["vnfdId"] = newer.vnfd_id
        body["additionalParams"][PARAMETERS]["cluster"]["kubernetes_version"] = NEW
        guide.writes("upgrade.json", body)
        with cluster.by_command():
            guide.does("v2 upgrade", api="v2", VNF_INSTANCE_ID=cluster.id)
        package = {"PACKAGE_ID": newer.vnfd_id, TOO_NEW: NEW}
        verbs.does(guide, "verb upgrade", cluster, values=package)
        assert cluster.runs() == runs

    def test_later_workers_have_the_new_version(self, cluster, guide):
        with cluster.by_command():
            guide.does("scale-out", api="v2", VNF_INSTANCE_ID=cluster.id)
        consistent(cluster, 3)
        assert set(kubelets(cluster).values()) == {f"v{NEW}"}

    def test_a_change_of_the_package_alone_asks_for_no_password(
        self, cluster, lab, guide
    ):
        body = json.loads((REQUESTS / "change-vnfpkg.json").read_text())
        body["vnfdId"] = lab.vnfd_id
        assert PARAMETERS not in body["additionalParams"]
        guide.writes("change-vnfpkg.json", body)
        with cluster.by_command():
            guide.does("v2 other package", api="v2", VNF_INSTANCE_ID=cluster.id)
        assert cluster.show()["vnfdId"] == lab.vnfd_id


@pytest.fixture(scope="module")
def available(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterV2]:
    ha = LabV2(tmp_path_factory.mktemp("ha"), "ha")
    with ha.instance("ha-upgraded", cluster={"kubernetes_version": OLD}) as made:
        yield instantiated(ha, made)


class TestHighlyAvailable:
    def test_control_planes_one_by_one_with_a_failure_and_a_killed_conductor_between(
        self, lab, available
    ):
        before = machine_ids(available)
        planes = sorted(name for name in before if name.startswith("control-plane-"))
        variables = fault(planes[1])["kubespray_vars"]
        hang = {"task": "Install kubelet", "host": planes[2], "until": GO}
        variables["lab_hang"] = hang
        error = upgrade(
            available,
            available.show()["vnfdId"],
            "FAILED_TEMP",
            kubespray_vars=variables,
        )
        assert f"{planes[1]}: kubeadm : Install kubelet: no room" in error
        assert sorted(api_servers(available).values()) == versions(2, 1)
        assert closed(available) == []
        assert_survived(available, before)
        runs = available.runs()
        available.begin("retry")
        eventually(lambda: planes_begun(lab, available, runs) == 3)
        assert sorted(api_servers(available).values()) == versions(1, 2)
        run = available.runs()[-1]
        lab.kill_conductor()
        available.wait("FAILED_TEMP")
        assert plays_on(lab, available)
        times = attached(lab, run)
        available.begin("retry")
        wait_until_attached(lab, run, times + 1)
        lab.ansible(f"touch {GO}")
        available.wait("COMPLETED")
        assert set(kubelets(available).values()) == {f"v{NEW}"}
        assert sorted(api_servers(available).values()) == versions(0, 3)
        assert closed(available) == []
        assert available.api("/readyz") == "ok"
        assert_survived(available, before)

    def test_a_control_plane_that_is_healed_then_has_the_new_version(self, available):
        before = machine_ids(available)
        name = min(name for name in before if name.startswith("control-plane-"))
        address = name.removeprefix("control-plane-").replace("-", ".")
        server = next(h.id for h in available.hosts() if address in h.addresses)
        available.heal(server)
        after = machine_ids(available)
        assert after.pop(name) != before.pop(name)
        assert after == before
        assert sorted(api_servers(available).values()) == versions(0, 3)
        assert all(available.ready_nodes().values())
        available.kubectl("get", "configmap", "kept")


def planes_begun(lab: LabV2, cluster: ClusterV2, before: list[str]) -> int:
    """How many nodes the upgrade has come to that no earlier run did."""
    run = cluster.runs()[-1]
    if run in before or "-upgrade" not in run:
        return 0
    events = lab.ansible(f"cat {cluster.directory}/runs/{run}/events.jsonl; true")
    return events.count('"name": "kubeadm : Install kubelet", "event": "task"')


def versions(old: int, new: int) -> list[str]:
    """So many of each version."""
    return [f"v{OLD}"] * old + [f"v{NEW}"] * new
