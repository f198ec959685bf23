# SPDX-License-Identifier: Apache-2.0
"""VMs that answer SSH and cannot be used, and the first control plane that is lost."""

from collections.abc import Iterator

import pytest

from tests.chaos import hosts
from tests.integration.cluster import eventually
from tests.integration.cluster_checks import control_planes, kill
from tests.integration.conftest import Cluster, Lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def cluster(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    ha = Lab(tmp_path_factory.mktemp("usable"), "ha")
    # Its workers get certificates of etcd, from the first control plane.
    network = {"network": {"plugin": "flannel"}}
    with ha.instance("usable", cluster=network) as made:
        made.instantiate()
        yield made


def first(cluster: Cluster) -> str:
    """The first control plane of the inventory."""
    return cluster.inventory(in_order=True)[0]


def ready(cluster: Cluster) -> int:
    """How many nodes are Ready; all of them are."""
    nodes = cluster.ready_nodes()
    assert all(nodes.values()), nodes
    return len(nodes)


@pytest.mark.parametrize("fault", [hosts.full, hosts.nearly_full, hosts.other_password])
def test_a_worker_is_healed_and_others_join_beside_it(cluster, fault):
    """It is Ready, and Ansible cannot use it."""
    (worker, *_) = cluster.workers().values()
    mend = fault(worker)
    try:
        before = len(cluster.workers())
        cluster.scale("OUT")
        assert len(cluster.workers()) == before + 1
        cluster.heal(worker)
    finally:
        mend()
    assert worker not in cluster.workers().values()
    ready(cluster)


def test_workers_join_and_leave_while_the_first_control_plane_is_lost(cluster):
    name = first(cluster)
    server = control_planes(cluster)[name]
    kill(cluster, server)
    before = len(cluster.workers())
    cluster.scale("OUT")
    assert len(cluster.workers()) == before + 1
    assert first(cluster) != name
    cluster.scale("IN")
    assert len(cluster.workers()) == before
    cluster.heal(server)
    assert ready(cluster) == 3 + before


def test_a_worker_joins_while_the_first_api_server_is_down(cluster):
    server = control_planes(cluster)[first(cluster)]
    mend = hosts.stopped(server, "kube-apiserver")
    try:
        cluster.scale("OUT")
        cluster.scale("IN")
    finally:
        mend()
    # Its kubelet has an API server to report to again.
    eventually(lambda: all(cluster.ready_nodes().values()))
