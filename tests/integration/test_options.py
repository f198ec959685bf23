# SPDX-License-Identifier: Apache-2.0
"""Options seen on the nodes, with keys alone, on the oldest kubespray that is known."""

import contextlib
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import client, releases
from lab.cloud import base
from tests.integration.conftest import ANSIBLE_SERVER, Cluster, Lab

RELEASE = "v2.24"
KUBERNETES = "1.27.16"
COMPUTE_HOST = "CIS-node"
#: What that release cannot do.
IMPOSSIBLE = {
    "kubernetes_version": "1.35.4",
    "network": {"plugin": "none"},
    "offline": {"files_repo": "http://10.99.0.1/files"},
    "registries": [{"prefix": "registry:5000", "ca_file": "/etc/ssl/registry.pem"}],
}
NEW_KEY = """
cd /etc/ssh
mv ssh_host_ed25519_key /tmp/key
mv ssh_host_ed25519_key.pub /tmp/key.pub
ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key
kill -HUP $(cat /run/sshd.pid)
"""
OLD_KEY = """
mv /tmp/key /etc/ssh/ssh_host_ed25519_key
mv /tmp/key.pub /etc/ssh/ssh_host_ed25519_key.pub
kill -HUP $(cat /run/sshd.pid)
"""


def act_as(release: str) -> None:
    """Have the stand-in for kubespray on the Ansible server act as a release."""
    client.command([client.SYSTEM_PYTHON, "-m", "lab.cloud", "kubespray", release])


def key(prefix: str = "") -> dict[str, str]:
    """A login with the lab's key, in place of the sample's password."""
    private = (Path(os.environ["LAB_CLOUD_STATE"]) / base.KEY_FILE).read_text()
    return {
        f"{prefix}username": base.KEYED.name,
        f"{prefix}password": "",
        f"{prefix}private_key": private,
        f"{prefix}private_key_passphrase": base.KEY_PASSPHRASE,
    }


@pytest.fixture(scope="module")
def release() -> Iterator[str]:
    act_as(RELEASE)
    yield RELEASE
    act_as(releases.OWN)


@pytest.fixture(scope="module")
def cluster(lab: Lab, release: str) -> Iterator[Cluster]:
    changes: dict[str, Any] = {
        "ansible": key(),
        "external_lb_param": key("ssh_"),
        "master_node": {**key(), "node_labels": ["example.org/rack=r1"]},
        "worker_node": {
            **key(),
            "node_labels": ["example.org/kind=video"],
            "node_taints": ["dedicated=video:PreferNoSchedule"],
            "compute_host_label": COMPUTE_HOST,
            "aspects": [
                {
                    "aspect_id": "worker_instance",
                    "node_labels": ["example.org/tier=front"],
                    "node_taints": ["slow:PreferNoSchedule"],
                }
            ],
        },
        "cluster": {
            "kubernetes_version": KUBERNETES,
            "network": {"plugin": "calico", "encapsulation": "ipip", "mtu": "nodes"},
        },
    }
    with lab.instance("chosen", **changes) as made:
        made.directory = f"/home/{base.KEYED.name}/clusters/{made.name}"
        made.parameters["ansible"]["transferring_inventory_path"] = made.directory
        made.instantiate()
        yield made


