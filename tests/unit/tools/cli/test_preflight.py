# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt preflight``, with an Ansible server and VMs in this process."""

import getpass
import io
import json
import os
import pwd
import re
import socket
import sys
import uuid
from collections import defaultdict
from hashlib import sha512
from pathlib import Path

import pytest

from lab.services import images
from tacker_k8s_mgmt.errors import ConnectionLost
from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.ansible.cluster_directory import MARKER
from tacker_k8s_mgmt.remote.ssh import known_hosts
from tacker_k8s_mgmt.request import accounts, structure
from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.cli.commands import preflight
from tacker_k8s_mgmt.tools.csar import archive, build, vnfd
from tacker_k8s_mgmt.tools.render.console import Console
from tests.helpers import ssh_keys
from tests.helpers.openstack_cloud import OpenStack
from tests.helpers.sshd import PASSWORD, USER, Sshd
from tests.unit.tools.cli.bodies import SECRET_REF, installation, simple
from tests.unit.tools.cli.journals import Recorder

OWNER = str(uuid.UUID(int=7))
LOGINS = ("ansible", "master_node", "worker_node", "external_lb_param")
GALAXY = "namespace: kubernetes_sigs\nname: kubespray\nversion: 2.31.0\n"
LIMITS = "    minimal_ansible_version: 2.18.0\n    maximal_ansible_version: 2.19.0\n"
VERSION = 'echo "ansible-playbook [core 2.18.3]"\n'
# Lets everybody, as `-n -- env ...` and as `-S -p "" -- env ...`.
SUDO = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'


@pytest.fixture
def sshd(tmp_path):
    """An Ansible server that is ready."""
    server = Sshd(tmp_path / "home")
    kubespray = server.home / "kubespray"
    (kubespray / "playbooks").mkdir(parents=True)
    (kubespray / "galaxy.yml").write_text(GALAXY)
    (kubespray / "playbooks" / "ansible_version.yml").write_text(LIMITS)
    (server.home / "venv" / "bin").mkdir(parents=True)
    server.program("../venv/bin/ansible-playbook", VERSION)
    server.program("sshpass", "exit 0\n")
    server.program("sudo", SUDO)
    yield server
    server.close()


@pytest.fixture
def body(sshd):
    found = simple()
    given = installation(found)
    given["ansible"] |= {
        "ip_address": "127.0.0.1",
        "port": sshd.port,
        "kubespray_root_path": str(sshd.home / "kubespray"),
        "venv_path": str(sshd.home / "venv"),
        "transferring_inventory_path": str(sshd.home / "clusters" / "one"),
    }
    for name in LOGINS:
        prefix = "ssh_" if name == "external_lb_param" else ""
        given[name] |= {f"{prefix}username": USER, f"{prefix}password": PASSWORD}
    return found


#: Of the sample's Base HOT.
HOT_TYPES = (
    *("OS::Heat::AutoScalingGroup", "OS::Heat::ScalingPolicy"),
    *("OS::Neutron::Net", "OS::Neutron::Port", "OS::Neutron::SecurityGroup"),
    *("OS::Neutron::Subnet", "OS::Nova::Server", "OS::Nova::ServerGroup"),
)
#: For hosts that do not answer; a busy machine answers late.
IMPATIENT = ("--connect-timeout", "2")


@pytest.fixture
def run(tmp_path, body, capsys):
    """Run the command on the request; its exit code, output and errors."""

    def run(*arguments):
        path = tmp_path / "instantiate.json"
        path.write_text(json.dumps(body))
        state = ("--state-path", str(tmp_path / "state"), "--connect-timeout", "20")
        code = main(["preflight", str(path), *state, *arguments])
        captured = capsys.readouterr()
        assert PASSWORD not in captured.out + captured.err
        return code, captured.out, captured.err

    return run


@pytest.fixture
def findings(run):
    """Run it and return the findings by check; it must say that there are some."""

    def findings(*arguments):
        code, out, _ = run("--json", *arguments)
        document = json.loads(out)
        found = defaultdict(list)
        for one in document["checks"]:
            if one["findings"]:
                found[one["check"]] += one["findings"]
        assert code == (1 if found else 0)
        assert document["problems"] == sum(map(len, found.values()))
        return found

    return findings


