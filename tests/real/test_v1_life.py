# SPDX-License-Identifier: Apache-2.0
"""The life of a cluster through Tacker's v1 API."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab import client
from tests.integration.cluster import Cluster
from tests.real import cnfs, settings, workloads
from tests.real.cluster import (
    answering_pods,
    by_age,
    consistent,
    deploy,
    kill,
    named,
    replicas,
    settled,
    uids,
    versions,
)
from tests.real.cnfs import Cnfs
from tests.real.conftest import RealLab

pytestmark = pytest.mark.lab

#: Where flannel of the other nodes sends packets to.
FLANNEL_ADDRESS = "flannel.alpha.coreos.com/public-ip"
LARGER = ("-m", "length", "--length", "1451:")
#: Packets of flannel that a network for VMs with a smaller MTU drops.
TOO_LARGE = ("INPUT", "-p", "udp", "--dport", "8472", *LARGER, "-j", "DROP")


@pytest.fixture(scope="module")
def cluster(
    lab: RealLab, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[Cluster]:
    with lab.instance("real", drain=settings.DRAIN, cluster={"helm": True}) as made:
        made.instantiate()
        record_testsuite_property("versions", json.dumps(versions(made)))
        yield made


@contextlib.contextmanager
def cnfs_on(lab: RealLab, cluster: Cluster) -> Iterator[Cnfs]:
    (vim,) = (vim for vim in lab.tacker.vims() if vim["name"] == cluster.vim_name)
    with cnfs.on(lab, cluster, vim["id"]) as made:
        yield made


@pytest.fixture(scope="module")
def exposed(lab: RealLab, cluster: Cluster) -> Iterator[Cnfs]:
    """CNFs that answer through the load balancer."""
    with cnfs_on(lab, cluster) as made:
        made.instantiate()
        yield made


class TestInstantiated:
    def test_nodes_are_ready_and_the_api_answers_through_the_balancer(
        self, cluster: Cluster
    ) -> None:
        consistent(cluster, 2)
        assert cluster.api("/readyz") == "ok"

    def test_pods_packets_take_the_clusters_network(self, cluster: Cluster) -> None:
        for node in cluster.nodes():
            own = node["status"]["addresses"]
            (internal,) = [one["address"] for one in own if one["type"] == "InternalIP"]
            assert node["metadata"]["annotations"][FLANNEL_ADDRESS] == internal

    def test_cluster_is_a_vim(self, lab: RealLab, cluster: Cluster) -> None:
        vims = [vim for vim in lab.tacker.vims() if vim["name"] == cluster.vim_name]
        assert [vim["status"] for vim in vims] == ["ACTIVE"]

    def test_cnf_of_tacker_answers_from_pods_of_two_workers(
        self, lab: RealLab, cluster: Cluster
    ) -> None:
        port = workloads.CNF_PORT
        # Tacker's v1 API wants the Deployment named as the VDU.
        manifest = workloads.web("web", port, replicas=2, spread=True)
        with lab.cnf(cluster.vim_name, manifest) as cnf:
            cnf.instantiate()
            on = {pod["spec"]["nodeName"] for pod in cluster.pods("app=web")}
            assert len(on) == 2
            assert len(answering_pods(cluster, port=port)) == 2

    def test_workloads_answer_through_every_worker(
        self, lab: RealLab, cluster: Cluster
    ) -> None:
        deploy(cluster)
        assert len(answering_pods(cluster)) >= 2

    def test_exposed_cnfs_answer_through_the_load_balancer(self, exposed: Cnfs) -> None:
        exposed.answer()
        exposed.scale("OUT")
        exposed.answer()
        exposed.scale("IN")
        exposed.answer()


@contextlib.contextmanager
def smaller_mtu(cluster: Cluster) -> Iterator[None]:
    """The network of the VMs drops what their interfaces' MTU allows."""
    servers = cluster.workers().values()
    for server in servers:
        client.on_host(server, "iptables", "-I", *TOO_LARGE)
    try:
        yield
    finally:
        for server in servers:
            client.on_host(server, "iptables", "-D", *TOO_LARGE)


