# SPDX-License-Identifier: Apache-2.0
"""The parameters' accounts, made ready for use."""

import os
import shutil
import subprocess
from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Machine, Role, name_nodes
from tacker_k8s_mgmt.remote.ssh.login import Credentials
from tests.helpers import ssh_keys
from tests.helpers.samples import REMOVED, parsed

ANSIBLE = shutil.which("ansible")
PASSPHRASE = "open sesame"
LOCKED = ssh_keys.make("ed25519", passphrase=PASSPHRASE)
PLAIN = ssh_keys.make("ecdsa-256")


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "worker").write_text(LOCKED.private)
    return tmp_path


@pytest.fixture
def wanted(directory):
    return parsed(
        {
            "ansible.private_key": PLAIN.private,
            "master_node.private_key": PLAIN.private,
            "worker_node.password": REMOVED,
            "worker_node.private_key": f"{directory}/worker",
            "worker_node.private_key_passphrase": PASSPHRASE,
        }
    )


@pytest.fixture
def logins(wanted, directory):
    return Credentials(wanted, str(directory))


def body(text: str) -> list[str]:
    return text.splitlines()[1:-1]


def test_usable_keys_have_no_findings(logins):
    assert logins.findings() == ()


def test_passwords_need_no_key_directory():
    assert Credentials(parsed(), "").findings() == ()


def test_every_unusable_key_is_named_at_once(directory):
    changes = {
        "ansible.private_key": "/etc/shadow",
        "master_node.private_key": LOCKED.private,
        "worker_node.private_key": f"{directory}/nobody",
        "external_lb_param.ssh_private_key": f"{directory}/worker",
        "external_lb_param.ssh_private_key_passphrase": "Wr0ng",
    }
    found = Credentials(parsed(changes), str(directory)).findings()
    assert [finding.split()[0] for finding in found] == [
        "ansible.private_key",
        "master_node.private_key",
        "worker_node.private_key",
        "external_lb_param.ssh_private_key",
    ]
    assert "key_directory" in found[0]
    assert "passphrase, which is missing" in found[1]
    assert "not there" in found[2]
    assert "does not open" in found[3]
    assert "Wr0ng" not in str(found)
    assert not [line for line in body(LOCKED.private) if line in str(found)]


def test_an_endpoint_has_the_key_opened_and_the_password_for_sudo(logins, wanted):
    leader = logins.endpoint(wanted.account(Role.CONTROL_PLANE), "192.0.2.5")
    assert (leader.host, leader.account.username) == ("192.0.2.5", "ubuntu")
    assert leader.account.port == 22
    assert leader.revealed_password() == "cp-s3cret"
    assert ssh_keys.public(leader.revealed_key()) == PLAIN.public
    worker = logins.endpoint(wanted.account(Role.WORKER), "192.0.2.7")
    assert worker.revealed_password() is None
    assert ssh_keys.public(worker.revealed_key()) == LOCKED.public


def test_an_endpoint_with_an_unusable_key_is_an_error_that_names_it(wanted):
    with pytest.raises(errors.PrivateKeyError, match=r"^worker_node\.private_key is"):
        Credentials(wanted, "").endpoint(wanted.account(Role.WORKER), "192.0.2.7")


def test_an_opened_key_logs_in(logins, wanted, sshd, log_in):
    sshd.authorized.add(PLAIN.public)
    account = replace(wanted.server_account, port=sshd.port)
    endpoint = logins.endpoint(account, "127.0.0.1")
    assert log_in(endpoint=endpoint).run(["echo", "in"], timeout=60).stdout == "in\n"


class TestSecretFiles:
    def test_ansible_gets_those_of_the_nodes_without_passphrases(self, logins, wanted):
        files = [
            wanted.account(role).private_key.file_name
            for role in (Role.CONTROL_PLANE, Role.WORKER)
        ]
        written = logins.secret_files()
        assert {name: ssh_keys.public(text) for name, text in written.items()} == {
            files[0]: PLAIN.public,
            files[1]: LOCKED.public,
        }

    def test_one_key_of_both_roles_is_one_file(self):
        changes = {
            "master_node.private_key": PLAIN.private,
            "worker_node.private_key": PLAIN.private,
        }
        assert len(Credentials(parsed(changes), "").secret_files()) == 1

    def test_passwords_give_none(self):
        assert Credentials(parsed(), "").secret_files() == {}


def test_lines_of_opened_keys_are_redacted(logins, wanted):
    logins.findings()
    text = logins.endpoint(wanted.account(Role.WORKER), "host").revealed_key()
    shown = logins.redact(f"{text} {PLAIN.private} {PASSPHRASE} cp-s3cret")
    for secret in (*body(text), *body(PLAIN.private), PASSPHRASE, "cp-s3cret"):
        assert secret not in shown


def test_nothing_shows_an_opened_key(logins, wanted):
    endpoint = logins.endpoint(wanted.account(Role.WORKER), "192.0.2.7")
    assert body(endpoint.revealed_key())[1] not in repr(endpoint)


@pytest.mark.skipif(not ANSIBLE, reason="no ansible in PATH")
def test_ansible_logs_in_with_what_was_written(sshd, session, tmp_path):
    """The whole way: opened, written to the server's directory, named, used."""
    directory = tmp_path / "a cluster"
    directory.mkdir()
    made = parsed(
        {
            "ansible.transferring_inventory_path": str(directory),
            "worker_node.username": "ansible",
            "worker_node.password": REMOVED,
            "worker_node.private_key": LOCKED.private,
            "worker_node.private_key_passphrase": PASSPHRASE,
        }
    )
    for name, text in Credentials(made, "").secret_files().items():
        session.put(f"{directory}/{name}", text)
    worker = Machine(Role.WORKER, "server", "127.0.0.1", "10.10.0.7")
    path = directory / "hosts.yaml"
    path.write_text(inventory.render(name_nodes([worker]), made))
    sshd.authorized.add(LOCKED.public)
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    done = subprocess.run(
        [
            *(ANSIBLE, "all", "-i", str(path), "-m", "raw", "-a", "true"),
            *("-e", f"ansible_port={sshd.port}"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={
            **os.environ,
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_HOME": str(tmp_path / "home"),
            "ANSIBLE_SSH_ARGS": options,
            "ANSIBLE_SSH_USETTY": "False",  # which this server does not have
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "password" not in sshd.tried[1:]