@pytest.fixture
def machines(tmp_path, sshd, monkeypatch):
    """VMs on this host, at the port of the SSH server."""
    monkeypatch.setattr(accounts, "SSH_PORT", sshd.port)
    path = tmp_path / "machines.json"
    roles = ("control-plane", "worker", "load-balancer")
    listed = [{"role": role, "ssh_address": "127.0.0.1"} for role in roles]
    path.write_text(json.dumps(listed))
    return str(path)


class TestReady:
    def test_a_table_shows_what_was_checked_and_what_was_not(self, run):
        code, out, err = run()
        assert (code, err) == (0, "")
        assert re.search(r"^request +\S+instantiate.json +good$", out, re.M)
        assert re.search(r"^Ansible server +ansible@127.0.0.1:\d+ +good$", out, re.M)
        assert re.search(r"^kubespray and Ansible .* good$", out, re.M)
        assert re.search(r"^Ansible strategy +linear +good$", out, re.M)
        assert re.search(r"^cluster's directory .* good$", out, re.M)
        assert re.search(r"^VIM name +kubernetes_vim +not checked: ", out, re.M)
        assert out.endswith("No problem was found.\n")

    def test_nothing_is_changed_anywhere(self, run, sshd, tmp_path):
        def everything():
            return {path: path.stat().st_mtime_ns for path in sshd.home.rglob("*")}

        before = everything()
        run()
        assert everything() == before
        assert not (tmp_path / "state").exists()

    def test_the_operators_server_of_tacker_conf(
        self, run, findings, body, sshd, tmp_path
    ):
        given = installation(body).pop("ansible")
        code, out, _ = run()
        assert (code, "is missing" in out) == (1, True)
        (tmp_path / "operators").write_text(f"{PASSWORD}\n")
        keys = {
            "host": "127.0.0.1",
            "port": sshd.port,
            "host_key": f"{sshd.key.get_name()} {sshd.key.get_base64()}",
            "username": USER,
            "password_file": tmp_path / "operators",
            "kubespray_root_path": given["kubespray_root_path"],
            "venv_path": given["venv_path"],
            "inventory_root": sshd.home / "clusters",
        }
        lines = "".join(f"ansible_{name} = {keys[name]}\n" for name in keys)
        conf = tmp_path / "tacker.conf"
        conf.write_text(f"[k8s_mgmt]\n{lines}")
        code, out, _ = run("--config-file", str(conf))
        assert code == 0, out
        assert f"{sshd.home}/clusters/00000000-0000-0000-0000-000000000000" in out
        conf.write_text(f"[k8s_mgmt]\n{lines}ansible_host_key =\n")
        code, _, err = run("--config-file", str(conf))
        assert (code, "ansible_host_key: is missing" in err) == (2, True)

    def test_colours_on_a_terminal(self, run, monkeypatch):
        def terminal(**options):
            return Console(force_terminal=True, width=200, **options)

        monkeypatch.setattr(preflight, "Console", terminal)
        code, out, _ = run()
        assert code == 0
        assert "\x1b[32mgood" in out
        assert "─" in out


