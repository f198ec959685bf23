# SPDX-License-Identifier: Apache-2.0
"""Faults of the hosts: each returns how it comes back."""

import time
from collections.abc import Callable

from lab import client
from tests.chaos.scene import Scene
from tests.integration.cluster import VM_ACCOUNT
from tests.integration.laboratory import ANSIBLE_SERVER, cloud

Fix = Callable[[], None]
_START = 15.0
_SSHD = "ps -eo pid,args | grep 'sshd.*listener' | grep -v grep | awk '{print $1}'"
_SESSIONS = (
    "ps -eo pid,args | grep -E 'sshd(-session)?: ' | grep -v -e listener -e grep"
    " | awk '{print $1}'"
)
_API_SERVER = "ps -eo pid,args | grep 'apiserver.crt' | grep -v grep | awk '{print $1}'"
#: It comes before the real one in every path, also in sudo's.
_DATE = "/usr/local/bin/date"
_FILL = "/fill"
_LEFT = 131072  # bytes
#: What the stand-in for the API server answers with, while it is there.
_REFUSAL = "/run/kube-apiserver.refusal"
_SSHD_SETTINGS = "/etc/ssh/sshd_config.d/few.conf"
_FEW = "MaxSessions 2\nMaxStartups 3:50:6\nLoginGraceTime 5\n"
_GREETING = "export LC_ALL=de_DE.UTF-8; echo 'Guten Tag!'; echo 'Guten Tag!' >&2"


def exists(host: str) -> bool:
    """Whether it is still there: a heal may have deleted it meanwhile."""
    return host == ANSIBLE_SERVER or any(one.id == host for one in client.hosts())


def on(host: str, line: str) -> str:
    """What a shell line prints on a host."""
    return client.on_host(host, "sh", "-c", line)


def later(host: str, line: str) -> Fix:
    """Run a shell line on a host, if that is still there."""

    def fix() -> None:
        if exists(host):
            on(host, line)

    return fix


def cut(host: str) -> Fix:
    """It is without network."""
    cloud("cut", host)

    def restore() -> None:
        if exists(host):
            cloud("restore", host)

    return restore


def killed(host: str) -> None:
    """It is switched off."""
    cloud("kill", host)


def full(host: str) -> Fix:
    """Its disk has no room."""
    on(host, f"cat /dev/zero >{_FILL} 2>/dev/null; true")
    return later(host, f"rm -f {_FILL}")


def nearly_full(host: str) -> Fix:
    """Its disk has room for a small file, as where a kubelet frees a bit of it."""
    fix = full(host)
    on(host, f"truncate -s -{_LEFT} {_FILL}")
    return fix


def stopped(host: str, unit: str) -> Fix:
    """A unit does not run."""
    on(host, f"systemctl stop {unit}")
    return later(host, f"systemctl start {unit}")


def rebooted(host: str) -> None:
    """It has started again, as far as its boot id and its kubelet say."""
    new, boot_id = "/run/new-boot-id", "/proc/sys/kernel/random/boot_id"
    on(host, f"cat {boot_id.replace('boot_id', 'uuid')} >{new}")
    on(host, f"mount --bind {new} {boot_id}")
    on(host, "! systemctl cat kubelet >/dev/null 2>&1 || systemctl restart kubelet")


def rebooting(host: str) -> Fix:
    """Its sessions end, and it answers again when it has started."""
    fix = without_sshd(host)
    on(host, f"for pid in $({_SESSIONS}); do kill -9 $pid; done; true")

    def back() -> None:
        if exists(host):
            rebooted(host)
        fix()

    return back


def ahead(host: str, seconds: int) -> Fix:
    """`date` on it is ahead: all hosts of the lab share the kernel's clock."""
    script = (
        "#!/bin/sh\n"
        'case "$*" in *-d*|*-r*|*-s*) exec /bin/date "$@";; esac\n'
        f'exec /bin/date -d "{seconds} seconds" "$@"\n'
    )
    client.on_host(host, "tee", _DATE, stdin=script)
    on(host, f"chmod 755 {_DATE}")
    return later(host, f"rm -f {_DATE}")


def without_haproxy(host: str) -> None:
    """HAProxy does not run until it is started by hand."""
    on(host, "systemctl stop haproxy")


def without_sshd(host: str) -> Fix:
    """Its SSH server takes connections, and no more."""
    return _paused(host, _SSHD)


def frozen_api(host: str) -> Fix:
    """Its API server takes connections, and no more."""
    return _paused(host, _API_SERVER)


def _paused(host: str, find: str) -> Fix:
    line = f"for pid in $({find}); do kill -%s $pid; done; true"
    on(host, line % "STOP")
    return later(host, line % "CONT")


def refusing_api(host: str, status: int) -> Fix:
    """Its API server answers every request with this status."""
    on(host, f"echo {status} >{_REFUSAL}")
    return later(host, f"rm -f {_REFUSAL}")


def other_password(host: str) -> Fix:
    """The driver's account on it takes another password."""

    def take(password: str) -> None:
        if exists(host):
            client.on_host(host, "chpasswd", stdin=f"{VM_ACCOUNT.name}:{password}\n")

    take("another")
    return lambda: take(VM_ACCOUNT.password)


def without_etcd(host: str) -> None:
    """Its etcd member has lost its data."""
    on(host, "systemctl stop etcd; rm -rf /var/lib/etcd")


def greeting(scene: Scene) -> Fix:
    """Every login on the Ansible server prints something."""
    home = scene.subject.cluster.directory.split("/clusters/")[0]
    path, kept = f"{home}/.bashrc", f"{home}/.bashrc.kept"
    on(ANSIBLE_SERVER, f"touch {path}; cp -p {path} {kept}")
    on(ANSIBLE_SERVER, f'echo "{_GREETING}" | cat - {kept} >{path}')
    return later(ANSIBLE_SERVER, f"mv {kept} {path}")


def few_sessions(host: str) -> Fix:
    """Its SSH server allows few logins at a time, and few sessions in each."""
    client.on_host(host, "tee", _SSHD_SETTINGS, stdin=_FEW)
    on(host, "systemctl reload ssh")
    return later(host, f"rm -f {_SSHD_SETTINGS}; systemctl reload ssh")


def kill_processes(scene: Scene, words: str) -> None:
    """Kill what has these words on the Ansible server, once a playbook runs."""
    lab = scene.subject.lab
    deadline = time.monotonic() + _START
    while "ansible-playbook" not in lab.ansible("ps -eo args"):
        if scene.rested.is_set() or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    find = f"ps -eo pid,user,args | grep -E '{words}' | grep -v grep"
    lab.ansible(
        f"for pid in $({find} | awk '{{print $1}}'); do kill -9 $pid; done; true"
    )
