# SPDX-License-Identifier: Apache-2.0
"""Heal through Tacker's REST API: workers alive and dead, balancer, whole VNF."""

from collections.abc import Iterator

import pytest

from lab import client, settings
from lab.cloud import base
from tacker_k8s_mgmt import journal
from tests.integration import exposed
from tests.integration.cluster_checks import assert_exposed, check, commands, kill
from tests.integration.conftest import (
    CONDUCTOR,
    Cluster,
    Guide,
    Lab,
    cloud,
    eventually,
    services,
)
from tests.integration.connection import NODE_PORT, PORT
from tests.integration.workloads import (
    WORKLOADS,
    agents_run,
    budget,
    consistent,
    machine_ids,
    names,
    pods,
    running,
)

#: What the conductor writes when it cannot store how a scaling ended.
NOT_NOTED = "Failed to update vnf_lcm_op_occ"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("stock"), stock=True)


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with lab.instance("healed", drain={"timeout": 45}) as made:
        made.instantiate()
        made.kubectl("apply", "-f", "-", stdin=WORKLOADS)
        running(made)
        yield made


@pytest.fixture(scope="module")
def web(lab: Lab, cluster: Cluster) -> Iterator[exposed.Web]:
    """A CNF of Tacker that the load balancer exposes, until a test has ended it."""
    with lab.exposed(cluster.vim_name) as made:
        exposed.expose_beside_workloads(cluster, made)
        yield made


def break_scale_out(lab: Lab, cluster: Cluster) -> None:
    """Have the conductor killed while Tacker waits for the VM that Heat builds."""
    before = len(cluster.hosts())
    # At its end the conductor is killed once more.
    with lab.options(section="openstack_vim", stack_retry_wait=600):
        cluster.begin_scale("OUT")
        eventually(lambda: len(cluster.hosts()) > before)
    cluster.cancel()


def break_scale_out_without_keystone(lab: Lab, cluster: Cluster, guide: Guide) -> None:
    """Have Keystone away while Tacker waits for the VM that Heat builds.

    Tacker then fails at noting its failure, too.
    """
    before = len(cluster.hosts())
    known = cluster.stacks()
    members = [one for one in known if sum(name.startswith(one) for name in known) == 1]
    failures = lab.logs(CONDUCTOR).count(NOT_NOTED)
    cluster.begin_scale("OUT")
    eventually(lambda: len(cluster.hosts()) > before)
    # Heat updates those of the workers that are there, too, which must not fail.
    eventually(lambda: not _in_progress(members))
    services("stop", "keystone")
    try:
        eventually(lambda: lab.logs(CONDUCTOR).count(NOT_NOTED) > failures)
    finally:
        services("restart", "keystone")
    operation = cluster.occurrence()
    assert operation["operationState"] == "PROCESSING"
    path = f"/vnflcm/v1/vnf_lcm_op_occs/{operation['id']}/cancel"
    body = {"cancelMode": "FORCEFUL"}
    # Before a while has passed, Tacker refuses it with another reason.
    eventually(lambda: lab.tacker.refused("POST", path, json=body)[0] == 500)
    guide.tells_database("error_point=3", OPERATION_ID=operation["id"])
    assert cluster.occurrence()["operationState"] == "FAILED_TEMP"


def _in_progress(names: list[str]) -> list[str]:
    """Those of these Heat stacks on which Heat works."""
    states = client.stacks()
    return [name for name in names if states[name].endswith("_IN_PROGRESS")]


def servers_of_workers(cluster: Cluster) -> dict[str, str]:
    """Server of each worker's node, by the node's name."""
    workers = cluster.workers()
    return {f"worker-{one.replace('.', '-')}": workers[one] for one in workers}


def level(cluster: Cluster) -> int:
    """Tacker's scale level of the workers."""
    (found,) = cluster.show()["instantiatedVnfInfo"]["scaleStatus"]
    return int(found["scaleLevel"])


def labels(cluster: Cluster) -> dict[str, str]:
    """The label ``disk`` of each node that has it."""
    found = {n["metadata"]["name"]: n["metadata"]["labels"] for n in cluster.nodes()}
    return {name: found[name]["disk"] for name in found if "disk" in found[name]}


def assert_in_maintenance(cluster: Cluster, name: str) -> None:
    """A node without routes and pods, cordoned and tainted."""
    (node,) = (n for n in cluster.nodes() if n["metadata"]["name"] == name)
    assert node["spec"]["unschedulable"] is True
    taints = {(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]}
    assert ("tacker-k8s-mgmt/maintenance", "NoExecute") in taints
    assert name not in cluster.routes()
    eventually(
        lambda: all(pod["node"] != name for pod in pods(cluster, "app in (web,agent)"))
    )


