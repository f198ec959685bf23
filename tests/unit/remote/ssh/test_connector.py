# SPDX-License-Identifier: Apache-2.0
"""The whole way: parameters, bastion, Ansible server, Ansible's own way to a node."""

import getpass
import os
import shutil
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Machine, Role, name_nodes
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.remote.ansible import server as preflight
from tacker_k8s_mgmt.remote.ansible.playbook_runner import PlaybookRunner
from tacker_k8s_mgmt.remote.ssh import known_hosts, login
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, KeyFile
from tacker_k8s_mgmt.remote.ssh.login import Credentials
from tacker_k8s_mgmt.remote.ssh.routes import HostConnector
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.request import host_keys
from tacker_k8s_mgmt.request.accounts import PASSWORD_FILE
from tests.helpers import ssh_keys
from tests.helpers.samples import REMOVED, parsed
from tests.helpers.sshd import PASSWORD, USER, Sshd

OPENSSH = "/usr/sbin/sshd"
EMPTY = "/run/sshd"
ON_BASTION = "b4stion s3cret"
NODE = "node.internal"
PASSPHRASE = "open sesame"
LOCKED = ssh_keys.make("ed25519", passphrase=PASSPHRASE)
needs_ansible = pytest.mark.skipif(
    not shutil.which("ansible-playbook"), reason="no ansible-playbook in PATH"
)
needs_sshpass = pytest.mark.skipif(
    not shutil.which("sshpass"), reason="no sshpass in PATH"
)
TASK = 'echo in >>"$HOME/reached"'
PLAYBOOK = f"""
- hosts: all
  gather_facts: false
  vars: {{ansible_become: false}}
  tasks:
  - raw: {TASK}
"""
CONFIG = """
[ssh_connection]
usetty = False
retries = 0
"""


@pytest.fixture
def bastion(tmp_path):
    server = Sshd(tmp_path / "bastion")
    server.password = ON_BASTION
    yield server
    server.close()


class Site:
    """A cluster of one node behind a bastion, and all that the driver does for it."""

    def __init__(self, sshd: Sshd, tmp_path: Path, changes: dict) -> None:
        self.sshd = sshd
        # Quoting has to survive Ansible, OpenSSH and a shell.
        self.directory = tmp_path / "a cluster"
        self.directory.mkdir()
        self.root = tmp_path / "kubespray"
        self.root.mkdir()
        (self.root / "reach.yml").write_text(PLAYBOOK)
        (self.root / "ansible.cfg").write_text(CONFIG)
        login = {"username": USER, "password": PASSWORD}
        self.params = parsed(
            {
                "ansible.ip_address": "127.0.0.1",
                "ansible.port": sshd.port,
                "ansible.transferring_inventory_path": str(self.directory),
                **{f"ansible.{name}": value for name, value in login.items()},
                **{f"worker_node.{name}": value for name, value in login.items()},
                **changes,
            }
        )
        self.store = KeyFile(str(tmp_path / "state" / "known_hosts"))
        self.logins = Credentials(self.params, str(tmp_path))
        self.ways = HostConnector(self.params, self.logins, self.store, 5)

    def prepare(self, address: str, node_port: int, *more: str) -> None:
        """Look at the nodes, and write all that Ansible needs."""
        workers = [
            Machine(Role.WORKER, f"server-{number}", one, f"10.10.0.{number}")
            for number, one in enumerate((address, *more), 7)
        ]
        node_keys = HostKeys()
        account = replace(self.params.account(Role.WORKER), port=node_port)
        for worker in workers:
            login.open_ssh(
                self.ways.machine(account, worker.ssh_address),
                host_keys=node_keys,
                redact=self.logins.redact,
                deadline=60,
            ).close()
        self.ways.note_bastion(node_keys)
        with self.ways.server() as session:
            files = {
                **self.logins.secret_files(),
                "known_hosts": node_keys.text(),
                "hosts.yaml": inventory.render(name_nodes(workers), self.params),
                "vars.json": f'{{"ansible_port": {node_port}}}',
            }
            for name, text in files.items():
                session.put(f"{self.directory}/{name}", text)

    def run(self) -> None:
        """Run the playbook with run.sh and the real Ansible."""
        sessions: list[Session] = []

        def connect() -> Session:
            if not sessions or not sessions[-1].alive:
                sessions.append(self.ways.server())
            return sessions[-1]

        runner = PlaybookRunner(connect, str(self.directory), str(self.root))
        try:
            runner.run(PlaybookRequest("reach.yml"), total=120, idle=60, poll=0.2)
        except errors.PlaybookError as error:
            raise AssertionError(f"{error}\n{self.log()}") from error
        finally:
            for session in sessions:
                session.close()

    def log(self) -> str:
        return "".join(log.read_text() for log in self.directory.glob("runs/*/log"))


