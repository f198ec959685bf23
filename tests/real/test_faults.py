# SPDX-License-Identifier: Apache-2.0
"""What goes wrong at a site while a cluster is made: named, and retried to its end."""

import contextlib
import time
from collections.abc import Iterator

import pytest

from lab.services import mirror
from tests.integration.cluster import Cluster
from tests.integration.conftest import ANSIBLE_SERVER, services
from tests.real.cluster import consistent, reaches
from tests.real.conftest import RealLab
from tests.real.site_faults import KUBELET, full, spoiled

pytestmark = pytest.mark.lab

#: Seconds for which the Ansible server is away.
AWAY = 60


@pytest.fixture(scope="module")
def cluster(lab: RealLab) -> Iterator[Cluster]:
    with lab.instance("faulty") as made:
        yield made


class TestInstantiate:
    def test_wrong_checksum(self, lab: RealLab, cluster: Cluster) -> None:
        with spoiled(lab.site.release):
            error = cluster.instantiate(expect="FAILED_TEMP")
        assert "checksum" in error.lower()
        assert KUBELET in error
        assert "-10-10-0-" in error

    def test_full_disk(self, cluster: Cluster) -> None:
        # Tacker lists no VNFC of an instantiation that has not ended.
        worker = next(host for host in cluster.hosts() if "workerNode" in host.name)
        with full(worker.id):
            error = cluster.handle("retry", "FAILED_TEMP")
        assert "No space left" in error
        assert f"worker VM {worker.id}" in error

    def test_mirror_away(self, lab: RealLab, cluster: Cluster) -> None:
        runs = len(cluster.runs())
        cluster.begin("retry")
        reaches(lab, cluster, "bootstrap_os", runs)
        services("stop", "--kill", mirror.FILES)
        try:
            error = cluster.wait("FAILED_TEMP")
        finally:
            services("restart", mirror.FILES)
        assert "Connection refused" in error

    def test_conductor_killed_and_ansible_server_cut_off(
        self, lab: RealLab, cluster: Cluster
    ) -> None:
        runs = len(cluster.runs())
        cluster.begin("retry")
        reaches(lab, cluster, "kubeadm", runs)
        lab.kill_conductor()
        cluster.cancel()
        assert len(cluster.runs()) == runs + 1
        cluster.begin("retry")
        time.sleep(10)
        with lab.cut(ANSIBLE_SERVER):
            time.sleep(AWAY)
        with contextlib.suppress(RuntimeError):
            cluster.wait("COMPLETED")
        if cluster.occurrence()["operationState"] == "FAILED_TEMP":
            cluster.handle("retry", "COMPLETED")
        consistent(cluster, 2)


def test_terminate_leaves_nothing(cluster: Cluster) -> None:
    cluster.terminate()
    cluster.assert_nothing_left()