class TestServer:
    def test_all_findings_at_once(self, findings, sshd):
        sshd.program("../venv/bin/ansible-playbook", VERSION.replace("2.18", "2.16"))
        directory = sshd.home / "clusters" / "one"
        directory.mkdir(parents=True)
        (directory / "precious").touch()
        found = findings()
        (ansible,) = found["kubespray and Ansible"]
        assert "ansible-core 2.16.3 does not suit kubespray 2.31.0: install" in ansible
        (foreign,) = found["cluster's directory"]
        assert "is not empty and has no marker" in foreign

    def test_a_directory_of_another_vnf_and_of_this_one(
        self, findings, run, sshd, tmp_path
    ):
        directory = sshd.home / "clusters" / "one"
        directory.mkdir(parents=True)
        marker = {"owner": OWNER, "path": str(directory), "format": 1}
        (directory / MARKER).write_text(json.dumps(marker))
        (text,) = findings()["cluster's directory"]
        assert f"belongs to the VNF instance {OWNER}" in text
        other = findings("--vnf-instance-id", str(uuid.UUID(int=8)))
        assert list(other) == ["cluster's directory"]
        assert findings("--vnf-instance-id", OWNER) == {}
        Recorder(tmp_path / "state", vnf_id=OWNER).begin(1, vnf_name="my-cluster")
        assert findings("--vnf-instance-id", "my-cluster") == {}
        code, _, err = run("--vnf-instance-id", "another")
        assert (code, "name another is recorded" in err) == (2, True)

    def test_what_is_installed_inside_a_clusters_directory(self, findings, sshd):
        """It would be deleted with that cluster."""
        marker = {"owner": OWNER, "path": str(sshd.home), "format": 1}
        (sshd.home / "venv" / MARKER).write_text(json.dumps(marker))
        (sshd.home / "kubespray" / MARKER).write_text(json.dumps(marker))
        text = str(findings())
        assert "ansible.venv_path" not in text
        (sshd.home / MARKER).write_text(json.dumps(marker))
        text = str(findings())
        for name in ("kubespray_root_path", "venv_path"):
            assert re.search(f"ansible.{name}: .* is inside {sshd.home}, the", text)

    @pytest.mark.parametrize("free", ["99 4000 4000", "4000 4000 12"])
    def test_too_little_space_for_the_directory(self, findings, sshd, free):
        sshd.program("df", f"echo '{free} /srv'")
        (text,) = findings()["cluster's directory"]
        assert "clusters/one needs 100 MiB and 500 inodes, and on 127.0.0.1" in text

    @pytest.mark.parametrize(
        ("kills", "excluded", "only", "ended"),
        [
            ("b true", "as 0", "as 0", True),
            ("b true", 'as 1 "other"', 'as 2 "other" "{user}"', True),
            ("b true", 'as 2 "other" "{user}"', "as 0", False),
            ("b true", "as 0", 'as 1 "other"', False),
            ("b false", "as 0", "as 0", False),
            ("", "", "", False),
        ],
    )
    def test_a_server_that_ends_what_a_login_leaves_running(
        self, findings, sshd, kills, excluded, only, ended
    ):
        sshd.variables = {"XDG_SESSION_ID": "7"}
        user = pwd.getpwuid(os.geteuid()).pw_name
        answers = f"""
            case "${{!#}}" in
            KillUserProcesses) echo '{kills}' ;;
            KillExcludeUsers) echo '{excluded.format(user=user)}' ;;
            KillOnlyUsers) echo '{only.format(user=user)}' ;;
            esac
        """
        sshd.program("busctl", answers)
        found = findings().get("kubespray and Ansible", [])
        assert [text for text in found if "KillExcludeUsers=" in text] == found
        assert bool(found) == ended
        # No login that logind knows of.
        sshd.variables = {}
        assert findings() == {}

    def test_an_unreachable_server_is_one_finding(self, run, sshd):
        sshd.refuse_connections = 1000
        code, out, _ = run(*IMPATIENT)
        assert code == 1
        assert "problem: Ansible server: ansible: No SSH connection to" in out
        unasked = re.findall("not checked: the Ansible server could not be asked", out)
        assert len(unasked) == 3
        assert out.endswith("\n1 problem.\n")

    def test_a_wrong_password(self, findings, body):
        installation(body)["ansible"]["password"] = "another"
        (text,) = findings()["Ansible server"]
        assert "refused the SSH login of user ansible" in text

    def test_a_server_that_breaks_off_in_between_is_not_called_good(
        self, run, monkeypatch
    ):
        def survey(*_):
            raise ConnectionLost(host="127.0.0.1", command="x", reason="gone")

        monkeypatch.setattr(server, "survey_server", survey)
        code, out, _ = run()
        assert code == 1
        assert "The SSH connection to 127.0.0.1 was lost" in out
        assert re.search("^kubespray and Ansible .* not checked", out, re.M)

    @pytest.mark.parametrize("place", ["known_hosts", "known_hosts.d/project-c0ffee"])
    def test_a_recorded_host_key_that_changed(self, findings, sshd, tmp_path, place):
        known = tmp_path / "state" / place
        known.parent.mkdir(parents=True)
        pair = ssh_keys.make("ecdsa-256").public
        known.write_text(f"[127.0.0.1]:{sshd.port} {pair}\n")
        (text,) = findings()["Ansible server"]
        assert "is not the one that was recorded" in text
        assert str(known) in text

    def test_recorded_host_keys_that_may_not_be_read_are_reported(
        self, run, monkeypatch, tmp_path
    ):
        def read(path):
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(known_hosts, "_read", read)
        code, out, _ = run()
        assert code == 0
        assert f"warning: {tmp_path}/state/known_hosts cannot be read" in out


