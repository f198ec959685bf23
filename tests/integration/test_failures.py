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
def balancer(cluster: Cluster) -> str:
    """The name that Heat gives the VM of the load balancer."""
    return f"*{cluster.id}*externalLB*"


class TestInstantiation:
    """The failures of one VNF instance, each of which leads to the next one."""

    def test_fail_before_a_vm_exists(self, cluster):
        error = cluster.instantiate(expect="FAILED_TEMP")
        assert "instantiate_start" in error
        cluster.handle("fail", "FAILED")
        assert cluster.stacks() == []

    def test_retry_makes_the_vms_and_fail_leaves_them(self, lab, cluster, balancer):
        cluster.instantiate(expect="FAILED_TEMP")
        lab.ansible(f"ln -s {KUBESPRAY} {LATER}")
        with lab.refusing(balancer):
            error = cluster.handle("retry", "FAILED_TEMP")
        assert "No valid host was found" in error
        cluster.handle("fail", "FAILED")
        assert cluster.stacks()

    def test_rollback_of_missing_vms_after_a_stack_was_left(
        self, lab, cluster, balancer
    ):
        with lab.refusing(balancer):
            error = cluster.instantiate(expect="FAILED_TEMP")
        # Not that of the stack which the former instantiation left.
        assert "No valid host was found" in error
        cluster.handle("rollback", "ROLLED_BACK")
        cluster.assert_nothing_left()

    def test_retry_makes_the_missing_vms_and_fail_leaves_them(
        self, lab, cluster, balancer
    ):
        with lab.refusing(balancer):
            cluster.instantiate(expect="FAILED_TEMP")
        error = cluster.handle("retry", "FAILED_TEMP")
        assert "instantiate_end" in error
        assert "no room" in error
        assert "after fail they stay" in error
        cluster.handle("fail", "FAILED")
        assert cluster.stacks()

    def test_instantiation_after_that_begins_anew(self, lab, cluster):
        left = {host["id"] for host in cluster.hosts()}
        assert left
        del cluster.parameters["kubespray_vars"]
        cluster.instantiate()
        assert not left & {host["id"] for host in cluster.hosts()}
        consistent(cluster, 2)


def test_what_a_termination_left_goes_with_a_rollback(lab, cluster):
    services("stop", "--kill", "barbican")
    try:
        error = cluster.terminate(expect="FAILED_TEMP")
        assert "terminate_end" in error
        assert "did not delete the VIM" in error
        assert "Do not send `fail`" in error
        assert cluster.directory in error
        assert "NOT INSTANTIATE/SCALE" in cluster.refused("rollback")
        assert "terminate_end" in cluster.handle("retry", "FAILED_TEMP")
        cluster.handle("fail", "FAILED")
    finally:
        services("restart", "barbican")
    assert cluster.stacks() == []
    assert cluster.vim_name in [vim["name"] for vim in lab.tacker.vims()]
    # The way out that the documentation tells: an instantiation that begins in vain.
    lab.ansible(f"rm {LATER}")
    cluster.instantiate(expect="FAILED_TEMP")
    cluster.handle("rollback", "ROLLED_BACK")
    cluster.assert_nothing_left()
