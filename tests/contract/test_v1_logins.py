# SPDX-License-Identifier: Apache-2.0
"""The accounts of the parameters in the v1 API's site."""

import types
from typing import Any

import pytest

from tacker_k8s_mgmt.remote.ansible.playbook_runner import PlaybookRunner

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.v1 import hook as v1_context
from tacker_k8s_mgmt.hooks.v1 import vim_registry
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Machine, Role, name_nodes
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.remote.ssh import login
from tests.contract.v1_instances import hook
from tests.helpers import ssh_keys
from tests.helpers.samples import parsed

KEY = ssh_keys.make("ed25519")
PROJECT = "0d1c5a3e8f6b4b7f9c2d"
WORKER = Machine(Role.WORKER, "server-7", "192.0.2.7", "10.0.0.7")


@pytest.fixture
def made(monkeypatch, tmp_path):
    monkeypatch.setattr(vim_registry, "_plugin", lambda: None)

    def make(changes, key_directory=""):
        instance = types.SimpleNamespace(id="vnf", tenant_id=PROJECT, vnf_metadata={})
        options = types.SimpleNamespace(
            connect_timeout=1,
            key_directory=key_directory,
            playbook_base_timeout=1,
            playbook_node_timeout=1,
            playbook_idle_timeout=1,
            poll_interval=1,
        )
        of = hook(instance, options, tmp_path / "state")
        return v1_context.V1Site(of, parsed(changes))

    return make


def nowhere(*_args, **_options):
    raise errors.ConnectError(user="u", host="h", port=22, seconds=1, reason="nobody")


class TestFindings:
    def test_an_unusable_key_of_the_server_is_found_before_any_connection(
        self, made, monkeypatch
    ):
        monkeypatch.setattr(login, "open_ssh", lambda *_, **__: pytest.fail("asked"))
        found = made({"ansible.private_key": "/etc/shadow"}).server_findings()
        assert [one.split()[0] for one in found] == ["ansible.private_key"]

    def test_other_keys_are_found_beside_what_is_wrong_with_the_server(
        self, made, monkeypatch
    ):
        monkeypatch.setattr(login, "open_ssh", nowhere)
        found = made({"worker_node.private_key": "/etc/shadow"}).server_findings()
        assert [one.split()[0] for one in found] == [
            "worker_node.private_key",
            "ansible:",
        ]


class TestKeyDirectory:
    def test_each_project_may_have_its_own(self, made, tmp_path, monkeypatch):
        def connect(endpoint, **_):
            assert endpoint.revealed_key().startswith("-----BEGIN OPENSSH")
            raise errors.RemoteError(detail="It shall not have a try.")

        monkeypatch.setattr(v1_context.V1Site, "_keys", lambda _: None)
        monkeypatch.setattr(login, "open_ssh", connect)
        for project in (PROJECT, "another"):
            (tmp_path / project).mkdir()
            (tmp_path / project / "key").write_text(KEY.private)
        allowed = f"{tmp_path}/{{project_id}}"
        mine = {"worker_node.private_key": f"{tmp_path}/{PROJECT}/key"}
        foreign = {"worker_node.private_key": f"{tmp_path}/another/key"}
        with pytest.raises(errors.RemoteError, match="not have a try"):
            made(mine, allowed)._vms.get(WORKER)
        with pytest.raises(errors.PrivateKeyError, match="key_directory"):
            made(foreign, allowed)._vms.get(WORKER)

    def test_without_the_placeholder_it_is_one_for_all(self):
        assert config.project_directory("/etc/keys", PROJECT) == "/etc/keys"


def test_a_run_finds_the_nodes_keys_in_the_clusters_directory(made, monkeypatch):
    one = made({"worker_node.private_key": KEY.private})
    leader = Machine(Role.CONTROL_PLANE, "server-5", "192.0.2.5", "10.0.0.5")
    hosts = inventory.render(name_nodes([leader, WORKER]), parsed())
    files = {"hosts.yaml": hosts, "known_hosts": "192.0.2.7 ssh-ed25519 KEY7\n"}
    done: list[Any] = []

    def connect(endpoint, *, host_keys, **_):
        host_keys.trust(endpoint.host, 22, "ssh-ed25519", f"KEY{endpoint.host[-1]}")
        nowhere()

    class Directory:
        path = "/home/ansible/clusters/simple"

        def read(self, name):
            return files.get(name)

        def write(self, name, text):
            done.append((name, text))

    monkeypatch.setattr(v1_context.V1Site, "workdir", Directory())
    monkeypatch.setattr(login, "open_ssh", connect)
    monkeypatch.setattr(PlaybookRunner, "run", lambda *_, **__: done.append("the run"))
    one.playbooks.run(PlaybookRequest("cluster.yml"), 1, lambda progress: None)
    key = (
        parsed({"worker_node.private_key": KEY.private})
        .account(Role.WORKER)
        .private_key
    )
    assert key is not None
    assert done[0][0] == key.file_name
    assert "PRIVATE KEY" in done[0][1]
    # Ansible takes recorded host keys only, so those that are not there are learnt.
    known = "192.0.2.5 ssh-ed25519 KEY5\n192.0.2.7 ssh-ed25519 KEY7\n"
    assert sorted(done[1][1].splitlines()) == known.splitlines()
    assert (done[1][0], done[2:]) == ("known_hosts", ["the run"])