class TestKeys:
    def test_a_key_that_cannot_be_used_is_found_beside_the_rest(
        self, findings, body, sshd
    ):
        installation(body)["worker_node"]["private_key"] = "/etc/shadow"
        sshd.hide("sshpass")
        sshd.program("../venv/bin/ansible-playbook", "exit 1\n")
        found = findings()
        (text, *_) = found["private keys"]
        assert text.startswith("worker_node.private_key")
        assert "; here key_directory is /" in text
        assert "ansible-playbook was not found" in found["kubespray and Ansible"][0]

    def test_without_the_servers_own_key_it_is_not_asked(self, run, body, sshd):
        installation(body)["ansible"]["private_key"] = "/etc/shadow"
        code, out, _ = run()
        assert code == 1
        assert re.search("Ansible server .* not checked: its key cannot be used", out)
        assert sshd.tried == []

    def test_keys_may_lie_in_the_directory_that_is_given(
        self, findings, body, sshd, tmp_path
    ):
        pair = ssh_keys.make("ed25519")
        sshd.authorized.add(pair.public)
        (tmp_path / "key").write_text(pair.private)
        installation(body)["ansible"]["private_key"] = str(tmp_path / "key")
        assert list(findings()) == ["private keys"]
        assert findings("--key-directory", str(tmp_path)) == {}
        assert "publickey" in sshd.tried


class TestRequest:
    def test_wrong_parameters_are_all_reported_and_no_host_is_asked(
        self, run, body, sshd
    ):
        given = installation(body)
        given["ansible"]["kubespray_root_path"] = "relative"
        given["worker_node"]["aspectid"] = "x"
        code, out, _ = run()
        assert code == 1
        assert "problem: request: ansible.kubespray_root_path: " in out
        assert "problem: request: worker_node.aspectid: " in out
        assert sshd.tried == []

    def test_other_requests_are_refused(self, run, body):
        body.clear()
        body |= {"type": "SCALE_OUT", "aspectId": "worker_instance"}
        code, out, err = run()
        assert (code, out) == (2, "")
        assert "it is a scale request, and preflight is for instantiate ones" in err

    def test_no_file(self, capsys):
        assert main(["preflight", "/nonexistent.json"]) == 2
        assert "/nonexistent.json cannot be read" in capsys.readouterr().err


class TestPackage:
    @pytest.fixture
    def package(self, tmp_path):
        path = tmp_path / "simple.zip"
        build.build("simple", path)
        return str(path)

    def test_the_script_is_in_it(self, run, package):
        code, out, _ = run("--package", package)
        assert code == 0
        assert re.search(r"^load balancer's script +Scripts/\S+ +good$", out, re.M)

    def test_the_script_is_not_in_it(self, findings, body, package):
        installation(body)["external_lb_param"]["script_path"] = "Scripts/other.sh"
        (text,) = findings("--package", package)["load balancer's script"]
        assert "the VNF package has no file Scripts/other.sh" in text

    def test_the_script_does_not_know_the_verbs(self, findings, package, tmp_path):
        files = archive.read(Path(package))
        files["Scripts/install_external_lb.sh"] = b"#!/bin/bash\napt-get update\n"
        archive.write(tmp_path / "other.zip", files)
        found = findings("--package", str(tmp_path / "other.zip"))
        (text,) = found["load balancer's script"]
        assert "it does not know the verbs or options that the driver uses" in text

    def test_it_is_no_package(self, findings, tmp_path):
        (tmp_path / "x.zip").write_text("no zip")
        found = findings("--package", str(tmp_path / "x.zip"))
        assert "cannot be read as a zip" in found["load balancer's script"][0]


