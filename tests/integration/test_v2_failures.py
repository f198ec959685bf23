# SPDX-License-Identifier: Apache-2.0
"""What fails through Tacker's v2 API: retry, rollback, a conductor that is killed."""

import contextlib
import json
import re
import uuid
from collections.abc import Iterator

import pytest

from lab import client
from tests.integration import exposure_faults
from tests.integration.cluster_checks import check
from tests.integration.conftest import PHASE, VM_ACCOUNT, eventually
from tests.integration.exposed import HeldKubectl
from tests.integration.interruptions import attached, plays_on, wait_until_attached
from tests.integration.v2 import ClusterV2, LabV2
from tests.integration.workloads import consistent, names

pytestmark = pytest.mark.lab

# Until the file is there, the playbook takes its time in this phase.
GO = f"/tmp/go-{uuid.uuid4().hex}"
# From then on, joining works.
MENDED = f"/tmp/mended-{uuid.uuid4().hex}"
NO_ROOM = {"task": PHASE, "host": "worker-*", "message": "no room"}
PASSWORD = {"password": VM_ACCOUNT.password}
PODS = "10.233.64.0/18"
POD_NETWORK = "tacker-k8s-mgmt-pod-network"
HANG = {"task": PHASE, "host": "worker-*", "until": GO}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LabV2:
    return LabV2(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def cluster(lab: LabV2) -> Iterator[ClusterV2]:
    with lab.instance("v2-failures", secret=True) as made:
        assert isinstance(made, ClusterV2)
        said = dict(made.parameters["worker_node"])
        lab.keep_secrets_in_barbican(made.parameters)
        # The one that is not kept, so that later requests have to say it again.
        made.parameters["worker_node"] = said
        yield made


@contextlib.contextmanager
def on_members(cluster: ClusterV2, change: str, undo: str) -> Iterator[None]:
    """Run ``ip`` on the workers that the cluster has, and undo it."""
    members = [
        server
        for address, server in cluster.workers().items()
        if f"worker-{address.replace('.', '-')}" in cluster.routes()
    ]
    for server in members:
        client.on_host(server, "ip", *change.split())
    try:
        yield
    finally:
        for server in members:
            client.on_host(server, "ip", *undo.split())


class TestInstantiation:
    """One VNF instance, which is instantiated when everything else has been tried."""

    def test_wrong_parameters_are_refused_before_a_vm_exists(self, cluster):
        right = cluster.parameters["ansible"]["ip_address"]
        cluster.parameters["ansible"]["ip_address"] = "10.99.0.0/24"
        error = cluster.instantiate(expect="FAILED_TEMP")
        assert "instantiate_start failed" in error
        assert "ansible.ip_address" in error
        assert "Traceback" not in error
        assert cluster.stacks() == []
        cluster.handle("rollback", "ROLLED_BACK")
        cluster.parameters["ansible"]["ip_address"] = right

    def test_retry_makes_the_vm_that_was_not_built(self, lab, cluster):
        cluster.parameters["kubespray_vars"] = {"lab_fault": NO_ROOM}
        with lab.refusing(f"*{cluster.id}*externalLB*"):
            error = cluster.instantiate(expect="FAILED_TEMP")
        assert "No valid host was found" in error

    def test_failed_playbook_is_named_and_retry_starts_the_next_run(self, cluster):
        error = cluster.handle("retry", "FAILED_TEMP")
        assert "run cluster.yml" in error
        assert "no room" in error
        (failed,) = cluster.runs()
        assert "no room" in cluster.handle("retry", "FAILED_TEMP")
        assert cluster.runs()[0] == failed
        assert len(cluster.runs()) == 2

    def test_rollback_leaves_nothing(self, cluster):
        cluster.handle("rollback", "ROLLED_BACK")
        cluster.assert_nothing_left()

    def test_retry_attaches_to_the_run_that_a_killed_conductor_has_left(
        self, lab, cluster
    ):
        cluster.parameters["kubespray_vars"] = {"lab_hang": HANG}
        cluster.begin_instantiation()
        cluster.wait_for_phase()
        (run,) = cluster.runs()
        lab.kill_conductor()
        cluster.wait("FAILED_TEMP")
        assert plays_on(lab, cluster)
        before = attached(lab, run)
        cluster.begin("retry")
        wait_until_attached(lab, run, before + 1)
        lab.ansible(f"touch {GO}")
        cluster.wait("COMPLETED")
        assert cluster.runs() == [run]
        consistent(cluster, 2)


class TestScaling:
    def test_automatic_operations_need_references_and_are_not_enabled(self, cluster):
        enabled = {"isAutohealEnabled": True}
        error = cluster.modify({}, "FAILED_TEMP", vnfConfigurableProperties=enabled)
        assert "modify_information_end failed" in error
        assert "worker_node.password: is text, which is not stored" in error
        assert "isAutohealEnabled" in error
        cluster.handle("rollback", "ROLLED_BACK")
        assert "vnfConfigurableProperties" not in cluster.show()

    def test_secret_that_was_not_kept_is_asked_for_before_a_vm_exists(self, cluster):
        before = consistent(cluster, 2)
        error = cluster.scale("OUT", expect="FAILED_TEMP")
        assert "scale_start failed" in error
        assert "worker_node.password" in error
        assert "Send `fail`" in error
        cluster.handle("fail", "FAILED")
        assert consistent(cluster, 2) == before

    def test_failed_scale_out_is_gone_on_with_by_retry(self, cluster):
        once = {**NO_ROOM, "times": 1}
        error = cluster.scale(
            "OUT",
            expect="FAILED_TEMP",
            worker_node=PASSWORD,
            kubespray_vars={"lab_fault": once},
        )
        assert "scale_end failed" in error
        assert "no room" in error
        self._fail_by_the_pod_network(cluster)
        cluster.handle("retry", "COMPLETED")
        # Its deletion is not waited for, as it may take any time.
        assert eventually(lambda: POD_NETWORK not in cluster.kubectl("get", "ns"))
        consistent(cluster, 3)

    def _fail_by_the_pod_network(self, cluster):
        old = names(cluster)
        with on_members(cluster, "link set eth1 mtu 1600", "link set eth1 mtu 1500"):
            error = cluster.handle("retry", "FAILED_TEMP")
        assert "verify the pod network of the new workers" in error
        found = re.search(
            r"from a pod on (worker\S+) to one on (worker\S+) packets of (\d+) bytes "
            "arrive, but with DF set none of 1600",
            error,
        )
        assert found
        assert found[1] in old
        assert found[2] not in old
        # The bridge lets 4 bytes of a VLAN tag pass.
        assert 1500 <= int(found[3]) <= 1504
        # As port security does: nothing that comes from other nodes' pods gets in.
        rule = f"from {PODS} iif eth1 blackhole"
        with on_members(cluster, f"rule add {rule}", f"rule delete {rule}"):
            error = cluster.handle("retry", "FAILED_TEMP")
        assert f"from a pod on {found[2]} to one on {found[1]} no UDP" in error
        assert f"from a pod on {found[1]} to one on {found[2]} no UDP" not in error
        assert names(cluster) == old | {found[2]}
        assert cluster.routes() == old

    def test_rollback_of_a_failed_scale_out_leaves_nothing(self, cluster):
        before = consistent(cluster, 3)
        cluster.scale(
            "OUT",
            expect="FAILED_TEMP",
            worker_node=PASSWORD,
            kubespray_vars={"lab_fault": NO_ROOM},
        )
        cluster.handle("rollback", "ROLLED_BACK")
        assert consistent(cluster, 3) == before

    def test_worker_that_was_not_built_is_rolled_back_or_built_by_retry(
        self, lab, cluster
    ):
        before = consistent(cluster, 3)
        for verb, outcome in (("rollback", "ROLLED_BACK"), ("retry", "COMPLETED")):
            with lab.refusing(f"*{cluster.id}*workerNode*"):
                cluster.scale("OUT", expect="FAILED_TEMP", worker_node=PASSWORD)
            assert cluster.routes() == names(cluster) == before
            cluster.handle(verb, outcome)
        assert before < consistent(cluster, 4)

    def test_worker_that_fail_left_out_joins_with_a_heal_that_failed_twice(
        self, lab, cluster
    ):
        before = consistent(cluster, 4)
        faulty = {"worker_node": PASSWORD, "kubespray_vars": {"lab_fault": NO_ROOM}}
        hosts = len(cluster.hosts())
        cluster.begin_scale("OUT", **faulty)
        eventually(lambda: len(cluster.hosts()) > hosts)
        # While Heat builds the VM.
        lab.kill_conductor()
        cluster.wait("FAILED_TEMP")
        cluster.handle("fail", "FAILED")
        done = check(cluster)
        assert "Heat has 5 VMs of it, and Tacker counts 4" in done.stdout
        assert cluster.routes() == names(cluster) == before
        error = cluster.scale("IN", expect="FAILED_TEMP", worker_node=PASSWORD)
        assert "abandoned with `fail`" in error
        assert "heal one worker" in error
        cluster.handle("fail", "FAILED")
        worker = next(iter(cluster.workers().values()))
        faulty["kubespray_vars"] = {"lab_fault": {**NO_ROOM, "until": MENDED}}
        with lab.refusing(f"*{cluster.id}*workerNode*"):
            cluster.heal(worker, expect="FAILED_TEMP", **faulty)
        error = cluster.handle("retry", "FAILED_TEMP")
        assert "heal_end failed" in error
        assert "no room" in error
        lab.ansible(f"touch {MENDED}")
        cluster.handle("retry", "COMPLETED")
        assert before < consistent(cluster, 5)

    def test_cluster_check_takes_the_password_from_the_last_request(self, cluster):
        done = check(cluster)
        assert done.returncode == 0, done.stdout

    def test_exposure_goes_on_after_no_api_a_dead_balancer_and_a_killed_conductor(
        self, lab, cluster
    ):
        with (
            lab.exposed_on(cluster.vim_for_a_cnf()) as web,
            HeldKubectl(cluster) as kubectl,
        ):
            exposure_faults.expose_without_api(lab, cluster, kubectl, web)
            exposure_faults.retry_with_dead_balancer(lab, cluster, kubectl, web)
            operation = exposure_faults.retry_until_exposed(kubectl, web)
            exposure_faults.kill_conductor(lab, cluster, kubectl, web, operation)

    def test_no_secret_where_others_see_it(self, lab, cluster):
        cluster.assert_no_secret_in(lab.logs())
        cluster.assert_no_secret_in(json.dumps(cluster.show()))
        # What the requests said themselves, Tacker shows.
        told = [occurrence.get("error") for occurrence in cluster.occurrences()]
        assert len(told) > 5
        cluster.assert_no_secret_in(json.dumps(told))

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()
