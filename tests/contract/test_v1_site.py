# SPDX-License-Identifier: Apache-2.0
"""The site of an operation in the v1 API, as far as it needs no other host."""

import os
import subprocess
import time
import types
from typing import Any, cast

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import hook as v1_context
from tacker_k8s_mgmt.hooks.v1 import vim_registry
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import (
    Machine,
    MachineIdentity,
    NodeObject,
    Role,
    name_nodes,
)
from tacker_k8s_mgmt.operations import readiness
from tacker_k8s_mgmt.remote import site, vms
from tests.contract.v1_instances import hook
from tests.helpers import ssh_keys
from tests.helpers.fakes.nodes import FakeNode
from tests.helpers.requests import params

MACHINES = tuple(
    Machine(Role.WORKER, f"server-{number}", f"192.0.2.{number}", f"10.0.0.{number}")
    for number in range(1, 25)
)


@pytest.fixture
def one(monkeypatch, tmp_path):
    monkeypatch.setattr(vim_registry, "_plugin", lambda: None)
    instance = types.SimpleNamespace(id="vnf", tenant_id="tenant", vnf_metadata={})
    options = types.SimpleNamespace(
        boot_timeout=0.2, connect_timeout=1, key_directory="", login_timeout=60
    )
    monkeypatch.setattr(v1_context.V1Site, "_keys", lambda _: None)
    nothing = types.SimpleNamespace(read=lambda _: None)
    monkeypatch.setattr(v1_context.V1Site, "workdir", nothing)
    return v1_context.V1Site(hook(instance, options, tmp_path), params())


def test_all_vms_share_one_boot_timeout_and_each_gets_a_try(one, monkeypatch):
    limits = {}

    def silent(machine, account, limit, auth_grace, on_refused):
        limits[machine.server_id] = limit
        time.sleep(limit)
        raise errors.RemoteError(detail=f"no answer from {machine.ssh_address}")

    monkeypatch.setattr(one._vms, "log_in", silent)
    monkeypatch.setattr(site, "_LAST_TRY", 0.01)
    with pytest.raises(errors.RemoteError) as caught:
        one.wait_reachable(MACHINES)
    assert len(limits) == len(MACHINES)
    # 8 are tried side by side; the others come when the time has passed.
    assert sorted(limits.values())[-9] == pytest.approx(0.01, abs=0.005)
    for machine in MACHINES:
        assert f"worker VM {machine.server_id}: no answer" in str(caught.value)


def test_a_refused_login_is_noted_at_once_and_given_up_early(one, monkeypatch):
    notes = []
    machine = MACHINES[0]

    def refusing(machine, account, limit, auth_grace, on_refused):
        assert auth_grace == 60
        on_refused("it takes no passwords")
        assert len(notes) == 1
        place = {"user": "ubuntu", "host": machine.ssh_address, "port": 22}
        raise errors.PasswordsRefused(reason="it takes no passwords", **place)

    monkeypatch.setattr(one._vms, "log_in", refusing)
    one.note = notes.append
    with pytest.raises(errors.RemoteError, match="key_name") as caught:
        one.wait_reachable([machine])
    assert f"worker VM {machine.server_id}: {machine.ssh_address}:22" in str(
        caught.value
    )
    (note,) = notes
    assert machine.ssh_address in note
    assert "it takes no passwords" in note
    assert "60 s" in note


class Directory:
    """The cluster's directory with this file of host keys."""

    path = "/srv/clusters/one"

    def __init__(self, text):
        self.text = text

    def read(self, name):
        if name != "known_hosts":
            return '{"server-9": "192.0.2.9"}'
        if self.text is None:
            raise errors.DamagedFile(path="p", host="h", reason="it is not a text")
        return self.text


