# SPDX-License-Identifier: Apache-2.0
"""Two clusters, made at the same time, with passwords that are no other words."""

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator

import pytest

from lab import client, settings
from tests.integration import exposed, exposure_faults
from tests.integration.conftest import (
    ANSIBLE_SERVER,
    SECRETS,
    SERVER_ACCOUNT,
    Cluster,
    Lab,
    eventually,
)
from tests.integration.exposed import HeldKubectl
from tests.integration.laboratory import WRITTEN
from tests.integration.processes import Watch
from tests.integration.v2 import vim_for_a_cnf

pytestmark = pytest.mark.lab

OVER = "NOT_INSTANTIATED"
GRACEFUL = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1}
SENTINEL = "of-the-operator ssh-ed25519 AAAA"


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch(SECRETS)


@pytest.fixture(scope="module")
def trusted(lab: Lab) -> str:
    """The file with the host keys that the Ansible server's user trusts."""
    path = f"/home/{SERVER_ACCOUNT.name}/.ssh/known_hosts"
    lab.ansible(f"install -d {path.rpartition('/')[0]} && echo {SENTINEL} >{path}")
    return path


@pytest.fixture(scope="module")
def clusters(lab: Lab, watch: Watch, trusted: str) -> Iterator[tuple[Cluster, Cluster]]:
    with (
        lab.instance("one", secret=True, cluster={"helm": True}) as one,
        lab.instance("two", secret=True) as two,
    ):
        with watch:
            one.begin_instantiation()
            two.begin_instantiation()
            one.wait("COMPLETED")
            two.wait("COMPLETED")
        yield one, two


@pytest.fixture(scope="module")
def one(clusters: tuple[Cluster, Cluster]) -> Cluster:
    return clusters[0]


@pytest.fixture(scope="module")
def two(clusters: tuple[Cluster, Cluster]) -> Cluster:
    return clusters[1]


class TestNothingIsMixed:
    def test_each_has_its_own_nodes(self, lab, clusters):
        for cluster in clusters:
            text = lab.ansible(f"cat {cluster.directory}/hosts.yaml")
            servers = {
                line.split()[1]
                for line in text.splitlines()
                if "tacker_server_id:" in line
            }
            balancer = cluster.server("externalLB")
            assert servers == set(cluster.servers()) - {balancer}
            nodes = cluster.ready_nodes()
            assert sorted(nodes) == cluster.inventory()
            assert all(nodes.values()), nodes

    def test_each_is_a_vim_at_its_own_load_balancer(self, lab, clusters):
        vims = {vim["name"]: vim for vim in lab.tacker.vims()}
        for cluster in clusters:
            vim = vims[cluster.vim_name]
            assert vim["auth_url"] == f"https://{cluster.balancer_address()}:6443"
            assert vim["id"] == cluster.show()["vimConnectionInfo"][-1]["vimId"]
            assert cluster.api("/readyz") == "ok"

    def test_each_had_one_run_and_its_own_facts(self, lab, clusters):
        for cluster in clusters:
            assert len(cluster.runs()) == 1
            facts = lab.ansible(f"cd {cluster.directory}/facts && grep -l . *").split()
            assert sorted(facts) == cluster.inventory()


