# SPDX-License-Identifier: Apache-2.0
"""A cluster whose hosts are reached through a bastion only, and host keys given.

The direct way is cut from the first hook to the last.
"""

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from lab import client
from lab.cloud.addresses import CONTROLLER_ADDRESS, EXTERNAL, mac_of
from tests.helpers import ssh_keys
from tests.integration.conftest import ANSIBLE_SERVER, VM_ACCOUNT, Cluster, Lab

BASTION = "10.99.0.9"
HOST_ID = "0b5e7f3a-6f0e-4f57-9d3a-5b1f5c6f9a10"
LOGIN = {
    "ip_address": BASTION,
    "username": VM_ACCOUNT.name,
    "password": VM_ACCOUNT.password,
}
KEY = ssh_keys.make("ed25519", passphrase="open sesame")


def cloud(verb: str, *arguments: str, stdin: str | None = None) -> None:
    client.command(
        [client.SYSTEM_PYTHON, "-m", "lab.cloud", verb, *arguments], stdin=stdin
    )


def logins(host: str) -> list[str]:
    """The accepted logins on a host, each with the address it came from."""
    log = client.on_host(host, "cat", "/var/log/sshd.log")
    return [line for line in log.splitlines() if line.startswith("Accepted ")]


@pytest.fixture(scope="module")
def host_key() -> Iterator[str]:
    """The fingerprint of the bastion's host key, as its console tells it."""
    nic = {
        "bridge": EXTERNAL,
        "address": BASTION,
        "prefix": 24,
        "mac": mac_of(BASTION),
        "port_id": HOST_ID,
    }
    document = {"id": HOST_ID, "name": "bastion", "role": "vm", "nics": [nic]}
    cloud("create", stdin=json.dumps(document))
    home = f"/home/{VM_ACCOUNT.name}/.ssh"
    script = f"mkdir -p {home} && cat >{home}/authorized_keys && chown -R 1001 {home}"
    client.on_host("bastion", "sh", "-c", script, stdin=f"{KEY.public}\n")
    path = "/etc/ssh/ssh_host_ed25519_key.pub"
    yield client.on_host("bastion", "ssh-keygen", "-l", "-f", path).strip()
    cloud("delete", HOST_ID)


# SSH to the bastion, and to no other host of the lab.
RULES = (
    f"pref 10 to {BASTION} ipproto tcp dport 22 lookup main",
    "pref 20 to 10.99.0.0/24 ipproto tcp dport 22 prohibit",
    "pref 20 to 10.10.0.0/24 ipproto tcp dport 22 prohibit",
)


def on_both(verb: str, rule: str) -> None:
    """A routing rule where SSH connections begin."""
    command = ["ip", "rule", verb, *rule.split()]
    client.command(command)
    client.on_host(ANSIBLE_SERVER, *command)


@pytest.fixture(scope="module")
def direct_way_cut(host_key: str) -> Iterator[None]:
    """The conductor's host and the Ansible server reach others by SSH no more."""
    with contextlib.ExitStack() as undone:
        for rule in RULES:
            on_both("add", rule)
            undone.callback(on_both, "delete", rule)
        yield


@pytest.fixture(scope="module")
def cluster(lab: Lab, host_key: str, direct_way_cut: None) -> Iterator[Cluster]:
    bastion = {**LOGIN, "host_key": host_key}
    with lab.instance("behind", secret=True, bastion=bastion) as made:
        yield made


class TestBastion:
    def test_another_host_key_than_the_given_one_is_refused_before_a_vm_exists(
        self, lab, host_key
    ):
        other = ssh_keys.make("ed25519").public
        before = len(logins("bastion"))
        with lab.instance("between", bastion={**LOGIN, "host_key": other}) as made:
            error = made.instantiate("FAILED_TEMP")
            assert "The bastion cannot be trusted" in error
            assert host_key.split()[1] in error
            assert made.servers() == {}
        assert len(logins("bastion")) == before

    def test_every_login_comes_from_it(self, lab, cluster):
        before = len(logins(ANSIBLE_SERVER))
        cluster.instantiate()
        assert len(cluster.ready_nodes()) == 3
        assert all(cluster.ready_nodes().values())
        seen = {server: logins(server) for server in cluster.servers()}
        assert len(seen) == 4
        seen["Ansible server"] = logins(ANSIBLE_SERVER)[before:]
        for host, accepted in seen.items():
            assert accepted, host
            assert [one for one in accepted if f" from {BASTION} " not in one] == []
        sources = [login.split(" from ")[1].split()[0] for login in logins("bastion")]
        assert set(sources) == {CONTROLLER_ADDRESS, ANSIBLE_SERVER}
        # One for each of the two hooks; one for each node that a playbook begins with.
        assert sources.count(CONTROLLER_ADDRESS) == 2
        assert sources.count(ANSIBLE_SERVER) <= 3

    def test_there_is_no_other_way(self, cluster):
        for server in cluster.servers():
            host = next(one for one in client.hosts() if one.id == server)
            for address in host.addresses:
                with pytest.raises(OSError, match=r"Permission denied|unreachable"):
                    socket.create_connection((address, 22), 5)
                look = f"timeout 5 bash -c 'echo >/dev/tcp/{address}/22' 2>&1; true"
                told = client.on_host(ANSIBLE_SERVER, "sh", "-c", look)
                assert "Permission denied" in told or "unreachable" in told, told

    def test_its_secrets_are_in_files_for_the_owner_alone(self, lab, cluster):
        listed = lab.ansible(f"stat -c '%a %n' {cluster.directory}/*")
        assert f"600 {cluster.directory}/bastion-password" in listed
        cluster.assert_no_secret_in(lab.logs())
        cluster.assert_no_secret_in(lab.ansible(f"cat {cluster.directory}/runs/*/log"))

    def test_a_later_operation_may_bring_a_key(self, cluster):
        password = len([one for one in logins("bastion") if "password" in one])
        key = {"private_key": KEY.private, "private_key_passphrase": "open sesame"}
        cluster.scale("OUT", bastion=key)
        assert len(cluster.ready_nodes()) == 4
        accepted = logins("bastion")
        assert len([one for one in accepted if "password" in one]) == password
        assert [one for one in accepted if "publickey" in one]
        for server in cluster.servers():
            direct = [one for one in logins(server) if f" from {BASTION} " not in one]
            assert direct == []

    def test_a_wrong_password_names_it_and_changes_nothing(self, cluster):
        before = cluster.routes()
        assert len(before) == 3
        error = cluster.scale(
            "IN", expect="FAILED_TEMP", bastion={"password": "no such passw0rd"}
        )
        assert f"The bastion {BASTION}:22 refused the SSH login" in error
        assert "no such passw0rd" not in error
        cluster.handle("fail", "FAILED")
        assert cluster.routes() == before

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()