class TestStockImage:
    """VMs that admit the image's own user with the key pair, and no passwords."""

    def test_password_is_refused_at_once_and_the_key_pair_is_the_remedy(self, lab):
        login = {"username": "ubuntu", "password": "ubuntu", "private_key": None}
        with lab.instance("refused", worker_node=login) as made:
            error = made.instantiate(expect="FAILED_TEMP")
            assert error.count("it takes no passwords, only publickey") == 2
            assert "`key_name` names" in error
            records, _ = journal.read(
                journal.path_of(str(settings.from_environment().journals), made.id)
            )
            notes = [one["text"] for one in records if one["event"] == "note"]
            assert len(notes) == 2
            assert all("refuses the SSH login of ubuntu" in text for text in notes)

    def test_sample_request_logs_in_with_the_key_pair(self, cluster):
        given = cluster.body["additionalParams"]
        assert (given["key_name"], given.get("user_data")) == (base.KEY_PAIR, None)
        for server in cluster.servers():
            log = client.on_host(server, "cat", "/var/log/sshd.log")
            accepted = [line for line in log.splitlines() if "Accepted" in line]
            assert accepted
            assert all("Accepted publickey for ubuntu " in line for line in accepted)

    def test_unknown_key_pair_fails_before_a_vm_is_built(self, lab):
        with lab.instance("keyless") as made:
            made.body["additionalParams"]["key_name"] = "nosuch"
            error = made.instantiate(expect="FAILED_TEMP")
            assert "nosuch" in error
            assert made.hosts() == []


