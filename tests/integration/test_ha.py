# SPDX-License-Identifier: Apache-2.0
"""A highly available control plane through Tacker's REST API."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from lab import client
from tacker_k8s_mgmt.model.quorum import ControlPlane, EtcdMember, refusal
from tacker_k8s_mgmt.remote.kubernetes.etcd import EtcdClient
from tacker_k8s_mgmt.remote.ssh import login
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.session import LoginTarget
from tacker_k8s_mgmt.request.accounts import Account
from tests.integration.cluster_checks import control_planes, roles
from tests.integration.conftest import Cluster, Lab, eventually

pytestmark = pytest.mark.lab

KEPT = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}'
ADMIN = "/etc/kubernetes/admin.conf"
ETCDCTL = "set -a; . /etc/etcd.env; etcdctl"


@pytest.fixture(scope="module")
def cluster(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    ha = Lab(tmp_path_factory.mktemp("ha"), "ha")
    with ha.instance("available", cluster={"helm": True}) as made:
        made.instantiate()
        yield made


def etcdctl(server: str, *words: str) -> Any:
    """What etcdctl tells on a control plane, as JSON, whatever its exit code."""
    line = f"{ETCDCTL} {' '.join(words)} -w json; true"
    return json.loads(client.on_host(server, "sh", "-c", line))


def asked_over_ssh(server: str) -> tuple[EtcdMember, ...]:
    """What the driver learns of etcd on a control plane."""
    host = next(one for one in client.hosts() if one.id == server)
    address = next(one for one in host.addresses if one.startswith("10.99."))
    endpoint = LoginTarget(address, Account("vm", "ubuntu", SecretStr("ubuntu"), None))
    keys = HostKeys(label="the test's host keys")
    with login.open_ssh(endpoint, host_keys=keys, redact=str, deadline=20) as session:
        return EtcdClient(session).members()


def judged(members: tuple[EtcdMember, ...], leaving: str) -> str:
    """Why the control plane may not be taken out; its members are known by address."""
    planes = [
        ControlPlane(
            "control-plane-" + member.address.replace(".", "-"),
            member.name,
            member.address,
        )
        for member in members
    ]
    found = refusal(planes, members, {leaving})
    return found.reason if found else ""


def power(verb: str, server: str) -> None:
    client.command([client.SYSTEM_PYTHON, "-m", "lab.cloud", verb, server])


class Api:
    """The API through the load balancer, also when control planes are down."""

    def __init__(self, cluster: Cluster) -> None:
        self._url = f"https://{cluster.balancer_address()}:6443"
        self._context = ssl.create_default_context(cafile=str(cluster.ca()))

    def get(self, path: str) -> str:
        """The answer, or why there is none."""
        try:
            with urllib.request.urlopen(  # noqa: S310  it is https
                self._url + path, timeout=5, context=self._context
            ) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, OSError) as error:
            return f"{error!r}"

    def answers(self) -> bool:
        return self.get("/readyz") == "ok"


class TestHighAvailability:
    def test_three_control_planes_and_two_workers_are_ready(self, cluster):
        nodes = cluster.ready_nodes()
        assert roles(nodes) == ["control-plane"] * 3 + ["worker"] * 2
        assert all(nodes.values()), nodes

    def test_etcd_has_three_healthy_members_with_the_inventorys_names(self, cluster):
        (server, *_) = control_planes(cluster).values()
        members = asked_over_ssh(server)
        assert [one.name for one in members] == ["etcd1", "etcd2", "etcd3"]
        assert all(one.healthy for one in members)
        assert [one.leader for one in members].count(True) == 1
        for name in control_planes(cluster):
            assert judged(members, name) == ""

    def test_what_the_guide_prints_shows_them(self, cluster, guide):
        (server, *_) = control_planes(cluster).values()
        # etcdctl reports health on its error output.
        commands = guide.says("etcd")
        told = client.on_host(server, "bash", "-c", f"exec 2>&1\n{commands}")
        assert told.count("| started |") == 3
        assert told.count(" is healthy: ") == 3
        assert "| RAFT TERM |" in told

    def test_every_control_plane_can_be_healed_by_itself(self, cluster):
        """Tacker knows a VNFC of each, with its own server."""
        assert len(set(control_planes(cluster).values())) == 3

    def test_the_balancer_has_all_of_them(self, cluster):
        planes = cluster.balancer("status")["control_planes"]
        assert {one["name"] for one in planes} == set(control_planes(cluster))
        assert {one["state"] for one in planes} == {"UP"}

    def test_the_cluster_is_a_vim(self, lab, cluster):
        assert cluster.vim_name in [vim["name"] for vim in lab.tacker.vims()]

    def test_workers_scale_out_and_in(self, cluster):
        cluster.scale("OUT")
        assert roles(cluster.ready_nodes()).count("worker") == 3
        cluster.scale("IN")
        assert roles(cluster.ready_nodes()).count("worker") == 2

    def test_control_planes_do_not_scale(self, cluster):
        before = set(cluster.servers())
        cluster.scale("OUT", expect="FAILED_TEMP", aspect="master_instance")
        cluster.handle("fail", "FAILED")
        assert set(cluster.servers()) == before
        assert len(cluster.ready_nodes()) == 5

    def test_each_control_plane_is_healed_in_turn(self, cluster):
        """The last one of the inventory; the first, living; and the first, dead."""
        first, second, third = named = planes_listed(cluster)
        cluster.kubectl("apply", "-f", "-", stdin=KEPT)
        for server in control_planes(cluster).values():
            as_helm(server, "echo of a CNF >chart")
        assert_healed(cluster, third, order=[first, second, third])
        assert_healed(cluster, first, order=[second, third, first])
        power("kill", control_planes(cluster)[second])
        eventually(lambda: not cluster.ready_nodes()[second])
        assert_healed(cluster, second, order=[third, first, second])
        assert sorted(named) == sorted(control_planes(cluster))
        info = cluster.kubectl(
            *("get", "configmap", "cluster-info", "-n", "kube-public"), "-o", "yaml"
        )
        assert "server: https://10.10." in info
        assert "configmap/kept" in cluster.kubectl("get", "configmap", "kept", "-oname")

    def test_the_api_survives_one_control_plane_and_not_two(self, cluster):
        api, planes = Api(cluster), control_planes(cluster)
        first, second, third = planes.values()
        cluster.kubectl("apply", "-f", "-", stdin=KEPT)
        leader = next(server for server in planes.values() if is_leader(server))
        other = next(one for one in (first, second, third) if one != leader)
        power("kill", leader)
        eventually(api.answers)
        (living,) = {first, second, third} - {leader, other}
        dead = next(name for name, server in planes.items() if server == leader)

        def state() -> dict[str, str]:
            status = cluster.balancer("status")["control_planes"]
            return {one["name"]: one["state"] for one in status}

        eventually(lambda: state()[dead] == "DOWN")
        kubectl = "kubectl --kubeconfig /etc/kubernetes/admin.conf"
        line = f"{kubectl} get configmap kept -o name"
        assert "configmap/kept" in client.on_host(living, "sh", "-c", line)
        members = asked_over_ssh(living)
        assert [one.healthy for one in members].count(True) == 2
        assert judged(members, dead) == ""
        alive = next(name for name, server in planes.items() if server == living)
        assert f"Unhealthy: {dead}" in judged(members, alive)
        told = refused(cluster, planes[alive])
        assert "1 of 3 control planes would be left healthy, and etcd needs 2" in told
        assert f"Unhealthy: {dead}" in told
        power("kill", other)
        eventually(lambda: not api.answers())
        members = asked_over_ssh(living)
        assert not any(one.healthy for one in members)
        assert "etcd has no leader" in judged(members, dead)
        assert "etcd has no leader" in refused(cluster, planes[dead])

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()


def planes_listed(cluster: Cluster) -> list[str]:
    """The control planes in the order of the inventory's groups."""
    return [name for name in cluster.inventory(in_order=True) if "control" in name]


