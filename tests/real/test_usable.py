# SPDX-License-Identifier: Apache-2.0
"""VMs that answer SSH and cannot be used, and a first control plane that is lost.

kubespray's own playbooks end with rc 2 or 4 where one of these is left in a run.
"""

from collections.abc import Iterator

import pytest

from tests.chaos import hosts
from tests.integration.cluster import Cluster, eventually
from tests.integration.cluster_checks import control_planes
from tests.integration.conftest import cloud
from tests.real import site_faults
from tests.real.cluster import consistent, members, reaches, uids
from tests.real.conftest import RealLab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module", params=["simple", "ha"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    lab = RealLab(tmp_path_factory.mktemp("usable"), request.param)
    with lab.instance("real-usable") as made:
        made.instantiate()
        yield made


simple = pytest.mark.parametrize("cluster", ["simple"], indirect=True)
several_control_planes = pytest.mark.parametrize("cluster", ["ha"], indirect=True)


def healed_beside_a_scale_out(cluster: Cluster, worker: str) -> None:
    """Others join beside a worker that cannot be used; then it is healed."""
    before = uids(cluster)
    cluster.scale("OUT")
    assert len(uids(cluster)) == len(before) + 1
    cluster.heal(worker)
    assert worker not in cluster.workers().values()
    assert all(cluster.ready_nodes().values())


@simple
def test_worker_with_a_full_disk(cluster: Cluster) -> None:
    worker = next(iter(cluster.workers().values()))
    site_faults.fill(worker)
    healed_beside_a_scale_out(cluster, worker)
    cluster.scale("IN")
    consistent(cluster, 2)


@simple
def test_worker_with_another_password(cluster: Cluster) -> None:
    worker = next(iter(cluster.workers().values()))
    hosts.other_password(worker)
    healed_beside_a_scale_out(cluster, worker)
    cluster.scale("IN")
    consistent(cluster, 2)


@simple
def test_worker_that_reboots_while_it_joins(lab: RealLab, cluster: Cluster) -> None:
    runs, before = len(cluster.runs()), set(cluster.workers().values())
    cluster.begin_scale("OUT")
    reaches(lab, cluster, "Join to cluster", runs)
    found = (host.id for host in cluster.hosts() if "workerNode" in host.name)
    (new,) = set(found) - before
    hosts.rebooted(new)
    cluster.wait("COMPLETED")
    consistent(cluster, len(before) + 1)


@several_control_planes
def test_workers_join_and_leave_without_the_first_control_plane(
    cluster: Cluster,
) -> None:
    name = cluster.inventory(in_order=True)[0]
    server = control_planes(cluster)[name]
    cloud("kill", server)
    eventually(lambda: cluster.ready_nodes()[name] is False)
    cluster.scale("OUT")
    leader = cluster.inventory(in_order=True)[0]
    assert leader != name
    cluster.scale("IN")
    cluster.heal(server)
    assert all(cluster.ready_nodes().values())
    assert members(control_planes(cluster)[leader]).count("started") == 3


@several_control_planes
def test_terminate_leaves_nothing(cluster: Cluster) -> None:
    cluster.terminate()
    cluster.assert_nothing_left()