class TestScaled:
    def test_out_by_one_fails_while_the_mtu_is_wrong(self, cluster: Cluster) -> None:
        before = uids(cluster)
        with smaller_mtu(cluster):
            error = cluster.scale("OUT", expect="FAILED_TEMP")
        assert "verify the pod network" in error
        assert "with DF set none of 1450 bytes" in error
        assert uids(cluster) == before
        cluster.handle("rollback", "ROLLED_BACK")
        consistent(cluster, 2)

    def test_out_by_one(self, cluster: Cluster, exposed: Cnfs) -> None:
        before = uids(cluster)
        with exposed.held_open():
            cluster.scale("OUT")
        consistent(cluster, 3)
        assert before.items() <= uids(cluster).items()
        settled(cluster)
        exposed.answer()

    def test_out_by_two(self, cluster: Cluster, exposed: Cnfs) -> None:
        before = uids(cluster)
        with exposed.held_open():
            cluster.scale("OUT", steps=2)
        consistent(cluster, 5)
        assert before.items() <= uids(cluster).items()
        settled(cluster)

    def test_in_by_one_is_blocked_by_a_budget_first(
        self, cluster: Cluster, exposed: Cnfs
    ) -> None:
        before = uids(cluster)
        # On every worker runs one of them, and none may go.
        replicas(cluster, 10)
        cluster.kubectl("apply", "-f", "-", stdin=workloads.budget(10))
        error = cluster.scale("IN", expect="FAILED_TEMP", drain={"timeout": 30})
        assert "web" in error
        assert "No node was removed" in error
        assert uids(cluster) == before
        assert not [n for n in cluster.nodes() if n["spec"].get("unschedulable")]
        replicas(cluster, workloads.REPLICAS)
        cluster.kubectl("delete", "pdb", "web")
        # Those of the instantiation are of the same age.
        oldest = by_age(cluster)[:2]
        with exposed.held_open(*oldest):
            cluster.handle("retry", "COMPLETED")
        consistent(cluster, 4)
        assert len(before) - len(uids(cluster)) == 1
        assert before.keys() - uids(cluster).keys() <= set(oldest)
        settled(cluster)
        assert len(answering_pods(cluster)) >= 2
        exposed.answer()


class TestModified:
    def test_labels_and_taints(self, cluster: Cluster) -> None:
        settings.label(cluster)

    def test_maintenance_is_blocked_by_a_budget_first(self, cluster: Cluster) -> None:
        def again(metadata: dict[str, Any]) -> None:
            cluster.handle("fail", "FAILED")
            cluster.modify(metadata)

        settings.maintain(cluster, again)


class TestHealed:
    def test_worker_that_lives(self, cluster: Cluster, exposed: Cnfs) -> None:
        before = uids(cluster)
        address, server = next(iter(cluster.workers().items()))
        with exposed.held_open(named(address)):
            cluster.heal(server)
        consistent(cluster, 4)
        after = uids(cluster)
        assert after.pop(named(address)) != before.pop(named(address))
        assert after == before
        settled(cluster)
        settings.assert_labelled(cluster)
        exposed.answer()

    def test_worker_that_was_killed(self, cluster: Cluster, exposed: Cnfs) -> None:
        before = uids(cluster)
        address, server = next(iter(cluster.workers().items()))
        with exposed.held_open(named(address)):
            kill(cluster, address, server)
            cluster.heal(server)
        consistent(cluster, 4)
        after = uids(cluster)
        assert after.pop(named(address)) != before.pop(named(address))
        assert after == before
        settled(cluster)
        exposed.answer()

    def test_load_balancer(self, cluster: Cluster, exposed: Cnfs) -> None:
        before = uids(cluster)
        cluster.heal(cluster.server("externalLB"))
        consistent(cluster, 4)
        assert uids(cluster) == before
        assert cluster.api("/readyz") == "ok"
        exposed.answer()

    def test_whole_vnf_is_refused_while_cnfs_use_it(
        self, cluster: Cluster, exposed: Cnfs
    ) -> None:
        error = cluster.heal(expect="FAILED_TEMP")
        assert "still used as a VIM" in error
        cluster.handle("fail", "FAILED")
        exposed.answer()
        exposed.end()

    def test_whole_vnf(self, lab: RealLab, cluster: Cluster) -> None:
        before = uids(cluster)
        cluster.heal()
        consistent(cluster, 4)
        assert not set(before.values()) & set(uids(cluster).values())
        deploy(cluster)
        assert len(answering_pods(cluster)) >= 2
        with cnfs_on(lab, cluster) as again:
            again.instantiate()
            again.answer()
            again.end()


def test_terminate_leaves_nothing(cluster: Cluster) -> None:
    cluster.terminate()
    cluster.assert_nothing_left()