class TestMachines:
    def test_login_sudo_and_the_way_from_the_server(self, run, machines):
        code, out, _ = run("--machines", machines)
        assert code == 0
        for role in ("control-plane", "worker", "load-balancer"):
            for check in ("login and sudo", "from the Ansible server"):
                assert re.search(rf"^{check} +{role} 127.0.0.1 +good$", out, re.M)

    def test_a_closed_port(self, findings, machines, monkeypatch):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            closed = taken.getsockname()[1]
        monkeypatch.setattr(accounts, "SSH_PORT", closed)
        found = findings("--machines", machines, *IMPATIENT)
        assert "No SSH connection to ansible@127.0.0.1" in found["login and sudo"][0]
        assert found["from the Ansible server"] == 3 * [
            f"127.0.0.1 cannot open a connection to 127.0.0.1, port {closed}: "
            "Connection refused. Let routes, firewalls and security groups pass it."
        ]

    def test_a_nodes_key_that_cannot_be_used(self, findings, body, machines):
        installation(body)["worker_node"]["private_key"] = "/etc/shadow"
        found = findings("--machines", machines)
        assert set(found) == {"private keys", "login and sudo"}

    def test_a_file_without_vms_is_reported_before_any_host_is_asked(
        self, run, sshd, tmp_path
    ):
        (tmp_path / "m.json").write_text("{}")
        code, out, err = run("--machines", str(tmp_path / "m.json"))
        assert (code, out) == (2, "")
        assert "does not list machines" in err
        assert sshd.tried == []

    def test_without_the_server_its_way_is_not_checked(self, run, sshd, body, machines):
        installation(body)["ansible"]["password"] = "another"
        code, out, _ = run("--machines", machines)
        assert code == 1
        assert re.search(r"^login and sudo +worker 127.0.0.1 +good$", out, re.M)
        assert re.search(r"^from the Ansible server +worker .* not checked", out, re.M)


class TestPasswords:
    @pytest.fixture
    def typed(self, monkeypatch):
        prompts = []

        def ask(prompt):
            prompts.append(prompt)
            return PASSWORD

        monkeypatch.setattr(getpass, "getpass", ask)
        return prompts

    def test_only_what_is_missing_is_asked(self, run, body, typed):
        given = installation(body)
        del given["ansible"]["password"]
        given["external_lb_param"]["ssh_password"] = ""
        code, _, _ = run()
        assert code == 1
        assert typed == []
        code, _, _ = run("--ask-passwords")
        assert code == 0
        assert typed == [
            "Password of ansible, user ansible: ",
            "Password of external_lb_param, user ansible: ",
        ]

    def test_as_tackers_view_spells_it(self, findings, body, typed, machines):
        given = installation(body)
        balancer = given.pop("external_lb_param")
        names = {"sshCpName": "ssh_cp_name", "sshUsername": "ssh_username"}
        given["externalLbParam"] = {
            "scriptPath": balancer["script_path"],
            **{name: balancer[old] for name, old in names.items()},
        }
        assert findings("--ask-passwords", "--machines", machines) == {}
        assert typed == ["Password of external_lb_param, user ansible: "]

    def test_a_key_is_enough(self, findings, body, typed, sshd):
        pair = ssh_keys.make("ed25519")
        sshd.authorized.add(pair.public)
        del installation(body)["ansible"]["password"]
        installation(body)["ansible"]["private_key"] = pair.private
        assert findings("--ask-passwords") == {}
        assert typed == []

    def test_without_a_terminal_nothing_is_read(self, run, body, monkeypatch):
        del installation(body)["ansible"]["password"]

        def no_terminal(*_):
            raise OSError(6, "No such device or address")

        monkeypatch.setattr(os, "open", no_terminal)
        monkeypatch.setattr(sys, "stdin", io.StringIO("not a password\n"))
        code, out, err = run("--ask-passwords")
        assert (code, out) == (2, "")
        assert "there is no terminal to ask for the password of ansible" in err


def test_without_a_request_the_exit_code_is_2():
    with pytest.raises(SystemExit) as caught:
        main(["preflight"])
    assert caught.value.code == 2


class TestBastion:
    @pytest.fixture
    def bastion(self, tmp_path, body):
        server = Sshd(tmp_path / "bastion")
        installation(body)["bastion"] = {
            "ip_address": "127.0.0.1",
            "port": server.port,
            "username": USER,
            "password": PASSWORD,
        }
        yield server
        server.close()

    def test_all_go_through_it(self, run, bastion, machines, sshd):
        code, out, _ = run("--machines", str(machines))
        assert code == 0, out
        # The Ansible server, and the login on each VM.
        assert bastion.forwarded == [("127.0.0.1", sshd.port)] * 4
        assert bastion.logins == 1
        assert "not checked: it goes through the bastion" in out

    @pytest.mark.parametrize("used_for", [["vms"], ["ansible"]])
    def test_a_wrong_password_is_one_finding_that_names_it(
        self, used_for, findings, bastion, body, machines
    ):
        given = installation(body)["bastion"]
        given |= {"password": "wr0ng one", "used_for": used_for}
        found = findings()
        check = "bastion" if used_for == ["vms"] else "Ansible server"
        (text,) = found.pop(check)
        assert not found
        assert f"bastion: The bastion 127.0.0.1:{bastion.port} refused" in text
        assert bastion.tried == ["password"]