class TestSecrets:
    def test_in_no_argument_and_no_environment(self, clusters, watch):
        # It did look: these are short-lived.
        assert {"ansible-playbook", "sshpass", "sudo"} <= watch.programs
        assert watch.found == set()

    def test_in_no_log_journal_or_error(self, lab, clusters):
        logs = lab.logs()
        assert "run cluster.yml" in logs
        for cluster in clusters:
            cluster.assert_no_secret_in(logs)
            cluster.assert_no_secret_in(json.dumps(cluster.occurrence().get("error")))

    def test_in_no_file_of_the_conductor(self, clusters):
        state = settings.from_environment().data / "tacker"
        files = [path for path in state.rglob("*") if path.is_file()]
        assert [path for path in files if path.parent.name == "known_hosts.d"]
        for path in files:
            Cluster.assert_no_secret_in(path.read_text(errors="replace"))

    def test_in_no_file_that_others_may_read(self, clusters):
        hosts = [host.id for host in client.hosts()]
        assert len(hosts) == 9
        texts = " ".join(f"-e {secret}" for secret in SECRETS)
        for host in hosts:
            find = f"find {WRITTEN} -xdev -type f -size +0"
            count = client.on_host(host, "sh", "-c", f"{find} | wc -l")
            assert int(count) > 10
            search = f"xargs -0 -r grep -laF {texts}; true"
            line = f"{find} -perm /o+r -print0 | {search}"
            assert client.on_host(host, "sh", "-c", line) == "", host

    def test_files_with_the_password_are_private(self, lab, one):
        found = lab.ansible(f"grep -rlF {SECRETS[1]} /run/lab/disk")
        names = {line.rpartition("/clusters/")[2] for line in found.splitlines()}
        assert f"{one.name}/hosts.yaml" in names
        modes = lab.ansible(f"stat -c %a {' '.join(found.split())}")
        assert set(modes.split()) == {"600"}


def test_directory_and_name_of_another_vnf_are_refused_and_stay(lab, one):
    before = [vim for vim in lab.tacker.vims() if vim["name"] == one.vim_name]
    inventory = one.inventory()
    with lab.instance("second", like=one, secret=True) as second:
        error = second.instantiate(expect="FAILED_TEMP")
        assert one.directory in error
        assert "vim_name" in error
        assert second.stacks() == []
        second.handle("rollback", "ROLLED_BACK")
    assert [vim for vim in lab.tacker.vims() if vim["name"] == one.vim_name] == before
    assert one.inventory() == inventory
    assert one.api("/readyz") == "ok"


@contextlib.contextmanager
def conversation(cluster: Cluster) -> Iterator[http.client.HTTPSConnection]:
    """An open connection with the API through the load balancer."""
    context = ssl.create_default_context(cafile=str(cluster.ca()))
    address = cluster.balancer_address()
    connection = http.client.HTTPSConnection(address, 6443, timeout=10, context=context)
    with contextlib.closing(connection):
        connection.connect()
        connection.auto_open = 0  # once closed it stays closed
        yield connection


def ask(connection: http.client.HTTPSConnection) -> bytes:
    connection.request("GET", "/readyz")
    return connection.getresponse().read()


def named(option: str, servers: list[dict[str, str]]) -> list[str]:
    """Options of the script that give these servers."""
    pairs = [(option, f"{server['name']}={server['address']}") for server in servers]
    return [word for pair in pairs for word in pair]


def test_open_connection_survives_every_reload_of_the_load_balancer(one):
    status = one.balancer("status")
    planes = named("--control-plane", status["control_planes"])
    workers = named("--worker", status["workers"])
    changes = (
        ("expose", "web", "--port", "8080", "--node-port", "30080"),
        ("add-worker", "extra=10.10.0.250"),
        ("remove-worker", "extra"),
        # The second worker is left out, and comes back.
        ("install", *planes, *workers[:2]),
        ("install", *planes, *workers),
        ("unexpose", "web"),
    )
    with conversation(one) as connection:
        assert ask(connection) == b"ok"
        for change in changes:
            one.balancer(*change)
            assert ask(connection) == b"ok", change
    assert one.balancer("status")["workers"] == status["workers"]


def test_cnf_is_exposed_on_the_load_balancer_of_its_cluster(lab, one):
    workers = list(one.workers().values())
    with lab.exposed(one.vim_name) as web, lab.exposed(one.vim_name) as other:
        exposed.follow(one, web, other, workers)


