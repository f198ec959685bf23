"""What retry, rollback and fail do after each failure that other files do not have."""

import uuid
from collections.abc import Iterator

import pytest

from tests.integration.conftest import PHASE, Cluster, Lab, services
from tests.integration.test_scaling import consistent

pytestmark = pytest.mark.lab

KUBESPRAY = "/opt/kubespray"
#: There is no kubespray yet.
LATER = f"/opt/kubespray-{uuid.uuid4().hex}"
FAULT = {"task": PHASE, "host": "worker-*", "message": "no room"}


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with lab.instance(
        "failing",
        ansible={"kubespray_root_path": LATER},
        kubespray_vars={"lab_fault": FAULT},
    ) as made:
        try:
            yield made
        finally:
            lab.ansible(f"rm -f {LATER}")


@pytest.fixture
def balancers(cluster: Cluster) -> str:
    """The names that Heat gives the VM of the load balancer."""
    return f"*{cluster.id}*externalLB*"


def vms(cluster: Cluster) -> set[str]:
    return set(cluster.servers())


class TestInstantiation:
    def test_start_fail(self, cluster):
        cluster.instantiate(expect="FAILED_TEMP")
        cluster.handle("fail", "FAILED")
        assert cluster.stacks() == []

    def test_start_retry_and_vms_fail(self, lab, cluster, balancers):
        cluster.instantiate(expect="FAILED_TEMP")
        lab.ansible(f"ln -s {KUBESPRAY} {LATER}")
        with lab.refusing(balancers):
            error = cluster.handle("retry", "FAILED_TEMP")
            print(error)
            cluster.handle("fail", "FAILED")
        print(cluster.stacks())
        print(cluster.show())

    def test_vms_rollback(self, lab, cluster, balancers):
        with lab.refusing(balancers):
            error = cluster.instantiate(expect="FAILED_TEMP")
            print(error)
            cluster.handle("rollback", "ROLLED_BACK")
        cluster.assert_nothing_left()

    def test_vms_retry_and_end_fail(self, lab, cluster, balancers):
        with lab.refusing(balancers):
            cluster.instantiate(expect="FAILED_TEMP")
        error = cluster.handle("retry", "FAILED_TEMP")
        print(error)
        assert "no room" in error
        cluster.handle("fail", "FAILED")

    def test_again_after_fail(self, lab, cluster):
        del cluster.parameters["kubespray_vars"]
        print(lab.tacker.refused("DELETE", f"/vnflcm/v1/vnf_instances/{cluster.id}"))
        cluster.instantiate()
        consistent(cluster, 2)


class TestTermination:
    def test_end_retry(self, lab, cluster):
        services("stop", "barbican")
        try:
            error = cluster.terminate(expect="FAILED_TEMP")
            print(error)
            print(cluster.refused("rollback"))
            print(cluster.handle("retry", "FAILED_TEMP"))
            print(cluster.show())
        finally:
            services("restart", "barbican")
        cluster.handle("fail", "FAILED")
        print(cluster.show())
        print(cluster.stacks())
        print(lab.tacker.vims())
        print(cluster.terminate())
        cluster.assert_nothing_left()