def assert_healed(cluster: Cluster, name: str, order: list[str]) -> None:
    """Heal a control plane, and look whether everything is as it was before."""
    before = control_planes(cluster)
    cluster.heal(before[name])
    after = control_planes(cluster)
    assert after[name] != before[name]
    assert {n: after[n] for n in after if n != name} == {
        n: before[n] for n in before if n != name
    }
    assert planes_listed(cluster) == order
    members = asked_over_ssh(after[name])
    assert [one.name for one in members] == ["etcd1", "etcd2", "etcd3"]
    assert all(one.healthy for one in members)
    assert all(cluster.ready_nodes().values())
    assert len(cluster.ready_nodes()) == 5
    planes = cluster.balancer("status")["control_planes"]
    assert {plane["name"]: plane["state"] for plane in planes} == dict.fromkeys(
        after, "UP"
    )
    # Its own API server, as the load balancer's clients know it.
    kubectl = f"kubectl --kubeconfig {ADMIN} --server https://127.0.0.1:6443"
    name_of = f"--tls-server-name {cluster.balancer_address()}"
    line = f"{kubectl} {name_of} get --raw /readyz"
    assert client.on_host(after[name], "sh", "-c", line) == "ok"
    # What Tacker's commands for Helm need there.
    assert as_helm(after[name], "helm list --short; cat chart") == "of a CNF\n"


def as_helm(server: str, line: str) -> str:
    """What Tacker's user for Helm is told in its directory."""
    return client.on_host(server, "su", "tacker-helm", "-c", f"cd; {line}")


def refused(cluster: Cluster, server: str) -> str:
    """Why a control plane is not healed; its VM stays."""
    before = cluster.servers()
    told = cluster.heal(server, expect="FAILED_TEMP")
    cluster.handle("fail", "FAILED")
    assert cluster.servers() == before
    return told


def is_leader(server: str) -> bool:
    (own,) = etcdctl(server, "endpoint", "status")
    return bool(own["Status"]["leader"] == own["Status"]["header"]["member_id"])