def nodes(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The Node objects by name."""
    return {node["metadata"]["name"]: node for node in cluster.nodes()}


def workers(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {name: n for name, n in nodes(cluster).items() if name.startswith("worker-")}


def compute_hosts(cluster: Cluster) -> dict[str, str]:
    """What the label says, by node."""
    return {
        name: node["metadata"]["labels"][COMPUTE_HOST]
        for name, node in workers(cluster).items()
    }


def told_by_heat(lab: Lab, cluster: Cluster) -> dict[str, str]:
    """Where Nova says that each worker's VM is, by the name of its node."""
    records = json.loads(
        (Path(os.environ["LAB_CLOUD_STATE"]) / "records.json").read_text()
    )
    return {
        f"worker-{address.replace('.', '-')}": records["servers"][server]["host"]
        for address, server in cluster.workers().items()
    }


def files(lab: Lab, cluster: Cluster) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hosts of the inventory, and the variables."""
    hosts = yaml.safe_load(lab.ansible(f"cat {cluster.directory}/hosts.yaml"))
    values = json.loads(lab.ansible(f"cat {cluster.directory}/vars.json"))
    return hosts["all"]["hosts"], values


def host_keys(lab: Lab, cluster: Cluster) -> set[str]:
    """The recorded ones, a line each."""
    return set(lab.ansible(f"cat {cluster.directory}/known_hosts").splitlines())


@contextlib.contextmanager
def other_host_keys(*servers: str) -> Iterator[None]:
    """VMs that show other host keys than they had."""
    for server in servers:
        client.on_host(server, "sh", "-c", NEW_KEY)
    try:
        yield
    finally:
        for server in servers:
            client.on_host(server, "sh", "-c", OLD_KEY)


class TestOptions:
    def test_what_the_release_cannot_do_is_refused_with_all_reasons(self, lab, release):
        with lab.instance("impossible", cluster=IMPOSSIBLE) as made:
            error = made.instantiate("FAILED_TEMP")
            assert made.servers() == {}
        version = releases.RELEASES[release].version
        for reason in (
            f"kubespray {version} cannot install Kubernetes 1.35.4",
            f"kubespray {version} has no network plugin none",
            f"kubespray {version} takes no base URLs for downloads",
            f"kubespray {version} gives containerd no CA certificates",
        ):
            assert reason in error

    def test_labels_and_taints_are_on_the_nodes(self, lab, cluster):
        for node in workers(cluster).values():
            labels = node["metadata"]["labels"]
            assert labels["example.org/kind"] == "video"
            assert labels["example.org/tier"] == "front"
            taints = {
                (taint["key"], taint["effect"]) for taint in node["spec"]["taints"]
            }
            assert taints == {
                ("dedicated", "PreferNoSchedule"),
                ("slow", "PreferNoSchedule"),
            }
        (plane,) = (n for name, n in nodes(cluster).items() if name.startswith("con"))
        assert plane["metadata"]["labels"]["example.org/rack"] == "r1"
        assert COMPUTE_HOST not in plane["metadata"]["labels"]
        hosts = compute_hosts(cluster)
        assert hosts == told_by_heat(lab, cluster)
        assert len(set(hosts.values())) == 2

    def test_inventory_has_the_labels_and_variables_the_mtu(self, lab, cluster):
        hosts, values = files(lab, cluster)
        assert values["calico_mtu"] == 1480
        for name, where in compute_hosts(cluster).items():
            assert hosts[name]["node_labels"] == {
                "example.org/kind": "video",
                "example.org/tier": "front",
                COMPUTE_HOST: where,
            }
        versions = {
            node["status"]["nodeInfo"]["kubeletVersion"]
            for node in nodes(cluster).values()
        }
        assert versions == {f"v{KUBERNETES}"}

    def test_a_worker_that_is_added_has_them_too(self, lab, cluster):
        cluster.scale("OUT")
        hosts = compute_hosts(cluster)
        assert hosts == told_by_heat(lab, cluster)
        assert len(set(hosts.values())) == 3

    def test_a_control_plane_with_another_host_key_is_refused(self, lab, cluster):
        before = set(nodes(cluster))
        with other_host_keys(cluster.server("masterNode")):
            error = cluster.scale("IN", expect="FAILED_TEMP")
        assert "host key" in error
        assert f"{cluster.directory}/known_hosts" in error
        cluster.handle("fail", "FAILED")
        assert set(nodes(cluster)) == before

    def test_so_is_a_worker_until_it_has_its_own_again(self, lab, cluster):
        before, recorded = set(nodes(cluster)), host_keys(lab, cluster)
        with other_host_keys(*cluster.workers().values()):
            error = cluster.scale("IN", expect="FAILED_TEMP")
        assert "is not the one that was recorded" in error
        assert f"{cluster.directory}/known_hosts" in error
        assert set(nodes(cluster)) == before
        assert host_keys(lab, cluster) == recorded
        cluster.handle("retry", "COMPLETED")
        assert len(workers(cluster)) == 2

    def test_a_worker_that_is_built_anew_has_the_new_host_and_key_and_no_other_has(
        self, lab, cluster
    ):
        before, recorded = compute_hosts(cluster), host_keys(lab, cluster)
        address, server = next(iter(cluster.workers().items()))
        cluster.heal(server)
        name = f"worker-{address.replace('.', '-')}"
        after = compute_hosts(cluster)
        assert after == told_by_heat(lab, cluster)
        assert after.pop(name) != before.pop(name)
        assert after == before
        (gone,) = recorded - host_keys(lab, cluster)
        (come,) = host_keys(lab, cluster) - recorded
        assert gone.split()[0] == come.split()[0]

    def test_no_login_used_a_password(self, lab, cluster):
        for server in cluster.servers():
            log = client.on_host(server, "cat", "/var/log/sshd.log")
            accepted = [one for one in log.splitlines() if "Accepted" in one]
            assert accepted
            assert [one for one in accepted if "Accepted publickey" not in one] == []
        log = client.on_host(ANSIBLE_SERVER, "cat", "/var/log/sshd.log")
        line = f"Accepted password for {base.KEYED.name} "
        assert line not in log
        text = lab.ansible(f"cat {shlex.quote(cluster.directory)}/hosts.yaml")
        assert "password" not in text

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()