def test_chart_is_installed_with_the_login_of_the_registered_vim(lab, one):
    (vim,) = (vim for vim in lab.tacker.vims() if vim["name"] == one.vim_name)
    login = vim["extra"]["helm_info"]
    assert login["masternode_ip"] == [one.address(one.server("masterNode"))]
    with lab.exposed(one.vim_name) as web:
        web.install()
        exposed.follow_chart(one, web, list(one.workers().values()))
    with lab.exposed(one.vim_name) as web, lab.exposed(one.vim_name) as other:
        first = exposed.race(web, other, port=9000)
        assert list(exposed.ports(one)) == [9000]
        first.terminate()
        assert exposed.ports(one) == {}
    assert login["masternode_password"] not in lab.logs()
    # It is not a way to root's rights.
    line = "sudo -n id -un; sudo -n -u root id -un"
    told = client.on_host(
        one.server("masterNode"), "su", "tacker-helm", "-c", f"{line}; true"
    )
    assert told.split() == ["tacker-helm"]


def test_exposure_goes_on_after_a_restart_of_the_api_and_a_killed_conductor(lab, one):
    with lab.exposed(one.vim_name) as web, HeldKubectl(one) as kubectl:
        operation = exposure_faults.expose_while_api_restarts(lab, one, kubectl, web)
        exposure_faults.kill_conductor(lab, one, kubectl, web, operation)


def test_cnf_of_the_v2_api_is_exposed_on_it(lab, one):
    made = exposed.WebV2(client.tacker_v2(), lab.scratch, vim_for_a_cnf(one))
    with exposed.removed(made) as web:
        web.expose()
        with exposed.served(one), exposed.held_open(one, exposed.NODE_PORT):
            web.scale("OUT")
        assert len(exposed.pods(one, "web")) == 2
        one.kubectl("delete", "service", "web-balanced")
        web.heal()
        assert set(exposed.ports(one)) == {exposed.NODE_PORT, exposed.UDP_PORT}
        error = one.terminate("FAILED_TEMP", **GRACEFUL)
        assert "The load balancer exposes CNFs" in error
        assert web.id in error
        one.handle("fail", "FAILED")
        web.terminate()
    assert exposed.ports(one) == {}


def states(lab: Lab, vnf_id: str) -> set[str]:
    """Of all operations of a VNF."""
    every = lab.tacker.call("GET", f"{lab.tacker.LCM}/vnf_lcm_op_occs").json()
    return {o["operationState"] for o in every if o["vnfInstanceId"] == vnf_id}


def test_cnf_on_the_cluster_keeps_it_from_being_terminated(lab, one, guide):
    with lab.cnf(one.vim_name) as cnf:
        cnf.instantiate()
        pods = json.loads(one.kubectl("get", "pods", "-l", "app=web", "-o", "json"))
        assert [pod["status"]["phase"] for pod in pods["items"]] == ["Running"]
        error = one.terminate(expect="FAILED_TEMP")
        assert "still used as a VIM" in error
        assert "NOT INSTANTIATE/SCALE" in one.refused("rollback")
        assert one.api("/readyz") == "ok"
        one.handle("fail", "FAILED")
        guide.does("end of a CNF", VNF_B=cnf.id)
        eventually(lambda: lab.tacker.show(cnf.id)["instantiationState"] == OVER)
        # Tacker deletes no VNF whose operation has not ended.
        eventually(lambda: states(lab, cnf.id) == {"COMPLETED"})
        # Terminated, not deleted: Tacker counts it until then.
        assert "still used as a VIM" in one.terminate(expect="FAILED_TEMP")
        guide.does("CNF deleted", VNF_B=cnf.id)
        one.handle("retry", "COMPLETED")
        one.assert_nothing_left()


def test_terminate_without_the_ansible_server(lab, two):
    with lab.cut(ANSIBLE_SERVER):
        two.terminate()
    assert two.stacks() == []
    assert two.vim_name not in [vim["name"] for vim in lab.tacker.vims()]
    assert "The cluster's directory could not be removed and stays behind" in lab.logs()
    assert lab.ansible(f"ls {two.directory}/hosts.yaml")
    lab.ansible(f"rm -r {two.directory}")
    two.assert_nothing_left()


def test_host_keys_that_the_operator_trusts_are_as_they_were(lab, trusted):
    assert lab.ansible(f"cat {trusted}").splitlines() == [SENTINEL]
