# SPDX-License-Identifier: Apache-2.0
"""Three control planes: one is lost and healed, two are too many."""

from collections.abc import Iterator

import pytest

from tests.integration.cluster import Cluster, eventually
from tests.integration.cluster_checks import control_planes
from tests.integration.conftest import cloud
from tests.real.cluster import consistent, members, uids
from tests.real.conftest import RealLab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    ha = RealLab(tmp_path_factory.mktemp("ha"), "ha")
    with ha.instance("real-ha") as made:
        made.instantiate()
        yield made


def test_three_control_planes(cluster: Cluster) -> None:
    consistent(cluster, 2)
    planes = control_planes(cluster)
    assert set(planes) <= set(uids(cluster))
    assert len(planes) == 3
    (first, *_) = planes.values()
    assert members(first).count("started") == 3


def test_a_killed_control_plane_is_healed_while_the_api_answers(
    cluster: Cluster,
) -> None:
    before = uids(cluster)
    name, server = sorted(control_planes(cluster).items())[-1]
    cloud("kill", server)
    eventually(lambda: cluster.ready_nodes()[name] is False)
    assert cluster.api("/readyz") == "ok"
    cluster.heal(server)
    planes = control_planes(cluster)
    assert all(cluster.ready_nodes().values())
    after = uids(cluster)
    assert after.pop(name) != before.pop(name)
    assert after == before
    assert members(planes[name]).count("started") == 3


def test_heal_is_refused_with_two_down(cluster: Cluster) -> None:
    (one, another, _) = sorted(control_planes(cluster).values())
    cloud("kill", one)
    cloud("kill", another)
    error = cluster.heal(one, expect="FAILED_TEMP")
    assert "etcd" in error
    assert set(control_planes(cluster).values()) >= {one, another}


def test_terminate_leaves_nothing(cluster: Cluster) -> None:
    cluster.handle("fail", "FAILED")
    cluster.terminate()
    cluster.assert_nothing_left()