class TestReferences:
    @pytest.fixture
    def directory(self, tmp_path, body):
        """Where the server's password lies."""
        place = tmp_path / "secrets"
        place.mkdir()
        (place / "server").write_text(f"{PASSWORD}\n")
        installation(body)["ansible"]["password"] = {"file": f"{place}/server"}
        return place

    def test_files_are_read(self, run, directory):
        code, out, _ = run("--secret-directory", str(directory))
        assert code == 0
        assert re.search(r"^secrets by file +ansible.password +good$", out, re.M)
        assert re.search(r"^Ansible server +ansible@127.0.0.1:\d+ +good$", out, re.M)

    def test_only_below_the_directory(self, run, directory, sshd):
        code, out, _ = run("--secret-directory", str(directory / "other"))
        assert code == 1
        assert "problem: request: ansible.password: is not below the directory" in out
        assert sshd.tried == []

    def test_logins_with_a_secret_in_barbican_are_not_tried(
        self, run, body, machines, sshd
    ):
        given = installation(body)
        given["ansible"]["password"] = SECRET_REF
        given["worker_node"]["password"] = SECRET_REF
        given["master_node"]["private_key"] = SECRET_REF
        code, out, _ = run("--machines", machines)
        assert code == 0
        why = "not checked: .*only a hook asks Barbican"
        assert re.search(rf"^secrets by secret_ref +.*{why}$", out, re.M)
        assert re.search(rf"^private keys +{why}$", out, re.M)
        assert re.search(rf"^Ansible server .*ansible.password: {why[13:]}$", out, re.M)
        assert re.search(rf"^login and sudo +worker .*{why}$", out, re.M)
        assert re.search(rf"^login and sudo +control-plane .*{why}$", out, re.M)
        assert re.search(r"^login and sudo +load-balancer .* good$", out, re.M)
        assert len(sshd.tried) == 1

    def test_their_passwords_may_be_asked_for(self, run, body, monkeypatch):
        installation(body)["ansible"]["password"] = SECRET_REF
        monkeypatch.setattr(getpass, "getpass", lambda prompt: PASSWORD)
        code, out, _ = run("--ask-passwords")
        assert code == 0
        assert re.search(r"^Ansible server .* good$", out, re.M)