@pytest.fixture
def site(sshd, tmp_path):
    """Give a function that makes the site."""
    made = []

    def make(changes):
        made.append(Site(sshd, tmp_path, changes))
        return made[-1]

    yield make
    for one in made:
        one.ways.close()


def through(server: Sshd, **more: object) -> dict:
    login = {"ip_address": "127.0.0.1", "port": server.port, "username": USER}
    return {f"bastion.{key}": value for key, value in {**login, **more}.items()}


class TestWhoGoesThrough:
    @pytest.mark.parametrize("used_for", [["ansible"], ["vms"], ["playbooks"], REMOVED])
    def test_only_those_that_the_request_names(self, used_for, site, bastion):
        made = site(through(bastion, password=ON_BASTION, used_for=used_for))
        account = made.params.account(Role.CONTROL_PLANE)
        with made.ways.server() as session:
            assert session.run(["echo", "in"], timeout=60).stdout == "in\n"
        forwarded = bool(bastion.forwarded)
        assert forwarded == (used_for is REMOVED or "ansible" in used_for)
        led = made.ways.machine(account, "10.99.0.5").via is not None
        assert led == (used_for is REMOVED or "vms" in used_for)
        assert bool(made.logins.secret_files()) == (
            used_for is REMOVED or "playbooks" in used_for
        )

    def test_without_one_all_are_reached_directly(self, site):
        made = site({})
        made.ways.server().close()
        assert made.ways.finding() == ""
        known = HostKeys()
        made.ways.note_bastion(known)
        assert known.text() == ""
        assert made.ways.machine(made.params.account(Role.WORKER), "w").via is None


class TestHostKeys:
    def test_of_bastion_and_server_are_recorded_apart_from_clusters(
        self, site, bastion, sshd
    ):
        made = site(through(bastion, password=ON_BASTION))
        made.ways.server().close()
        names = [line.split()[0] for line in made.store.load().text().splitlines()]
        assert sorted(names) == sorted(
            [
                f"[127.0.0.1]:{bastion.port}",
                f"[127.0.0.1%127.0.0.1%{bastion.port}]:{sshd.port}",
            ]
        )

    def test_a_changed_one_of_the_bastion_is_refused_with_nothing_sent(
        self, site, bastion
    ):
        made = site(through(bastion, password=ON_BASTION))
        line = f"[127.0.0.1]:{bastion.port} ecdsa-sha2-nistp256 b3RoZXI=\n"
        made.store.add(HostKeys(line))
        with pytest.raises(errors.BastionKeyError, match="is not the one that was"):
            made.ways.server()
        assert bastion.tried == []

    @pytest.mark.parametrize("whose", ["bastion", "ansible"])
    def test_a_given_one_is_the_only_one_and_is_recorded_nowhere(
        self, whose, site, bastion, sshd
    ):
        shown = (bastion if whose == "bastion" else sshd).key
        text = f"{shown.get_name()} {shown.get_base64()} root@host"
        changes = through(bastion, password=ON_BASTION) | {f"{whose}.host_key": text}
        made = site(changes)
        # Another one is recorded: what the request gives is meant.
        behind = known_hosts.behind("127.0.0.1", "127.0.0.1", bastion.port)
        alias = "127.0.0.1" if whose == "bastion" else behind
        port = bastion.port if whose == "bastion" else sshd.port
        line = f"[{alias}]:{port} ecdsa-sha2-nistp256 b3RoZXI=\n"
        made.store.add(HostKeys(line))
        made.ways.server().close()
        recorded = made.store.load().text()
        assert line in recorded
        assert shown.get_base64() not in recorded

    @pytest.mark.parametrize("whose", ["bastion", "ansible"])
    def test_a_given_one_that_is_revoked_is_refused_with_nothing_sent(
        self, whose, site, bastion, sshd
    ):
        host = bastion if whose == "bastion" else sshd
        shown = f"{host.key.get_name()} {host.key.get_base64()}"
        made = site(
            through(bastion, password=ON_BASTION) | {f"{whose}.host_key": shown}
        )
        made.store.add(HostKeys(f"@revoked * {shown}\n"))
        with pytest.raises(
            (errors.RevokedKeyError, errors.BastionKeyError), match="is revoked"
        ):
            made.ways.server()
        assert host.tried == []

    @pytest.mark.parametrize("is_known", [True, False])
    def test_one_of_before_names_no_port_of_the_bastion(
        self, is_known, site, bastion, sshd, tmp_path
    ):
        own, old = tmp_path / "state" / "own", tmp_path / "state" / "known_hosts"
        shown = f"{sshd.key.get_name()} {sshd.key.get_base64()}"
        other = "ecdsa-sha2-nistp256 b3RoZXI="
        old.parent.mkdir()
        old.write_text(
            f"[127.0.0.1%127.0.0.1]:{sshd.port} {shown if is_known else other}\n"
        )
        made = site(through(bastion, password=ON_BASTION))
        made.ways = HostConnector(
            made.params, made.logins, KeyFile(str(own), str(old)), 5
        )
        if is_known:
            made.ways.server().close()
            name = known_hosts.behind("127.0.0.1", "127.0.0.1", bastion.port)
            assert f"[{name}]:{sshd.port} {shown}\n" in own.read_text()
        else:
            with pytest.raises(errors.HostKeyError, match=str(old)):
                made.ways.server()
            assert sshd.tried == []
        made.ways.close()

    @pytest.mark.parametrize("whose", ["bastion", "ansible"])
    def test_any_other_than_the_given_one_gets_nothing(
        self, whose, site, bastion, sshd
    ):
        other = ssh_keys.make("ed25519").public
        changes = through(bastion, password=ON_BASTION) | {f"{whose}.host_key": other}
        host = bastion if whose == "bastion" else sshd
        with pytest.raises(errors.HostKeyError, match="none of those that") as caught:
            site(changes).ways.server()
        assert host.tried == []
        assert host_keys.fingerprint(host.key.get_base64()) in str(caught.value)