class TestHealing:
    def test_settings_and_a_maintenance_that_a_budget_blocks_at_first(
        self, cluster, guide
    ):
        before = consistent(cluster, 2)
        # The pods go to the first, which the next test drains.
        _, (address, server) = sorted(cluster.workers().items())
        name = f"worker-{address.replace('.', '-')}"
        out = f"k8s_nodes:vnfc:{cluster.vnfc(server)}:maintenance"
        disk = "k8s_nodes:worker:label:disk"
        wrong = {"k8s_nodes:worker:label:k8s.io/a": "b"}
        wrong["k8s_nodes:vnfc:none:label:a"] = "b"
        error = cluster.modify({**wrong, disk: "ssd"}, expect="FAILED_TEMP")
        assert "The metadata of the VNF instance have 2 problem(s)" in error
        cluster.handle("fail", "FAILED")
        assert labels(cluster) == {}
        guide.writes("labels.json", {"metadata": {disk: "ssd"}})
        with cluster.by_command():
            guide.does("settings", VNF_INSTANCE_ID=cluster.id)
        assert labels(cluster) == dict.fromkeys(before, "ssd")
        budget(cluster, at_least=4)
        error = cluster.modify({out: "true"}, expect="FAILED_TEMP")
        assert "web-budget" in error
        assert consistent(cluster, 2) == before
        cluster.handle("fail", "FAILED")
        cluster.kubectl("delete", "pdb", "web-budget")
        guide.writes("maintenance.json", {"metadata": {out: "true"}})
        with cluster.by_command():
            guide.does("maintenance", VNF_INSTANCE_ID=cluster.id)
        assert_in_maintenance(cluster, name)
        done = check(cluster)
        assert (done.returncode, "Ready, maintenance" in done.stdout) == (0, True)
        cluster.heal(server)
        assert_in_maintenance(cluster, name)
        assert labels(cluster) == dict.fromkeys(before, "ssd")
        cluster.kubectl("annotate", "node", name, "theirs=1")
        guide.writes("maintenance-end.json", {"metadata": {out: None, disk: None}})
        with cluster.by_command():
            guide.does("end of the maintenance", VNF_INSTANCE_ID=cluster.id)
        assert consistent(cluster, 2) == before
        assert labels(cluster) == {}
        assert check(cluster).returncode == 0
        running(cluster)
        agents_run(cluster)

    def test_living_worker_once_a_budget_lets_it_go(self, cluster, web):
        before = consistent(cluster, 2)
        identities = machine_ids(cluster)
        (address, server), (_, other) = sorted(cluster.workers().items())
        budget(cluster, at_least=4)
        with exposed.held_open_at(cluster, other):
            error = cluster.heal(server, expect="FAILED_TEMP", drain={"timeout": 3})
            assert "heal_start" in error
            assert "web-budget" in error
            assert "NOT INSTANTIATE/SCALE" in cluster.refused("rollback")
            assert server in cluster.workers().values()
            assert consistent(cluster, 2) == before
            cluster.kubectl("delete", "pdb", "web-budget")
            cluster.handle("retry", "COMPLETED")
        assert consistent(cluster, 2) == before
        after = machine_ids(cluster)
        name = f"worker-{address.replace('.', '-')}"
        assert after.pop(name) != identities.pop(name)
        assert after == identities
        running(cluster)

    def test_dead_worker(self, cluster, guide):
        before = consistent(cluster, 2)
        server = sorted(cluster.workers().values())[1]
        kill(cluster, server)
        with cluster.by_command():
            guide.does(
                "heal of a VNFC",
                VNF_INSTANCE_ID=cluster.id,
                VNFC_ID=cluster.vnfc(server),
            )
        assert consistent(cluster, 2) == before
        assert server not in cluster.workers().values()
        running(cluster)
        agents_run(cluster)

    def test_worker_whose_server_was_deleted_in_nova(self, cluster):
        """And a control plane's port has another address, which Neutron lists first."""
        before, inventory = consistent(cluster, 2), cluster.inventory()
        lost, other = cluster.workers().values()
        cloud("add-address", cluster.server("masterNode"), "10.10.0.100")
        cloud("delete-server", lost)
        eventually(lambda: not all(cluster.ready_nodes().values()))
        assert "is not attached to a VM" in check(cluster).stdout
        cluster.heal(other)
        assert sorted(cluster.ready_nodes().values()) == [False, True, True]
        cluster.heal(lost)
        assert consistent(cluster, 2) == before
        assert cluster.inventory() == inventory
        assert all(cluster.ready_nodes().values())
        assert not {lost, other} & set(cluster.workers().values())
        running(cluster)

    def test_two_workers_one_of_them_dead(self, cluster):
        before = consistent(cluster, 2)
        (_, first), (address, second) = sorted(cluster.workers().items())
        kill(cluster, second)
        name = f"worker-{address.replace('.', '-')}"
        (printed,) = commands(check(cluster, "--json"), name)
        with cluster.by_command():
            client.command([*printed.split(), cluster.vnfc(first)])
        assert consistent(cluster, 2) == before
        assert not {first, second} & set(cluster.workers().values())
        running(cluster)

    def test_failed_join_is_gone_on_with_by_retry(self, cluster):
        before = consistent(cluster, 2)
        server = next(iter(cluster.workers().values()))
        fault = {
            "task": "Join the cluster",
            "host": "worker-*",
            "message": "no room",
            "times": 1,
        }
        error = cluster.heal(
            server, expect="FAILED_TEMP", kubespray_vars={"lab_fault": fault}
        )
        assert "heal_end" in error
        assert "no room" in error
        assert "NOT INSTANTIATE/SCALE" in cluster.refused("rollback")
        cluster.handle("retry", "COMPLETED")
        assert consistent(cluster, 2) == before

    def test_failed_join_is_mended_by_the_next_heal_after_fail(self, cluster):
        before = consistent(cluster, 2)
        first, second = cluster.workers().values()
        fault = {"task": "Join the cluster", "host": "worker-*", "message": "no room"}
        cluster.heal(first, expect="FAILED_TEMP", kubespray_vars={"lab_fault": fault})
        cluster.handle("fail", "FAILED")
        assert len(names(cluster)) == 1
        cluster.heal(second)
        assert consistent(cluster, 2) == before

    def test_load_balancer_gets_its_routes_and_services_again(self, cluster, web):
        by_hand = ("--port", str(PORT), "--node-port", str(NODE_PORT))
        cluster.balancer("expose", "by-hand", *by_hand)
        before, known = consistent(cluster, 2), exposed.ports(cluster)
        assert set(known) > {PORT}
        cluster.heal(cluster.server("externalLB"))
        assert consistent(cluster, 2) == before
        assert exposed.ports(cluster) == known
        address = cluster.balancer_address()
        assert exposed.ingress(cluster, "web-balanced", exposed.NAMESPACE) == [address]
        assert cluster.api("/readyz") == "ok"
        assert_exposed(cluster, web.id)

    def test_whole_vnf_is_refused_while_a_cnf_uses_it(self, cluster, web):
        servers = cluster.servers()
        assert "still used as a VIM" in cluster.heal(expect="FAILED_TEMP")
        cluster.handle("fail", "FAILED")
        assert cluster.servers() == servers
        web.terminate()
        web.delete()
        assert list(exposed.ports(cluster)) == [PORT]

    def test_control_plane_is_refused_and_nothing_is_touched(self, cluster):
        before = consistent(cluster, 2)
        servers, runs = cluster.servers(), cluster.runs()
        worker = next(iter(cluster.workers().values()))
        error = cluster.heal(worker, cluster.server("masterNode"), expect="FAILED_TEMP")
        assert "control plane" in error
        assert "without vnfcInstanceId" in error
        cluster.handle("fail", "FAILED")
        assert cluster.servers() == servers
        assert cluster.runs() == runs
        assert consistent(cluster, 2) == before

    def test_heal_deletes_no_worker_that_a_retried_scale_out_has_left(
        self, lab, cluster
    ):
        before = consistent(cluster, 2)
        break_scale_out(lab, cluster)
        # Tacker has Heat build another VM.
        cluster.handle("retry", "COMPLETED")
        assert before < consistent(cluster, 4)
        assert level(cluster) == 2
        assert check(cluster).returncode == 0
        identities = machine_ids(cluster)
        healed = next(iter(cluster.workers()))
        cluster.heal(cluster.workers()[healed])
        consistent(cluster, 4)
        same = {f"worker-{healed.replace('.', '-')}"}
        after = machine_ids(cluster)
        assert {one for one in after if after[one] != identities[one]} == same
        cluster.scale("IN", steps=2)
        consistent(cluster, 2)

    def test_heal_deletes_no_worker_that_a_given_up_scale_out_has_left(
        self, lab, cluster, guide
    ):
        before = consistent(cluster, 2)
        break_scale_out_without_keystone(lab, cluster, guide)
        cluster.handle("fail", "FAILED")
        done = check(cluster)
        assert done.returncode == 1, done.stdout
        assert "Heat has 3 VMs of it, and Tacker counts 2" in done.stdout
        identities = machine_ids(cluster)
        healed = next(iter(cluster.workers()))
        cluster.heal(cluster.workers()[healed])
        assert before < names(cluster)
        assert len(names(cluster)) == 3
        assert level(cluster) == 1
        after = machine_ids(cluster)
        other = {
            identity
            for identity in identities
            if after[identity] != identities[identity]
        }
        assert other == {f"worker-{healed.replace('.', '-')}"}
        assert check(cluster).returncode == 0
        # Tacker lists its VNFC from the next scale-out on.
        with cluster.by_command():
            guide.does("scale-out", VNF_INSTANCE_ID=cluster.id)
        consistent(cluster, 4)

    def test_empty_list_of_vnfcs_is_refused_and_nothing_is_touched(self, cluster):
        before = cluster.servers(), cluster.inventory(), cluster.routes()
        cluster.begin_heal(vnfcs=[])
        error = cluster.wait("FAILED_TEMP")
        assert "vnfcInstanceId is an empty list" in error
        cluster.handle("fail", "FAILED")
        assert before == (cluster.servers(), cluster.inventory(), cluster.routes())

    def test_whole_vnf_that_heat_has_stopped_leaves_a_cluster_that_works(self, cluster):
        before, size = cluster.servers(), len(cluster.workers())
        services("stop", "heat-api")
        try:
            cluster.heal(expect="FAILED_TEMP")
        finally:
            services("restart", "heat-api")
        assert names(cluster) <= set(cluster.inventory())
        # Tacker does not delete the stack at a retry, so Heat replaces no VM.
        error = cluster.handle("retry", "FAILED_TEMP")
        assert "Heat has not replaced these VMs" in error
        for name, server in servers_of_workers(cluster).items():
            assert f"{name} (server {server})" in error
        cluster.handle("fail", "FAILED")
        assert set(cluster.servers()) == set(before)
        consistent(cluster, size)
        types = [one["vimType"] for one in cluster.show()["vimConnectionInfo"]]
        assert types == ["openstack", "kubernetes"]
        cluster.scale("OUT")
        consistent(cluster, size + 1)
        cluster.scale("IN")
        consistent(cluster, size)

    def test_whole_vnf_keeps_its_scale_level(self, cluster, guide):
        servers = cluster.servers()
        with cluster.by_command():
            guide.does("heal of the VNF", VNF_INSTANCE_ID=cluster.id)
        consistent(cluster, 4)
        assert not set(servers) & set(cluster.servers())
        assert names(cluster)
        types = [one["vimType"] for one in cluster.show()["vimConnectionInfo"]]
        assert types == ["openstack", "kubernetes"]

    def test_terminate_leaves_nothing(self, cluster, guide):
        with cluster.by_command():
            guide.does("end of the cluster", VNF_A=cluster.id)
        cluster.assert_nothing_left()
