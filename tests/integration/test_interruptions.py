# SPDX-License-Identifier: Apache-2.0
"""Hooks that end while ``cluster.yml`` runs, and what retry and rollback do then."""

import subprocess
import uuid

import pytest

from tests.integration.conftest import (
    ANSIBLE_SERVER,
    PHASE,
    Lab,
    eventually,
    services,
)
from tests.integration.interruptions import attached, plays_on, wait_until_attached

pytestmark = pytest.mark.lab

# Until the file is there, the playbook takes its time in this phase.
GO = f"/tmp/go-{uuid.uuid4().hex}"
HANG = {"task": PHASE, "host": "worker-*", "until": GO}
#: More than the VNFD allows.
TOO_MANY = {"type": "SCALE_OUT", "aspectId": "worker_instance", "numberOfSteps": 1000}


def abort_connections(host: str) -> None:
    """Spare the wait until their silence is noticed, where the kernel knows how to."""
    abort = ["ss", "--kill", "dst", host]
    subprocess.run(abort, capture_output=True, timeout=20, check=False)


class TestOneRun:
    """One run of ``cluster.yml``, whose hook ends twice before it does."""

    @pytest.fixture(scope="class")
    def cluster(self, lab: Lab):
        fault = {"task": PHASE, "host": "worker-*", "message": "no room", "times": 1}
        variables = {"lab_hang": HANG, "lab_fault": fault}
        with lab.instance("interrupted", kubespray_vars=variables) as cluster:
            yield cluster

    def test_lost_contact_ends_the_hook_and_not_the_run(self, lab, cluster):
        with lab.options(playbook_idle_timeout=15, connect_timeout=3):
            cluster.begin_instantiation()
            cluster.wait_for_phase()
            with lab.cut(ANSIBLE_SERVER):
                abort_connections(ANSIBLE_SERVER)
                error = cluster.wait("FAILED_TEMP")
        (run,) = cluster.runs()
        assert "step 7/11 (run cluster.yml)" in error
        assert f"No SSH connection to ansible@{ANSIBLE_SERVER}" in error
        assert f"run {run} continues" in error
        assert plays_on(lab, cluster)

    def test_retry_attaches_to_it(self, lab, cluster):
        (run,) = cluster.runs()
        before = attached(lab, run)
        cluster.begin("retry")
        wait_until_attached(lab, run, before + 1)
        assert cluster.runs() == [run]

    def test_killed_conductor_leaves_the_operation_to_be_cancelled(
        self, lab, cluster, guide
    ):
        lab.kill_conductor()
        assert cluster.occurrence()["operationState"] == "PROCESSING"
        operation = cluster.occurrence()["id"]
        # The client fails after Tacker has accepted.
        assert "accepted" in guide.does("cancel", expect=1, OPERATION_ID=operation)
        assert cluster.occurrence()["operationState"] == "FAILED_TEMP"
        assert plays_on(lab, cluster)

    def test_retry_attaches_again_and_reports_how_the_run_ends(self, lab, cluster):
        (run,) = cluster.runs()
        before = attached(lab, run)
        cluster.begin("retry")
        wait_until_attached(lab, run, before + 1)
        lab.ansible(f"touch {GO}")
        error = cluster.wait("FAILED_TEMP")
        assert "run cluster.yml" in error
        assert f"cluster.yml failed on {ANSIBLE_SERVER}" in error
        assert "worker-10-10-0-" in error
        assert f"{PHASE}: no room" in error
        cluster.assert_no_secret_in(error)
        assert cluster.runs() == [run]

    def test_retry_starts_the_next_run_which_outlasts_a_restart_of_the_database(
        self, lab, cluster
    ):
        (failed,) = cluster.runs()
        cluster.begin("retry")
        # By then Tacker and the hook have asked the database.
        eventually(lambda: len(cluster.runs()) == 2)
        services("restart", "mariadb")
        cluster.wait("COMPLETED")
        assert cluster.runs()[0] == failed
        assert len(cluster.runs()) == 2
        nodes = cluster.ready_nodes()
        assert len(nodes) == 3
        assert all(nodes.values()), nodes

    def test_tacker_knows_what_it_can_scale_all_the_same(self, lab, cluster):
        path = f"/vnflcm/v1/vnf_instances/{cluster.id}/scale"
        # Without the scaling groups it would be an error of Tacker's, 500.
        assert lab.tacker.refused("POST", path, json=TOO_MANY)[0] == 400


def test_rollback_after_a_killed_conductor_leaves_nothing(lab: Lab):
    variables = {"lab_hang": {**HANG, "until": f"{GO}-never"}}
    with lab.instance("killed", kubespray_vars=variables) as cluster:
        cluster.begin_instantiation()
        cluster.wait_for_phase()
        lab.kill_conductor()
        cluster.cancel()
        cluster.handle("rollback", "ROLLED_BACK")
        cluster.assert_nothing_left()
        processes = lab.ansible("ps -eo args")
        assert cluster.directory not in processes
