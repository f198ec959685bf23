# SPDX-License-Identifier: Apache-2.0
"""What a host with systemd is to those who log in to it, and what is left of it.

Run inside a lab that was started with ``lab up --real``.
"""

import contextlib
import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab import client
from lab.cloud import base
from lab.cloud.addresses import mac_of
from lab.cloud.hosts import Host, Hosts
from lab.cloud.settings import Settings
from lab.cloud.systemd import cgroups

SCRIPT = Path(__file__).parents[2] / "scripts" / "install_external_lb.sh"
CLOUD = client.state() / "cloud"
LIMIT = 30.0
OPTIONS = (
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
    *("-o", "LogLevel=ERROR", "-o", "ConnectTimeout=5"),
)


PEER = "10.99.0.251"


class Machine:
    """A host that Heat does not know, at an address that it gives to no port."""

    def __init__(self, name: str, address: str) -> None:
        self.address = address
        nic = {
            "bridge": "external",
            "address": address,
            "prefix": 24,
            "mac": mac_of(address),
            "port_id": str(uuid.uuid4()),
        }
        self.document: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "name": name,
            "nics": [nic],
        }
        self.cloud = Hosts(CLOUD)
        self.host = Host.from_document(self.document)

    def console(self, script: str) -> str:
        """What a script prints on the host's console."""
        return client.command(self.cloud.enter(self.host, ["bash", "-c", script]))

    def ssh(
        self, account: base.Account, script: str, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A script, run by a user who logs in with a password."""
        return _run(
            [
                "sshpass",
                "-e",
                "ssh",
                *OPTIONS,
                f"{account.name}@{self.address}",
                script,
            ],
            {"SSHPASS": account.password},
            stdin,
        )

    def pings(self) -> bool:
        """Whether it answers from the controller."""
        return not _run(["ping", "-c1", "-W1", self.address]).returncode


def _run(
    argv: Sequence[str], env: dict[str, str] | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["env", *(f"{k}={v}" for k, v in (env or {}).items()), *argv],
        input=stdin or "",
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.fixture(scope="module", autouse=True)
def _systemd() -> None:
    assert Settings.load(CLOUD).boots_systemd("vm"), "lab up --real is needed"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    one = Machine("systemd-test", "10.99.0.250")
    one.cloud.create(one.document)
    try:
        yield one
    finally:
        one.cloud.delete(one.host.id)


def test_systemd_has_started_everything(machine: Machine) -> None:
    assert machine.console("cat /proc/1/comm").strip() == "systemd"
    failed = machine.console("systemctl --failed --no-legend; journalctl -p err -b")
    assert machine.console("systemctl is-system-running").strip() == "running", failed


@pytest.mark.parametrize("account", base.VM_ACCOUNTS, ids=lambda one: one.name)
def test_a_user_logs_in_with_a_password_and_becomes_root(
    machine: Machine, account: base.Account
) -> None:
    done = machine.ssh(account, "sudo -S -p '' id -un", f"{account.password}\n")
    assert (done.returncode, done.stdout) == (0, "root\n"), done.stderr


def test_a_user_logs_in_with_the_key_and_becomes_root(
    machine: Machine, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_bytes((CLOUD / base.KEY_FILE).read_bytes())
    key.chmod(0o600)
    old = ("-P", base.KEY_PASSPHRASE)
    client.command(["ssh-keygen", "-q", "-p", "-f", str(key), *old, "-N", ""])
    to = f"{base.KEYED.name}@{machine.address}"
    done = _run(["ssh", "-i", str(key), *OPTIONS, to, "sudo id -un"])
    assert (done.returncode, done.stdout) == (0, "root\n"), done.stderr


def test_a_wrong_password_is_refused(machine: Machine) -> None:
    wrong = base.Account(base.VM_ACCOUNTS[0].name, "wrong")
    assert machine.ssh(wrong, "true").returncode


def test_nothing_of_the_machine_shows(machine: Machine) -> None:
    assert machine.console("hostname").strip() == "systemd-test"
    assert machine.console("cat /proc/swaps | wc -l").strip() == "1"
    assert machine.console("ls /dev | grep -E '^(sd|vd|loop|nvme)' || :") == ""
    readable = machine.console("head -c 1 /dev/kmsg | wc -c").strip()
    assert readable == "0"


def test_settings_of_the_kernel_are_the_hosts_own(machine: Machine) -> None:
    before = Path("/proc/sys/vm/panic_on_oom").read_text()
    machine.console("sysctl -w vm.panic_on_oom=2 net.ipv4.ip_forward=1")
    assert machine.console("sysctl -n vm.panic_on_oom").strip() == "2"
    assert Path("/proc/sys/vm/panic_on_oom").read_text() == before


def test_modules_of_the_kernel_are_there_and_unknown_ones_are_not(
    machine: Machine,
) -> None:
    machine.console("modprobe br_netfilter && modprobe overlay && modinfo vxlan")
    with pytest.raises(RuntimeError, match="not found"):
        machine.console("modprobe no_such_module")


def test_apt_has_nothing_to_do(machine: Machine) -> None:
    machine.console("apt-get update -q && apt-get install -q -y socat conntrack")


def test_the_load_balancers_script_runs_haproxy_with_systemd(machine: Machine) -> None:
    run = f"cat >/root/lb.sh; bash /root/lb.sh install --control-plane m={PEER}"
    script = SCRIPT.read_text()
    argv = machine.cloud.enter(machine.host, ["bash", "-c", run])
    assert client.command(argv, stdin=script).strip() == "changed"
    assert machine.console("systemctl is-active haproxy").strip() == "active"
    assert machine.console("systemctl is-enabled haproxy").strip() == "enabled"
    again = "bash /root/lb.sh add-worker w=10.99.0.252; systemctl is-active haproxy"
    assert machine.console(again).split() == ["changed", "active"]
    shown = json.loads(machine.console("bash /root/lb.sh status"))
    assert shown["haproxy"]["active"]
    assert shown["haproxy"]["current"]


def test_a_service_has_a_cgroup_of_its_own(machine: Machine) -> None:
    path = machine.console("systemctl show -P ControlGroup ssh.service").strip()
    assert path == "/system.slice/ssh.service"
    found = machine.console(f"find /sys/fs/cgroup -path '*{path}' -type d")
    assert found.strip()


def test_the_memory_of_a_host_is_limited(machine: Machine) -> None:
    limit = Settings.load(CLOUD).memory
    hog = f"python3 -c 'b = b\"x\" * {limit + 2**26}; print(len(b))'"
    with pytest.raises(RuntimeError):
        machine.console(hog)
    assert machine.console("systemctl is-system-running").strip() == "running"


def test_a_host_whose_cables_are_cut_is_silent(machine: Machine) -> None:
    assert machine.pings()
    machine.cloud.connect(machine.host, up=False)
    assert machine.cloud.states()[machine.host.id] == "cut"
    assert not machine.pings()
    machine.cloud.connect(machine.host, up=True)
    _eventually(machine.pings)


def test_another_address_is_plugged_in_while_it_runs(machine: Machine) -> None:
    changed = json.loads(json.dumps(machine.document))
    changed["nics"][0]["address"] = "10.99.0.249"
    machine.cloud.rewire(changed)
    try:
        assert "10.99.0.249/24" in machine.console("ip -brief address show eth0")
        assert "via 10.99.0.1" in machine.console("ip route show default")
    finally:
        machine.cloud.rewire(machine.document)
    _eventually(machine.pings)


def test_a_host_that_is_built_again_is_another_machine(machine: Machine) -> None:
    identity = (
        "cat /etc/machine-id /proc/sys/kernel/random/boot_id"
        " /etc/ssh/ssh_host_ed25519_key.pub"
    )
    before = machine.console(f"touch /root/kept; {identity}").splitlines()
    machine.cloud.kill(machine.host)
    assert machine.cloud.states()[machine.host.id] == "off"
    assert not machine.pings()
    machine.cloud.create(machine.document)
    after = machine.console(identity).splitlines()
    assert len(after) == 3
    assert not set(before) & set(after)
    assert machine.console("ls /root").strip() == ""


def test_two_hosts_are_two_machines_and_a_deleted_one_leaves_nothing(
    machine: Machine,
) -> None:
    other = Machine("systemd-other", PEER)
    other.cloud.create(other.document)
    try:
        ask = "cat /etc/machine-id /proc/sys/kernel/random/boot_id"
        assert not set(machine.console(ask).split()) & set(other.console(ask).split())
        assert machine.console(f"ping -c1 -W2 {PEER}")
        number = other.cloud.pid(other.host.id)
        assert _loops(other.host.id)
    finally:
        other.cloud.delete(other.host.id)
    assert not Path(f"/proc/{number}").exists()
    assert not (CLOUD / "hosts" / other.host.id).exists()
    for one in cgroups.current():
        assert not list(one.mount.glob(f"{cgroups.lab_group(CLOUD)}/{other.host.id}"))
    _eventually(lambda: not _loops(other.host.id))


def _loops(host_id: str) -> list[str]:
    """Files behind the machine's loop devices that are the host's."""
    found = []
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        # A device is given back while one looks.
        with contextlib.suppress(OSError):
            found.append(file.read_text())
    return [text for text in found if host_id in text]


def _eventually(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)