class TestCloud:
    @pytest.fixture
    def openstack(self, monkeypatch, tmp_path):
        monkeypatch.delenv("OS_CLOUD", raising=False)
        with OpenStack().running() as running:
            for name, value in running.environment(tmp_path).items():
                monkeypatch.setenv(name, value)
            yield running

    @pytest.fixture
    def csar(self, tmp_path):
        path = tmp_path / "simple.zip"
        build.build("simple", path)
        return str(path)

    @pytest.fixture(autouse=True)
    def programs(self, sshd):
        sshd.program("ip", "exit 0\n")
        sshd.program("ping", "exit 0\n")

    def test_everything_is_there(self, run, openstack, csar, monkeypatch):
        monkeypatch.setattr(openstack, "types", frozenset(HOT_TYPES))
        code, out, err = run("--package", csar, "--cloud")
        assert (code, err) == (0, ""), out
        for row in (
            rf"cloud +nfv at {openstack.auth_url} +good",
            r"VIM name +kubernetes_vim +good",
            r"image +ubuntu-24\S+ \(externalLB, masterNode, workerNode\) +good",
            r"flavour +m1.medium \(masterNode, workerNode\) +good",
            r"network +external +good",
            r"quotas of Neutron +nfv +good",
            r"Heat +2018-08-31 +good",
            r"Ansible server to VMs +external, gateway 10.99.0.1 +good",
            r"Ansible server to mirror +not checked: the request names none",
        ):
            assert re.search(f"^{row}$", out, re.M), (row, out)

    def test_a_package_of_the_same_vnfd_id(self, findings, openstack, csar):
        content = Path(csar).read_bytes()
        known = {
            "id": str(uuid.UUID(int=7)),
            "vnfdId": vnfd.id_in(archive.read(Path(csar))),
            "checksum": {"algorithm": "sha512", "hash": sha512(content).hexdigest()},
        }
        openstack.packages[known["id"]] = known
        assert "VNF package" not in findings("--package", csar, "--cloud")
        for checksum in (
            {"algorithm": "sha512", "hash": sha512(b"another").hexdigest()},
            {"algorithm": "none", "hash": "x"},
            None,
        ):
            known["checksum"] = checksum
            (text,) = findings("--package", csar, "--cloud")["VNF package"]
            assert known["id"] in text
            assert "csar build --vnfd-id new" in text

    def test_what_is_missing_is_reported_in_one_run(
        self, findings, openstack, csar, body, sshd
    ):
        body["extVirtualLinks"][0]["resourceId"] = "nowhere"
        installation(body)["vim_name"] = "openstack-lab"
        openstack.absent.add("image")
        openstack.refused.add("orchestration")
        sshd.program("ip", "exit 2\n")
        found = findings("--package", csar, "--cloud")
        assert set(found) == {
            *("VIM name", "image", "network", "Heat", "Ansible server to VMs"),
            "flavour",
        }
        assert found["image"] == ["The cloud's catalogue has no Glance."]

    def test_a_blank_hides_nothing_of_the_cloud(self, run, openstack, csar, body):
        body["extVirtualLinks"][0]["resourceId"] = structure.mark("network")
        body["extVirtualLinks"][1]["resourceId"] = "nowhere"
        body["additionalParams"]["key_name"] = structure.mark("key pair")
        installation(body)["ansible"]["ip_address"] = structure.mark("address")
        openstack.absent.add("image")
        code, out, _ = run("--package", csar, "--cloud", "--json")
        rows = json.loads(out)["checks"]
        found = {row["check"]: row["findings"] for row in rows if row["findings"]}
        assert code == 1
        assert len(found["request"]) == 3
        assert {"image", "network"} < set(found)
        assert [row["where"] for row in rows if row["check"] == "network"] == [
            *("nowhere", "external")
        ]
        assert "fill in" not in json.dumps({**found, "request": []})
        assert "Ansible server" not in {row["check"] for row in rows}

    def test_a_blank_for_the_vms_leaves_no_question(self, run, openstack, csar, body):
        installation(body)["master_node"] = structure.mark("everything")
        code, out, _ = run("--package", csar, "--cloud")
        assert code == 1
        assert "not checked: the request does not lead to the VMs" in out

    def test_an_image_of_a_site_is_a_warning(self, run, openstack, csar, monkeypatch):
        own = {**images.IMAGES[0], "os_distro": "house"}
        monkeypatch.setattr(images, "IMAGES", (own,))
        monkeypatch.setattr(openstack, "types", frozenset(HOT_TYPES))
        code, out, _ = run("--package", csar, "--cloud")
        assert (code, "warning: image: ubuntu-24" in out) == (0, True)

    def test_a_login_that_keystone_refuses(
        self, findings, openstack, csar, monkeypatch
    ):
        monkeypatch.setenv("OS_PASSWORD", "wrong")
        found = findings("--package", csar, "--cloud")
        assert list(found) == ["cloud"]
        assert "Keystone does not answer as it should" in found["cloud"][0]

    def test_a_package_of_another_flavour(self, findings, openstack, tmp_path):
        path = tmp_path / "ha.zip"
        build.build("ha", path)
        found = findings("--package", str(path), "--cloud")
        (text,) = found["package"]
        assert text == "there is no such flavour in the package (there are: ha)"

    def test_a_server_that_is_not_reached_is_asked_nothing_more(
        self, run, openstack, csar, sshd
    ):
        sshd.refuse_connections = 1000
        _, out, _ = run("--package", csar, "--os-cloud", "envvars", *IMPATIENT)
        silent = "not checked: the Ansible server could not be asked"
        assert re.search(f"^Ansible server to VMs +{silent}$", out, re.M)
        assert re.search(f"^Ansible server to mirror +{silent}$", out, re.M)

    def test_it_needs_the_package(self, run):
        code, _, err = run("--cloud")
        assert code == 2
        assert "--cloud needs --package CSAR" in err
