"""The whole journey through Tacker's REST API: what an operator would look at."""

import json
import re

import pytest

from tests.integration.conftest import Lab, services

pytestmark = pytest.mark.lab

NODES = ["control-plane", "worker", "worker"]


def roles(nodes):
    return sorted(name.split("-10-")[0] for name in nodes)


class TestCluster:
    """One cluster, looked at from all sides, then terminated."""

    @pytest.fixture(scope="class")
    def cluster(self, lab: Lab):
        with lab.instance("whole") as cluster:
            cluster.instantiate()
            yield cluster

    def test_operation_is_completed(self, cluster):
        assert cluster.occurrence()["operationState"] == "COMPLETED"

    def test_nodes_are_ready(self, cluster):
        nodes = cluster.ready_nodes()
        assert roles(nodes) == NODES
        assert all(nodes.values()), nodes

    def test_load_balancer_answers_with_a_verified_certificate(self, cluster):
        assert cluster.api("/readyz") == "ok"

    def test_cluster_is_a_vim_behind_the_openstack_one(self, lab, cluster):
        vims = [vim for vim in lab.tacker.vims() if vim["name"] == cluster.vim_name]
        assert len(vims) == 1
        info = cluster.show()["vimConnectionInfo"]
        assert info[0]["vimType"] == "openstack"
        assert [one["vimId"] for one in info[1:] if one["vimType"] == "kubernetes"] == [
            vims[0]["id"]
        ]

    def test_directory_is_private(self, lab, cluster):
        directory = cluster.directory
        modes = lab.ansible(
            f"stat -c %a {directory} {directory}/facts {directory}/runs"
        )
        assert modes.split() == ["700", "700", "700"]
        # Ansible itself gives its fact cache mode 0644, below a directory of mode 0700.
        find = f"find {directory} -path {directory}/facts -prune -o -type f"
        files = lab.ansible(f"{find} -printf '%m %P\\n'").splitlines()
        assert len(files) > 5
        assert [line for line in files if not re.match("[67]00 ", line)] == []
        as_nobody = "su nobody -s /bin/sh -c"
        assert "denied" in lab.ansible(f"{as_nobody} 'ls {directory}' 2>&1; true")

    def test_inventory_is_what_kubespray_reads(self, lab, cluster):
        text = lab.ansible(
            "/opt/ansible-venv/bin/ansible-inventory "
            f"-i {cluster.directory}/hosts.yaml --list"
        )
        inventory = json.loads(text)
        assert len(inventory["kube_control_plane"]["hosts"]) == 1
        assert len(inventory["kube_node"]["hosts"]) == 2
        assert inventory["etcd"]["hosts"] == inventory["kube_control_plane"]["hosts"]

    def test_no_secret_in_any_log(self, lab, cluster):
        cluster.assert_no_secret_in(lab.logs())
        cluster.assert_no_secret_in(json.dumps(cluster.occurrence().get("error") or {}))

    def test_terminate_goes_on_by_retry_and_leaves_nothing(self, lab, cluster):
        services("stop", "--kill", "barbican")
        try:
            error = cluster.terminate(expect="FAILED_TEMP")
        finally:
            services("restart", "barbican")
        assert "did not delete the VIM" in error
        cluster.handle("retry", "COMPLETED")
        cluster.assert_nothing_left()


class TestFailures:
    def test_failed_playbook_is_named_rolled_back_and_instantiated_again(self, lab):
        fault = {
            "task": "Join the cluster",
            "host": "worker-*",
            "message": "kubelet is not healthy",
        }
        with lab.instance("broken", kubespray_vars={"lab_fault": fault}) as cluster:
            error = cluster.instantiate(expect="FAILED_TEMP")
            assert "run cluster.yml" in error
            assert "worker-10-10-0-" in error
            assert fault["task"] in error
            assert fault["message"] in error
            assert "cluster.yml failed on 10.99.0.5" in error
            cluster.assert_no_secret_in(error)
            cluster.handle("rollback", "ROLLED_BACK")
            cluster.assert_nothing_left()
            # Tacker forgets the instance's VIMs at a rollback; the cluster must not
            # become the first one, which is where Tacker looks for the stack.
            del cluster.parameters["kubespray_vars"]
            cluster.instantiate()
            types = [one["vimType"] for one in cluster.show()["vimConnectionInfo"]]
            assert types[0] == "openstack"
            assert types[-1] == "kubernetes"
            cluster.terminate()
            cluster.assert_nothing_left()

    def test_bad_parameters_are_refused_before_a_vm_exists(self, lab):
        with lab.instance("refused", ansible={"ip_address": "10.99.0.0/24"}) as cluster:
            error = cluster.instantiate(expect="FAILED_TEMP")
            assert "ansible.ip_address" in error
            assert cluster.stacks() == []
            cluster.handle("rollback", "ROLLED_BACK")

    def test_missing_kubespray_is_found_before_a_vm_exists(self, lab):
        with lab.instance(
            "unprepared", ansible={"kubespray_root_path": "/opt/nothing"}
        ) as cluster:
            error = cluster.instantiate(expect="FAILED_TEMP")
            assert "no kubespray at ansible.kubespray_root_path" in error
            assert cluster.stacks() == []
            cluster.handle("rollback", "ROLLED_BACK")

    def test_request_without_our_parameters_leaves_the_vms_alone(self, lab):
        with lab.instance("dormant", dormant=True) as cluster:
            before = lab.tacker.vims()
            cluster.instantiate()
            assert lab.tacker.vims() == before
            cluster.terminate()
            cluster.assert_nothing_left()
