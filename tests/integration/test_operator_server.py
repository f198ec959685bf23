# SPDX-License-Identifier: Apache-2.0
"""Clusters on the operator's Ansible server, whose nodes trust a private registry."""

import json
import shutil
from collections.abc import Iterator

import pytest

from lab import client
from tests.helpers import certificates
from tests.integration import projects
from tests.integration.cluster import REQUESTS
from tests.integration.conftest import ROOT, Cluster, Lab
from tests.integration.workloads import consistent

CLUSTERS = "/home/ansible/of-the-operator"
MOVED = "/home/ansible/moved"
REGISTRY = {
    "connection_type": 1,
    "server": "registry.example.org:5000",
    "certificate_path": "Files/registry.crt",
    "hosts_string": "10.99.0.1 registry.example.org",
}
PLACE = "/etc/containerd/certs.d/registry.example.org:5000"
MARK = "/home/ansible/owned"


@pytest.fixture(scope="module")
def certified(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """With a package that has the certificate of a registry."""
    source = tmp_path_factory.mktemp("certified")
    shutil.copytree(ROOT / "samples", source, dirs_exist_ok=True)
    files = source / "vnfd" / "simple" / "Files"
    files.mkdir(exist_ok=True)
    (files / "registry.crt").write_bytes(certificates.PEM)
    return Lab(source, source=source)


@pytest.fixture(scope="module")
def operators(lab: Lab) -> Iterator[None]:
    """A conductor whose tacker.conf names the Ansible server."""
    sample = json.loads((REQUESTS / "instantiate-simple.json").read_text())
    given = sample["additionalParams"]["k8s_cluster_installation_param"]["ansible"]
    secrets = client.state() / "data" / "tacker" / "secrets"
    secret = client.state() / "operators-password"
    shutil.copy(secrets / given["password"]["file"], secret)
    kind, key, *_ = lab.ansible(
        "ssh-keygen -y -f /etc/ssh/ssh_host_ed25519_key"
    ).split()
    values = {
        "ansible_host": given["ip_address"],
        "ansible_host_key": f"{kind} {key}",
        "ansible_username": given["username"],
        "ansible_password_file": secret,
        "ansible_kubespray_root_path": given["kubespray_root_path"],
        "ansible_venv_path": given["venv_path"],
        "ansible_inventory_root": CLUSTERS,
    }
    with lab.options(**values):
        yield
    secret.unlink()


@pytest.fixture(scope="module")
def cluster(certified: Lab, operators: None) -> Iterator[Cluster]:
    with certified.instance("operators") as made:
        made.directory = f"{CLUSTERS}/{made.id}"
        del made.parameters["ansible"]
        made.parameters["private_registry_connection_info"] = [REGISTRY]
        yield made


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory, operators: None) -> Iterator[Lab]:
    """As another project sees it."""
    with projects.second_project(Lab, tmp_path_factory.mktemp("second")) as made:
        yield made


def trusting(cluster: Cluster) -> set[str]:
    """The nodes that trust the registry and know its name, by their server's id."""
    found = set()
    for host in cluster.hosts():
        look = f"cat {PLACE}/tacker-k8s-mgmt.crt {PLACE}/hosts.toml || :"
        text = client.on_host(host.id, "sh", "-c", look)
        known = "getent hosts registry.example.org || :"
        names = client.on_host(host.id, "sh", "-c", known)
        if certificates.PEM.decode().strip() in text:
            assert f'ca = ["{PLACE}/tacker-k8s-mgmt.crt"]' in text
            assert names.split()[0] == "10.99.0.1"
            found.add(host.id)
    return found


class TestOperatorServer:
    def test_a_template_is_refused_before_anything_is_touched(self, lab, cluster):
        attack = f"{{{{ lookup('pipe', 'touch {MARK}') }}}}"
        cluster.parameters["kubespray_vars"] = {"ping_access_ip": attack}
        error = cluster.instantiate(expect="FAILED_TEMP")
        assert "kubespray_vars.ping_access_ip: where the Ansible server is" in error
        assert MARK not in error
        cluster.handle("rollback", "ROLLED_BACK")
        del cluster.parameters["kubespray_vars"]
        assert lab.ansible(f"ls -d {MARK} {CLUSTERS} 2>/dev/null || :") == ""

    def test_the_cluster_is_below_the_operators_root(self, lab, cluster):
        cluster.instantiate()
        consistent(cluster, 2)
        assert lab.ansible(f"ls {CLUSTERS}").split() == [cluster.id]
        shown = json.dumps(cluster.show())
        assert "ansible_password" not in shown
        assert CLUSTERS not in shown

    def test_another_project_chooses_nothing_there(self, lab, cluster, second):
        before = projects.host_keys()
        attack = f"{{{{ lookup('pipe', 'touch {MARK}') }}}}"
        paths = {
            "kubespray_root_path": "/home/ansible",
            "transferring_inventory_path": cluster.directory,
        }
        changes = {"ansible": paths, "kubespray_vars": {"ping_access_ip": attack}}
        with projects.refused(second, **changes) as error:
            wanted = [f"ansible.{name}: is the operator's" for name in paths]
            for text in (*wanted, "kubespray_vars.ping_access_ip: where the Ansible"):
                assert text in error
        secret = {"file": str(client.state() / "operators-password")}
        with second.instance("attack") as made:
            named = {**made.parameters["ansible"], "password": secret}
        named["transferring_inventory_path"] = cluster.directory
        with projects.refused(second, ansible=named) as error:
            assert "ansible.password" in error
        assert projects.host_keys() == before
        assert lab.ansible(f"ls -d {MARK} {CLUSTERS}/* 2>/dev/null || :").split() == [
            cluster.directory
        ]

    def test_nodes_trust_the_registry_and_so_do_new_ones(self, cluster):
        before = trusting(cluster)
        assert len(before) == 3
        cluster.scale("OUT")
        consistent(cluster, 3)
        assert before < trusting(cluster)
        server = next(iter(cluster.workers().values()))
        cluster.heal(server)
        assert set(cluster.workers().values()) <= trusting(cluster)

    def test_a_default_that_moved_strands_no_cluster(self, lab, cluster):
        with lab.options(ansible_inventory_root=MOVED):
            server = next(iter(cluster.workers().values()))
            error = cluster.heal(server, expect="FAILED_TEMP")
            assert "There is no inventory of this cluster" in error
            assert "has to be copied from the former place" in error
            # With the owner of the directory, whose account removes the cluster's.
            lab.ansible(f"rm -rf {MOVED} && cp -a {CLUSTERS} {MOVED}")
            cluster.directory = f"{MOVED}/{cluster.id}"
            cluster.handle("retry", "COMPLETED")
            consistent(cluster, 3)
            cluster.terminate()
            # What was moved since it was claimed is left to the operator.
            assert lab.ansible(f"ls {MOVED}").split() == [cluster.id]
