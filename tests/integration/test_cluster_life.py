# SPDX-License-Identifier: Apache-2.0
"""A cluster as an operator looks at it, also with ``tacker-k8s-mgmt cluster check``."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lab import client, settings
from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.model.timeline import Timeline
from tests.integration.cluster_checks import NODES, check, differences, roles
from tests.integration.conftest import (
    ANSIBLE_SERVER,
    PARAMETERS,
    PHASE,
    REQUESTS,
    ROOT,
    Cluster,
    Guide,
    Lab,
    eventually,
    services,
)
from tests.integration.connection import flow_of_datagrams
from tests.integration.guide import id_in

pytestmark = pytest.mark.lab

ROLES = {
    "masterNode": "control-plane",
    "workerNode": "worker",
    "externalLB": "load-balancer",
}
FAULT = {"task": PHASE, "host": "worker-*", "message": "kubelet is not healthy"}


@pytest.fixture(scope="module")
def failure(lab: Lab) -> Iterator[tuple[Cluster, str]]:
    """A cluster whose playbook fails, and the error text."""
    variables = {"lab_fault": FAULT}
    with lab.instance("whole", secret=True, kubespray_vars=variables) as made:
        yield made, made.instantiate(expect="FAILED_TEMP")


@pytest.fixture(scope="module")
def cluster(failure: tuple[Cluster, str], guide: Guide) -> Cluster:
    """The same, rolled back and instantiated again."""
    made, _ = failure
    made.handle("rollback", "ROLLED_BACK")
    made.assert_nothing_left()
    del made.parameters["kubespray_vars"]
    guide.writes("instantiate.json", made.body)
    with made.by_command():
        guide.does("instantiation", VNF_INSTANCE_ID=made.id)
        told = guide.does("following", VNF_INSTANCE_ID=made.id)
    assert told.count("instantiate_end completed after") == 1
    return made


def test_failed_playbook_is_named_without_a_secret(failure):
    cluster, error = failure
    assert "run cluster.yml" in error
    assert "worker-10-10-0-" in error
    assert FAULT["task"] in error
    assert FAULT["message"] in error
    assert "cluster.yml failed on 10.99.0.5" in error
    cluster.assert_no_secret_in(error)
    state_path = str(settings.from_environment().journals)
    records, _ = journal.read(journal.path_of(state_path, cluster.id))
    last = Timeline(records).last
    assert last is not None
    assert {(one.task, one.message) for one in last.failed_tasks} == {
        (f"kubeadm : {FAULT['task']}", FAULT["message"])
    }
    assert metrics(cluster)["last_hook_failed"] == 1


def metrics(cluster: Cluster) -> dict[str, float]:
    """The metrics of one VNF instance; the differences as a sum."""
    path = client.state() / "data" / "tacker" / "state" / "tacker_k8s_mgmt.prom"
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(path.read_text()):
        for sample in family.samples:
            if sample.labels.get("vnf_instance_id") == cluster.id:
                name = sample.name.removeprefix("tacker_k8s_mgmt_")
                found[name] = found.get(name, 0) + sample.value
    return found


@pytest.fixture
def impatient(tmp_path) -> Path:
    """Configuration that continues top of Tacker's."""
    path = tmp_path / "impatient.conf"
    path.write_text("[k8s_mgmt]\nconnect_timeout = 2\n")
    return path


def traces(lab: Lab, cluster: Cluster) -> tuple[str, str, str, str]:
    """Everything that a look must not change."""
    listing = f"cd {cluster.directory} && find . -printf '%p %s %T@\\n' | sort"
    state = client.state() / "data" / "tacker" / "state" / "k8s_mgmt"
    known = sorted((state / "known_hosts.d").iterdir())
    vms = (cluster.server("externalLB"), cluster.server("masterNode"))
    files = "find /tmp /etc -xdev -mindepth 1 -printf '%p %s %T@\\n' | sort"
    left = "".join(client.on_host(vm, "sh", "-c", files) for vm in vms)
    show = json.dumps(cluster.show(), sort_keys=True)
    return lab.ansible(listing), "".join(path.read_text() for path in known), left, show