def test_a_bastion_of_the_vms_is_tried_by_itself(site, bastion):
    used_for = ["vms", "playbooks"]
    made = site(through(bastion, password="wr0ng one", used_for=used_for))
    finding = made.ways.finding()
    assert finding.startswith("bastion: The bastion 127.0.0.1:")
    assert "wr0ng one" not in finding


class TestReadiness:
    @pytest.fixture
    def look(self, site):
        """Look at the Ansible server of a site."""

        def looked(changes):
            made = site(changes)
            opened = []

            def session():
                opened[:] = opened or [made.ways.server()]
                return opened[0]

            found = preflight.check_server(made.params, made.logins, session, "vnf")
            return [one for one in found.findings if one.startswith("bastion:")]

        return looked

    def test_a_bastion_that_the_ansible_server_reaches_is_no_finding(
        self, look, bastion
    ):
        assert look(through(bastion, password=ON_BASTION)) == []

    def test_one_that_it_does_not_reach_is_a_finding_with_the_way_out(
        self, look, bastion
    ):
        bastion.stop_listening()
        (found,) = look(through(bastion, password=ON_BASTION, used_for=["playbooks"]))
        assert f"cannot open a connection to 127.0.0.1, port {bastion.port}" in found
        assert "take playbooks out of bastion.used_for" in found

    def test_that_does_not_matter_where_playbooks_go_directly(self, look, bastion):
        bastion.stop_listening()
        assert look(through(bastion, password=ON_BASTION, used_for=["vms"])) == []

    def test_a_bastion_that_refuses_the_login_is_reported_once(self, look, bastion):
        (found,) = look(through(bastion, password="wr0ng one"))
        assert "refused the SSH login" in found
        assert bastion.tried == ["password"]


