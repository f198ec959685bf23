# SPDX-License-Identifier: Apache-2.0
"""What retry, rollback and fail do after each failure that other files do not have."""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from lab import client
from tests.integration.conftest import PHASE, Cluster, Lab, services
from tests.integration.workloads import consistent, names

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
        assert "after `fail` it stays" in error
        cluster.handle("fail", "FAILED")
        assert cluster.stacks()

    def test_instantiation_after_that_begins_anew(self, lab, cluster):
        left = {host.id for host in cluster.hosts()}
        assert left
        del cluster.parameters["kubespray_vars"]
        cluster.instantiate()
        assert not left & {host.id for host in cluster.hosts()}
        consistent(cluster, 2)


@pytest.fixture
def no_worker(lab: Lab, cluster: Cluster) -> Callable[[], AbstractContextManager[None]]:
    """A cloud that builds and deletes no worker of the VNF instance."""
    return lambda: lab.refusing(f"*{cluster.id}*workerNode*")


class TestVimPart:
    """Heat fails between the hooks of an operation of that VNF instance."""

    def test_rollback_of_a_worker_that_was_not_built(self, cluster, no_worker):
        before = consistent(cluster, 2)
        with no_worker():
            assert "CREATE_FAILED" in cluster.scale("OUT", expect="FAILED_TEMP")
            cluster.handle("rollback", "ROLLED_BACK")
        assert consistent(cluster, 2) == before

    def test_workers_that_were_not_built_at_first_join_with_the_next_scale_out(
        self, cluster, no_worker
    ):
        with no_worker():
            cluster.scale("OUT", expect="FAILED_TEMP")
        # Heat builds the VM in the place of the one that failed, so Tacker sees none
        # that is new, and does not call its driver.
        cluster.handle("retry", "COMPLETED")
        assert (len(cluster.workers()), len(names(cluster))) == (3, 2)
        with no_worker():
            cluster.scale("OUT", expect="FAILED_TEMP")
            cluster.handle("fail", "FAILED")
        cluster.scale("OUT")
        assert (len(cluster.workers()), len(names(cluster))) == (4, 2)
        cluster.scale("OUT")
        consistent(cluster, 5)

    def test_heal_goes_on_when_heat_has_built_the_vm_at_last(self, cluster, no_worker):
        before = consistent(cluster, 5)
        worker = next(iter(cluster.workers().values()))
        with no_worker():
            error = cluster.heal(worker, expect="FAILED_TEMP")
        assert "heal_end" in error
        assert "Heat has not rebuilt the VMs of these nodes" in error
        assert "NOT INSTANTIATE/SCALE" in cluster.refused("rollback")
        update_stack(error)
        cluster.handle("retry", "COMPLETED")
        assert consistent(cluster, 5) == before

    def test_heal_after_fail_goes_on_as_soon_as_the_stack_is_well(
        self, cluster, no_worker
    ):
        before, servers = consistent(cluster, 5), set(cluster.servers())
        worker = next(iter(cluster.workers().values()))
        with no_worker():
            error = cluster.heal(worker, expect="FAILED_TEMP")
            assert "heal_end" in cluster.handle("retry", "FAILED_TEMP")
        cluster.handle("fail", "FAILED")
        (never_built,) = set(cluster.servers()) - servers
        refused = cluster.heal(never_built, expect="FAILED_TEMP")
        assert "is UPDATE_FAILED in Heat" in refused
        update_stack(error)
        cluster.handle("retry", "COMPLETED")
        assert consistent(cluster, 5) == before

    def test_worker_that_heat_could_not_delete_goes_with_the_next_scale_in(
        self, cluster, no_worker
    ):
        before = consistent(cluster, 5)
        with no_worker():
            error = cluster.scale("IN", steps=2, expect="FAILED_TEMP")
        assert "DELETE_FAILED" in error
        left = names(cluster)
        assert cluster.routes() == left < before
        # After `retry` Heat would delete one more, which has not left the cluster.
        cluster.handle("fail", "FAILED")
        cluster.scale("IN")
        assert consistent(cluster, 3) == left


def update_stack(error: str) -> None:
    """Run the command that the error tells."""
    command = re.search("`(openstack stack update [^`]+)`", error)
    assert command is not None, error
    client.command(command[1].split(), limit=300)


def test_what_a_termination_left_goes_with_a_rollback(lab, cluster, balancer):
    with lab.refusing(balancer):
        error = cluster.terminate(expect="FAILED_TEMP")
    assert "does not answer" in error
    services("stop", "--kill", "barbican")
    try:
        error = cluster.handle("retry", "FAILED_TEMP")
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
    # The way out that the documentation tells: an instantiation that fails at once.
    lab.ansible(f"rm {LATER}")
    cluster.instantiate(expect="FAILED_TEMP")
    cluster.handle("rollback", "ROLLED_BACK")
    cluster.assert_nothing_left()