class TestCluster:
    """One cluster, looked at from all sides."""

    def test_operation_is_completed(self, cluster):
        assert cluster.occurrence()["operationState"] == "COMPLETED"
        assert metrics(cluster)["last_hook_failed"] == 0

    def test_nodes_are_ready(self, cluster):
        nodes = cluster.ready_nodes()
        assert roles(nodes) == NODES
        assert all(nodes.values()), nodes

    def test_load_balancer_answers_with_a_verified_certificate(self, cluster):
        assert cluster.api("/readyz") == "ok"

    def test_cluster_is_a_vim_behind_the_openstack_one(self, lab, cluster):
        # Tacker forgets the instance's VIMs at a rollback; the cluster must not become
        # the first one, which is where Tacker looks for the stack.
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
            "/opt/kubespray-venv/bin/ansible-inventory "
            f"-i {cluster.directory}/hosts.yaml --list"
        )
        inventory = json.loads(text)
        assert len(inventory["kube_control_plane"]["hosts"]) == 1
        assert len(inventory["kube_node"]["hosts"]) == 2
        assert inventory["etcd"]["hosts"] == inventory["kube_control_plane"]["hosts"]

    def test_no_secret_in_any_log(self, lab, cluster):
        cluster.assert_no_secret_in(lab.logs())
        cluster.assert_no_secret_in(json.dumps(cluster.occurrence().get("error") or {}))


class TestCheck:
    def test_a_cluster_that_stands_agrees_and_is_left_as_it_is(self, lab, cluster):
        before = traces(lab, cluster)
        done = check(cluster)
        assert done.returncode == 0, done.stdout
        assert done.stdout.endswith("No differences.\n")
        assert metrics(cluster)["check_differences"] == 0
        for name in (*cluster.inventory(), cluster.vim_name):
            assert name in done.stdout
        assert traces(lab, cluster) == before

    def test_what_was_spoiled_is_named(self, cluster):
        first, second = (n for n in cluster.inventory() if n.startswith("worker-"))
        cluster.balancer("remove-worker", first)
        cluster.kubectl("cordon", second)
        done = check(cluster, "--json")
        assert done.returncode == 1, done.stdout
        assert differences(done) == {
            first: ["the load balancer has no route to it"],
            second: ["cordoned, gets no new pods"],
        }
        (remedy,) = (
            difference["remedy"]
            for row in json.loads(done.stdout)["rows"]
            if row["name"] == first
            for difference in row["differences"]
        )
        assert f"add-worker {first}=" in remedy
        # The way out that was told.
        address = first.removeprefix("worker-").replace("-", ".")
        cluster.balancer("add-worker", f"{first}={address}")
        cluster.kubectl("uncordon", second)
        assert check(cluster).returncode == 0

    @pytest.mark.parametrize(
        ("vdu", "silent"),
        [
            ("externalLB", {"load_balancer"}),
            ("masterNode", {"cluster"}),
            (None, {"inventory", "cluster", "load_balancer"}),
        ],
    )
    def test_who_does_not_answer_hides_no_other(
        self, lab, cluster, impatient, vdu, silent
    ):
        host = cluster.server(vdu) if vdu else ANSIBLE_SERVER
        with lab.cut(host):
            done = check(cluster, "--config-file", str(impatient), "--json")
        told = json.loads(done.stdout)
        assert done.returncode == 2
        assert set(told["not_asked"]) == silent
        assert {row["heat"] for row in told["rows"]} == {"VM"}
        assert told["rows"][-1]["vim"] == cluster.vim_name