@pytest.mark.parametrize(
    "text",
    [
        *(None, "{}\n", "192.0.2.7 ssh-ed"),
        *("", "192.0.2.7 ssh-ed25519 KEY\n192.0.2.8 ssh-ed25519 K"),
        "192.0.2.7 ssh-ed25519 KEY\n",
    ],
)
def test_host_keys_that_cannot_be_read_are_not_taken_for_none(monkeypatch, text):
    directory = Directory(text)
    monkeypatch.setattr(v1_context.V1Site, "workdir", directory)
    made = v1_context.V1Site.__new__(v1_context.V1Site)
    made._node_keys, made._params = None, params()
    with pytest.raises(errors.DamagedFile, match="Or delete it") as caught:
        made.host_keys("192.0.2.7")
    assert "not a text" in str(caught.value) or f"{directory.path}/known_hosts on" in (
        str(caught.value)
    )


class TestPackage:
    """The load balancer's script, before it is run or a VM is there."""

    @pytest.fixture
    def script(self, one, tmp_path, monkeypatch):
        monkeypatch.setattr(one, "_package_root", lambda: str(tmp_path))
        (tmp_path / "Scripts").mkdir()
        return tmp_path / "Scripts" / "lb.sh"

    def test_there_is_none(self, one, script):
        (finding,) = one.package_findings()
        assert finding.endswith("the VNF package has no file Scripts/lb.sh")

    def test_it_does_not_know_the_verbs(self, one, script):
        script.write_text("#!/bin/bash\napt-get update\n")
        (finding,) = one.package_findings()
        assert finding.startswith("external_lb_param.script_path: Scripts/lb.sh: ")
        assert "does not know the verbs" in finding
        assert "`tacker-k8s-mgmt csar build`" in finding

    @pytest.mark.parametrize("contract", [1, 2, 10])
    def test_it_does(self, one, script, contract):
        script.write_text(f"# tacker-k8s-mgmt load-balancer contract: {contract}\n")
        assert one.package_findings() == ()


class TestBastion:
    """Its failure says nothing about the hosts behind it."""

    ERRORS = (
        errors.BastionUnreachable(user="u", host="b", port=22, seconds=1, reason="-"),
        errors.BastionRefused(user="u", host="b", port=22, reason="no"),
        errors.BastionForbids(host="b", target="192.0.2.1"),
    )

    @pytest.fixture(params=ERRORS, ids=lambda error: type(error).__name__)
    def error(self, request, one, monkeypatch):
        def fails(*_, **__):
            raise request.param

        monkeypatch.setattr(one._vms, "log_in", fails)
        return request.param

    def test_a_node_behind_it_is_not_taken_for_dead(self, one, error):
        with pytest.raises(errors.BastionError) as caught:
            one.unusable(name_nodes(MACHINES))
        assert caught.value is error

    def test_it_is_reported_once_and_not_for_each_vm(self, one, error):
        with pytest.raises(errors.BastionError) as caught:
            one.wait_reachable(MACHINES)
        assert caught.value is error


class Session:
    alive = True

    def close(self):
        self.alive = False


class TestExpected:
    """A VM that is logged in to before it is needed."""

    REFUSED, WELL, *_ = MACHINES

    @pytest.fixture
    def opened(self, one, monkeypatch):
        """The sessions that logins led to, in order, or their errors."""
        found = []

        def log_in(machine, account):
            place = {"host": machine.ssh_address, "port": 22}
            refused = errors.AuthError(user="u", reason="no", **place)
            found.append(refused if machine is self.REFUSED else Session())
            if machine is self.REFUSED:
                raise refused
            return found[-1]

        monkeypatch.setattr(one._vms, "log_in", log_in)
        return found

    def test_it_is_logged_in_to_once(self, one, opened):
        one.expect(self.WELL)
        one.expect(self.WELL)
        session = one._vms.get(self.WELL)
        one.expect(self.WELL)
        assert one._vms.get(self.WELL) is session
        assert opened == [session]

    def test_its_first_use_raises_the_error_without_a_second_try(self, one, opened):
        one.expect(self.REFUSED)
        with pytest.raises(errors.AuthError) as caught:
            one._vms.get(self.REFUSED)
        assert opened == [caught.value]

    def test_one_that_has_dropped_since_is_opened_again(self, one, opened):
        one.expect(self.WELL)
        one._vms.get(self.WELL).close()
        assert one._vms.get(self.WELL).alive
        assert len(opened) == 2

    def test_an_unused_session_is_closed_with_the_site(self, one, opened):
        with one:
            one.expect(self.WELL)
            one.expect(self.REFUSED)
        (session,) = (one for one in opened if isinstance(one, Session))
        assert not session.alive