@needs_ansible
class TestAnsible:
    @needs_sshpass
    def test_reaches_a_node_with_a_password_on_the_bastion(self, site, sshd, bastion):
        made = site(through(bastion, password=ON_BASTION))
        bastion.hosts[NODE] = sshd.port
        made.prepare(NODE, sshd.port)
        bastion.forwarded.clear()
        # What Ansible tells its ssh must not reach the bastion's.
        made.run()
        assert (sshd.home / "reached").read_text() == "in\n"
        assert (NODE, sshd.port) in bastion.forwarded
        assert "password" in bastion.tried
        secret = made.directory / PASSWORD_FILE
        assert secret.stat().st_mode & 0o777 == 0o600
        commands = "\n".join((*sshd.commands, made.log()))
        assert ON_BASTION not in commands
        assert ON_BASTION not in (made.directory / "hosts.yaml").read_text()

    @needs_sshpass
    def test_reaches_a_node_with_a_key_on_the_bastion(self, site, sshd, bastion):
        bastion.authorized.add(LOCKED.public)
        key = {"private_key": LOCKED.private, "private_key_passphrase": PASSPHRASE}
        made = site(through(bastion, **key))
        bastion.hosts[NODE] = sshd.port
        made.prepare(NODE, sshd.port)
        made.run()
        assert (sshd.home / "reached").read_text() == "in\n"
        assert "password" not in bastion.tried

    @needs_sshpass
    def test_goes_on_while_the_way_to_the_ansible_server_breaks(
        self, site, sshd, bastion
    ):
        made = site(through(bastion, password=ON_BASTION, used_for=["ansible"]))
        slow = 'for i in 1 2 3; do echo $i >>"$HOME/reached"; sleep 1; done'
        (made.root / "reach.yml").write_text(PLAYBOOK.replace(TASK, slow))
        made.prepare("127.0.0.1", sshd.port)
        logins = bastion.logins

        def cut():
            waiting = Backoff(60)
            while not (sshd.home / "reached").exists() and not waiting.spent():
                waiting.pause()
            bastion.drop()

        thread = threading.Thread(target=cut)
        thread.start()
        made.run()
        thread.join()
        assert (sshd.home / "reached").read_text() == "1\n2\n3\n"
        assert bastion.logins == logins + 1
        assert len(list(made.directory.glob("runs/*/rc"))) == 1

    @needs_sshpass
    @pytest.mark.parametrize("whose", ["bastion", "node"])
    def test_takes_no_other_host_key_than_the_recorded_one(
        self, whose, site, sshd, bastion
    ):
        made = site(through(bastion, password=ON_BASTION))
        bastion.hosts[NODE] = sshd.port
        made.prepare(NODE, sshd.port)
        name = f"[127.0.0.1]:{bastion.port}" if whose == "bastion" else NODE
        known = made.directory / "known_hosts"
        other = ssh_keys.make("ed25519").public
        # Of another kind, too: OpenSSH's accept-new would add that one.
        lines = [
            f"{line.split()[0]} {other}" if name in line.split()[0] else line
            for line in known.read_text().splitlines()
        ]
        known.write_text("\n".join(lines) + "\n")
        bastion.tried.clear()
        sshd.tried.clear()
        with pytest.raises(AssertionError, match="Host key verification failed"):
            made.run()
        # The driver is logged in to the bastion, and logs in to the Ansible server.
        assert bastion.tried == ([] if whose == "bastion" else ["password"])
        assert sshd.tried == ["password"]
        assert not (sshd.home / "reached").exists()
        assert known.read_text() == "\n".join(lines) + "\n"


@needs_ansible
@needs_sshpass
@pytest.mark.skipif(not os.path.exists(OPENSSH), reason="no OpenSSH server here")
class TestOpenSsh:
    """The same through a real sshd, as the user that runs the tests."""

    @pytest.fixture
    def jump(self, tmp_path):
        home = tmp_path / "openssh"
        home.mkdir()
        host_key = home / "host"
        generate = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host_key)]
        subprocess.run(generate, check=True)
        authorized = home / "authorized"
        authorized.write_text(f"{LOCKED.public}\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = {
            "Port": port,
            "ListenAddress": "127.0.0.1",
            "HostKey": f'"{host_key}"',
            "AuthorizedKeysFile": f'"{authorized}"',
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "LogLevel": "DEBUG1",
        }
        config = home / "config"
        config.write_text("".join(f"{k} {v}\n" for k, v in options.items()))
        log = home / "log"
        argv = [OPENSSH, "-D", "-f", config, "-E", log]
        if os.getuid() == 0:
            # Root's sshd insists on a directory that not every machine has made.
            script = f'mount -t tmpfs run /run && mkdir {EMPTY} && exec "$@"'
            argv = ["unshare", "--mount", "sh", "-c", script, "sh", *argv]
        process = subprocess.Popen(argv)
        waiting = Backoff(20)
        while "listening" not in (log.read_text() if log.exists() else ""):
            assert process.poll() is None, "no OpenSSH server can be started"
            assert not waiting.spent(), log.read_text()
            waiting.pause()
        yield port, log
        process.terminate()
        process.wait()

    def test_a_run_logs_in_once_and_its_nodes_share_that(self, site, sshd, jump):
        port, log = jump
        made = site(
            {
                "bastion.ip_address": "127.0.0.1",
                "bastion.port": port,
                "bastion.username": getpass.getuser(),
                "bastion.private_key": LOCKED.private,
                "bastion.private_key_passphrase": PASSPHRASE,
            }
        )
        (made.root / "ansible.cfg").write_text(f"[defaults]\nforks = 1\n{CONFIG}")
        made.prepare("127.0.0.1", sshd.port, "localhost")
        before = log.read_text().count("Accepted publickey")
        assert before == 1
        made.run()
        assert (sshd.home / "reached").read_text() == "in\nin\n"
        said = log.read_text()
        assert said.count("Accepted publickey") == before + 1
        assert f"target 127.0.0.1 port {sshd.port}" in said