class TestGuide:
    """What the guides print, on the cluster and beside it."""

    def test_package_and_instance(self, lab, guide):
        with lab.package(guide, "package filled", "simple.zip") as vnfd_id:
            made = guide.does("instance made", VNFD_ID=vnfd_id)
            guide.does("instance deleted", VNF_A=id_in(made))

    def test_package_in_one_line(self, lab, guide):
        before = {package["id"] for package in lab.tacker.packages()}
        guide.builds("simple.zip")
        guide.does("package in one line")

        def onboarded() -> str:
            (new,) = [one for one in lab.tacker.packages() if one["id"] not in before]
            return str(new["id"]) if new["onboardingState"] == "ONBOARDED" else ""

        lab.tacker.delete_package(eventually(onboarded))

    def test_looks_at_it(self, cluster, guide):
        machines = [
            {"role": ROLES[vdu], "ssh_address": cluster.address(server)}
            for server, vdu in cluster.servers().items()
        ]
        guide.writes("machines.json", machines)
        sample = json.loads((REQUESTS / "instantiate-simple.json").read_text())
        ours = sample["additionalParams"][PARAMETERS]
        place = "/home/ansible/clusters/no-clusters"
        ours["ansible"].update(transferring_inventory_path=place, password="ansible")
        # Only the conductor's configuration says where the file of the key is.
        for name in ("master_node", "worker_node"):
            del ours[name]["private_key"]
            ours[name]["password"] = "ubuntu"
        del ours["external_lb_param"]["ssh_private_key"]
        ours["external_lb_param"]["ssh_password"] = "ubuntu"
        guide.writes("instantiate.json", sample)
        guide.builds("simple.zip")
        told = guide.does(
            "looking",
            VNF_INSTANCE_ID=cluster.id,
            OPERATION_ID=cluster.occurrence()["id"],
            **{"my-cluster": cluster.name},
        )
        assert "COMPLETED" in told
        assert "No differences." in told
        assert "No problem was found." in told
        # Of `cluster list`.
        assert f"https://{cluster.balancer_address()}:6443 | 1 externalLB, 1" in told
        assert (guide.place / "timeline.html").stat().st_size

    def test_plan(self, cluster, guide):
        before = cluster.occurrence()["id"], cluster.routes()
        server = cluster.server("workerNode")
        guide.writes("heal-worker.json", {"vnfcInstanceId": [cluster.vnfc(server)]})
        told = guide.does("planned", VNF_INSTANCE_ID=cluster.id)
        assert told.count(" is rebuilt") == 1
        assert "The operation would be done." in told
        assert (cluster.occurrence()["id"], cluster.routes()) == before

    def test_kubeconfig(self, cluster, guide):
        told = guide.does(
            "kubeconfig",
            CONTROL_PLANE=cluster.address(cluster.server("masterNode")),
            LOAD_BALANCER=cluster.balancer_address(),
            VNF_INSTANCE_ID=cluster.id,
        )
        assert told.count(" Ready ") == len(NODES)
        assert "tacker-k8s-mgmt-users:alice.view, until 20" in told
        for name in ("my-cluster.conf", "alice.conf", "vim.json", "vim.yaml"):
            assert (guide.place / name).stat().st_mode & 0o077 == 0

    def test_kubeconfig_as_root(self, cluster, guide):
        guide.does("kubeconfig as root", VNF_INSTANCE_ID=cluster.id)
        config = str(guide.place / "my-cluster.conf")
        told = client.command(["kubectl", "--kubeconfig", config, "get", "nodes"])
        assert told.count(" Ready ") == len(NODES)

    def test_service_on_the_load_balancer(self, cluster, guide):
        script = ROOT / "scripts" / "install_external_lb.sh"
        shutil.copy(script, guide.place)
        told = guide.does("load balancer", LOAD_BALANCER=cluster.balancer_address())
        assert [line[:9] for line in told.splitlines()] == [
            *("changed", '{"format"', "changed"),
        ]
        assert '"name": "web"' in told or '"name":"web"' in told

    def test_datagrams_reach_a_worker_through_the_load_balancer(self, cluster):
        with flow_of_datagrams(cluster, cluster.server("workerNode")):
            script = ("other", "--port", "53", "--node-port", "30053")
            cluster.balancer("expose", *script, "--protocol", "udp")
            assert cluster.balancer("status")["udp"] == {
                "active": True,
                "enabled": True,
            }
            cluster.balancer("unexpose", "other")

    def test_secret(self, guide):
        url = guide.does("secret", stdin="a password\n").strip()
        show = ["openstack", "secret", "get", url, "--payload", "-f", "value"]
        assert client.command(show) == "a password\n"
        client.command(["openstack", "secret", "delete", url])

    def test_stack_updated(self, cluster, guide):
        guide.does("stack updated", VNF_INSTANCE_ID=cluster.id)
        assert check(cluster).returncode == 0


def test_terminate_goes_on_by_retry_and_leaves_nothing(cluster, guide):
    services("stop", "--kill", "barbican")
    try:
        error = cluster.terminate(expect="FAILED_TEMP")
    finally:
        services("restart", "barbican")
    assert "did not delete the VIM" in error
    with cluster.handled("COMPLETED") as operation:
        guide.does("retry", OPERATION_ID=operation)
    cluster.assert_nothing_left()


class TestRefusals:
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