KEY = ssh_keys.make("ed25519").private


def with_login(login):
    """The sample request with another login of the workers."""
    return params(worker_node={"ssh_cp_name": "w_ssh", "nic_cp_name": "w_nic", **login})


PLACE: Any = {"user": "ubuntu", "host": "192.0.2.1", "port": 22}


class TestUnusable:
    """What Ansible could not use either."""

    WHYS = (
        errors.ConnectError(seconds=1, reason="no", **PLACE),
        errors.AuthError(reason="it is locked", **PLACE),
        errors.HostKeyError(host="192.0.2.1", recorded="known_hosts"),
    )

    @pytest.fixture
    def logins(self, one, monkeypatch):
        """The accounts of the logins; all of them are accepted."""
        found = []

        def log_in(node, account, *_):
            found.append(account)
            return Session()

        monkeypatch.setattr(one._vms, "log_in", log_in)
        monkeypatch.setattr(vms, "probe", lambda session: None)
        seen = MachineIdentity("machine", "boot", 1450, 7.5)
        monkeypatch.setattr(vms, "read", lambda session, vm: seen)
        return found

    @pytest.mark.parametrize("why", WHYS, ids=lambda error: type(error).__name__)
    def test_a_login_fails(self, one, monkeypatch, why):
        def log_in(node, account):
            raise why

        monkeypatch.setattr(one._vms, "log_in", log_in)
        node, *_ = name_nodes(MACHINES)
        assert one.unusable([node]) == {node.name: why}

    @pytest.mark.parametrize("name", ["probe", "read"])
    def test_the_disk_is_full_or_sudo_refused(self, one, monkeypatch, logins, name):
        why = errors.UnusableError(host="192.0.2.1", reason="No space left on device")

        def fails(*_):
            raise why

        monkeypatch.setattr(vms, name, fails)
        node, *_ = name_nodes(MACHINES)
        assert one.unusable([node]) == {node.name: why}

    def test_well_ones_are_not_named_and_their_clocks_are_known(self, one, logins):
        node, *_ = name_nodes(MACHINES)
        assert one.unusable([node]) == {}
        assert one.clocks() == {node.server_id: 7.5}

    def test_none_is_asked_for_nothing(self, one, logins):
        assert one.unusable([]) == {}
        assert logins == []

    @pytest.mark.parametrize("renewed", [False, True])
    def test_workers_are_logged_in_to_as_ansible_is(
        self, one, monkeypatch, logins, renewed
    ):
        node, *_ = name_nodes(MACHINES)
        former = with_login({"username": "old", "password": "f0rmer secret"})
        text = inventory.render([node], former)
        directory = types.SimpleNamespace(read=lambda _: text)
        monkeypatch.setattr(v1_context.V1Site, "workdir", directory)
        one.unusable([node], [node.name] if renewed else ())
        (account,) = logins
        wanted = params().account(Role.WORKER)
        assert account.username == (wanted.username if renewed else "old")
        said = one._logins.redact("it was f0rmer secret")
        assert said == ("it was f0rmer secret" if renewed else "it was ***")

    @pytest.mark.parametrize(
        "use",
        [
            lambda one, node: one.wait_reachable([node]),
            lambda one, node: one.identity(node),
            lambda one, node: one.identity(node, again=True),
            lambda one, node: one.restart_kubelets([node]),
            lambda one, node: one.lender()(node).__enter__(),
        ],
    )
    def test_so_are_they_whatever_is_to_be_done_there(
        self, one, monkeypatch, logins, use
    ):
        node, *_ = name_nodes(MACHINES)
        former = with_login({"username": "old", "password": "f0rmer secret"})
        text = inventory.render([node], former)
        directory = types.SimpleNamespace(read=lambda _: text)
        monkeypatch.setattr(v1_context.V1Site, "workdir", directory)
        monkeypatch.setattr(vms, "restart", lambda session: None)
        use(one, node)
        assert [account.username for account in logins] == ["old"]

    def test_a_former_key_is_read_from_the_directory(self, one, monkeypatch, logins):
        node, *_ = name_nodes(MACHINES)
        former = with_login({"username": "old", "private_key": KEY})
        text = inventory.render([node], former)
        read = {inventory.FILE_NAME: text}.get
        directory = types.SimpleNamespace(read=lambda name: read(name, "the key"))
        monkeypatch.setattr(v1_context.V1Site, "workdir", directory)
        one.unusable([node])
        (account,) = logins
        assert account.private_key.given.get_secret_value() == "the key"
        assert account.password is None


class TestIdentity:
    """A VM may boot again while a playbook runs."""

    @pytest.fixture
    def boots(self, one, monkeypatch):
        told = iter(["boot-1", "boot-2"])
        monkeypatch.setattr(one._vms, "get", lambda *_: Session())
        monkeypatch.setattr(one._vms, "log_in", lambda *_: Session())
        monkeypatch.setattr(
            vms, "read", lambda *_: MachineIdentity("machine-1", next(told))
        )

    @staticmethod
    def verified(one, node, reported):
        seen = {node.name: cast(NodeObject, reported)}
        readiness.verify_identity(one, seen, [node])

    def test_it_is_asked_again_when_the_kubelet_says_otherwise(self, one, boots):
        (node,) = name_nodes(MACHINES[:1])
        assert one.identity(node).boot_id == one.identity(node).boot_id == "boot-1"
        reported = FakeNode("w", machine_id="machine-1", boot_id="boot-2")
        readiness.verify_identity(one, {node.name: cast(NodeObject, reported)}, [node])
        assert one.identity(node).boot_id == "boot-2"

    def test_another_machine_is_none_of_it(self, one, boots):
        (node,) = name_nodes(MACHINES[:1])
        reported = FakeNode("w", machine_id="machine-2", boot_id="boot-2")
        with pytest.raises(errors.ClusterError, match="another machine"):
            readiness.verify_identity(
                one, {node.name: cast(NodeObject, reported)}, [node]
            )


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_machine_id_file_need_not_end_its_line(one, end, monkeypatch, tmp_path):
    (tmp_path / "machine-id").write_text(f"4d7a{end}")
    (tmp_path / "boot_id").write_text("9e1c\n")
    program = tmp_path / "cat"
    program.write_text(
        f'#!/bin/sh\nfor file; do /bin/cat "{tmp_path}/${{file##*/}}"; done\n'
    )
    program.chmod(0o755)
    links = '[{"mtu": 1450, "addr_info": [{"local": "10.0.0.1"}]}]'
    (tmp_path / "ip").write_text(f"#!/bin/sh\necho '{links}'\n")
    (tmp_path / "ip").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    def run(argv, timeout, sudo):
        done = subprocess.run(
            argv, env={"PATH": path}, capture_output=True, text=True, check=True
        )
        return types.SimpleNamespace(stdout=done.stdout)

    session = types.SimpleNamespace(run=run)
    monkeypatch.setattr(one._vms, "get", lambda *_: session)
    (node,) = name_nodes(MACHINES[:1])
    identity = one.identity(node)
    assert (identity.machine_id, identity.boot_id, identity.nic_mtu) == (
        "4d7a",
        "9e1c",
        1450,
    )
