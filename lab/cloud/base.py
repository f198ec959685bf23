# SPDX-License-Identifier: Apache-2.0
"""The hosts' file layers, between the machine's files and a host's own.

One tmpfs in the lab's mount namespace holds a layer that all hosts share and one layer
per role. A directory marked opaque hides what the machine has there: accounts, keys,
settings and logs of the machine do not show in a host.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.cloud import CloudError
from lab.cloud.settings import LAYER_OF_ALL, Settings

HERE = Path(__file__).parent
NOBODY = 65534
FIRST_PERSON = 1000

OPAQUE = (
    "etc/ssh",
    "etc/sudoers.d",
    "etc/systemd/system",
    "home",
    "media",
    "mnt",
    "opt",
    "root",
    "srv",
    "var/log",
)

HOST_KEY = Path("etc/ssh/ssh_host_ed25519_key")
#: Of Debian's and Red Hat's sshd, and read before the other settings, as there.
SSHD_SETTINGS = Path("etc/ssh/sshd_config.d")
# The key exchange that OpenSSH prefers makes a login cost 100 instead of 40 ms of work.
SSHD_CONFIG = f"""\
Include /{SSHD_SETTINGS}/*.conf
HostKey /{HOST_KEY}
PasswordAuthentication yes
KbdInteractiveAuthentication no
PermitRootLogin no
UsePAM yes
UseDNS no
KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org
PrintMotd no
AcceptEnv LANG LC_*
MaxStartups 100:30:200
MaxSessions 100
Subsystem sftp internal-sftp
"""

# The machine's own PAM stacks may ask for what a namespace has not (audit, logind).
PAM_SSHD = """\
auth     required pam_unix.so
account  required pam_nologin.so
account  required pam_unix.so
session  required pam_unix.so
session  optional pam_env.so
password required pam_deny.so
"""
PAM_SUDO = """\
auth     required pam_unix.so
account  required pam_unix.so
session  required pam_unix.so
session  optional pam_env.so
"""

SUDOERS = """\
Defaults env_reset
Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
root ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
"""

ENVIRONMENT = """\
PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LANG=C.UTF-8
"""
# kubectl ends before its memory is worth collecting: a quarter of its work.
NO_COLLECTION = "GOGC=off\n"


@dataclass(frozen=True)
class Account:
    """A user that may log in to a host, with the key of the lab if without a password.

    :ivar sudo: what the user may do as root, in sudo's words.
    """

    name: str
    password: str
    sudo: str = ""


#: The user of a stock cloud image: without a password, and without a key until
#: cloud-init installs one.
STOCK_ACCOUNT = Account("ubuntu", "", "NOPASSWD: ALL")
#: The key pair that Nova's stand-in has.
KEY_PAIR = "lab"

# The password of the second one occurs nowhere else, so that tests find where it is
# written; sudo requires it as well.
VM_ACCOUNTS = (
    Account("ubuntu", "ubuntu", "NOPASSWD: ALL"),
    Account("installer", "vm-Pa55word-of-the-lab", "ALL"),
)
# On all hosts; the private key is in the cloud's state directory.
KEYED = Account("keyed", "", "NOPASSWD: ALL")
KEY_FILE = "keyed"
KEY_PASSPHRASE = "open sesame of the lab"


def mount(settings: Settings) -> bool:
    """Make the place for the layers, in memory, and the hosts' mount point.

    :return: whether it is new, and empty.
    :raises CloudError: the kernel refused the mount.
    """
    for directory in (settings.base, settings.mount_point):
        directory.mkdir(parents=True, exist_ok=True)
    if os.path.ismount(settings.base):
        return False
    argv = ["mount", "-t", "tmpfs", "-o", "mode=0755,size=256m", "lab-base"]
    done = subprocess.run(
        [*argv, str(settings.base)], capture_output=True, text=True, timeout=20
    )
    if done.returncode:
        raise CloudError(f"The hosts' file layers: {done.stderr.strip()}")
    return True


def unmount(settings: Settings) -> None:
    """Take away layers that could not be finished."""
    subprocess.run(["umount", str(settings.base)], check=True, timeout=20)


def make_common_layer(settings: Settings) -> None:
    """The layer of all hosts: sshd, sudo, PAM, systemctl's stand-in."""
    layer = settings.layer(LAYER_OF_ALL)
    for name in OPAQUE:
        make_opaque(layer / name)
    # Enter it is all that other users may: the cache can lie below.
    (layer / "root").chmod(0o711)
    write_login_settings(layer, Path("/"))
    write(layer / "etc/pam.d/sshd", PAM_SSHD)
    write(layer / "etc/pam.d/sudo", PAM_SUDO)
    write(layer / "etc/sudoers", SUDOERS, 0o440)
    write(layer / "etc/environment", ENVIRONMENT + NO_COLLECTION)
    # Plain files: where the machine has links, a host would write through them.
    for name in ("etc/hostname", "etc/hosts", "etc/machine-id"):
        write(layer / name, "")
    (layer / "var/lib/dbus").mkdir(parents=True)
    (layer / "var/lib/dbus/machine-id").symlink_to("/etc/machine-id")
    systemctl = (HERE / "systemctl").read_text()
    write(layer / "usr/bin/systemctl", systemctl, 0o755)
    if not Path("/bin").is_symlink():
        write(layer / "bin/systemctl", systemctl, 0o755)
    write(layer / "usr/lib/lab-host/main.sh", (HERE / "host_main.sh").read_text())


def write_login_settings(layer: Path, root: Path) -> None:
    """Write what hosts of all kinds have: settings of sshd and of the resolver.

    :param root: the file system that the layer lies on.
    """
    write(layer / "etc/ssh/sshd_config", SSHD_CONFIG + _sshd_extra(root))
    (layer / SSHD_SETTINGS).mkdir(exist_ok=True)
    # Nothing serves names there, so look-ups fail at once instead of timing out.
    write(layer / "etc/resolv.conf", "nameserver 10.99.0.1\n")


def make_key(settings: Settings) -> str:
    """Make the key of those without a password; the public one."""
    path = settings.state / KEY_FILE
    _keygen(path, KEY_PASSPHRASE)
    return path.with_suffix(".pub").read_text()


def make_key_pair(settings: Settings) -> tuple[str, str]:
    """Make the key pair of Nova's stand-in; the private key and the public one."""
    path = settings.state / f"keypair-{KEY_PAIR}"
    _keygen(path, "")
    return path.read_text(), path.with_suffix(".pub").read_text()


def make_host_key(settings: Settings, role: str) -> None:
    """The SSH host key of the hosts with a role; the same for the life of the state.

    For a host that a site keeps while the lab is away: clients that know its key
    would be right to refuse another.
    """
    kept = settings.state / f"{role}-{HOST_KEY.name}"
    _keygen(kept, "")
    write(settings.layer(role) / HOST_KEY, kept.read_text(), 0o600)


def _keygen(path: Path, passphrase: str) -> None:
    if not path.exists():
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)]
        subprocess.run(argv, check=True, timeout=20)


def make_accounts(
    layer: Path,
    accounts: Sequence[Account],
    public_key: str,
    root: Path = Path("/"),
) -> None:
    """The users of a host: its system users, locked, and those that may log in.

    :param public_key: of those without a password; "" if they get one later.
    :param root: the file system that the layer lies on; default: the machine's.
    """
    numbered = list(enumerate(accounts, FIRST_PERSON))
    users = _system_lines(root / "etc/passwd")
    users += [
        f"{one.name}:x:{number}:{number}::/home/{one.name}:/bin/bash"
        for number, one in numbered
    ]
    groups = _system_lines(root / "etc/group")
    groups += [f"{one.name}:x:{number}:" for number, one in numbered]
    write(layer / "etc/passwd", "\n".join(users) + "\n")
    write(layer / "etc/group", "\n".join(groups) + "\n")
    hashed = {
        account.name: hashed_password(account.password)
        for account in accounts
        if account.password
    }
    shadow = [f"{n}:{hashed.get(n, '*')}:19000:0:99999:7:::" for n in _names(users)]
    write(layer / "etc/shadow", "\n".join(shadow) + "\n", 0o600)
    gshadow = [f"{name}:*::" for name in _names(groups)]
    write(layer / "etc/gshadow", "\n".join(gshadow) + "\n", 0o600)
    rules = [
        f"{account.name} ALL=(ALL:ALL) {account.sudo}\n"
        for account in accounts
        if account.sudo
    ]
    if rules:
        write(layer / "etc/sudoers.d/90-cloud-init-users", "".join(rules), 0o440)
    for number, one in numbered:
        make_home(layer / "home" / one.name, number, root / "etc/skel")
        if public_key and not one.password:
            authorize(layer / "home" / one.name, number, public_key)


def authorize(home: Path, owner: int, public_key: str) -> None:
    """Let the holder of a key log in as the user of a home directory."""
    keys = home / ".ssh" / "authorized_keys"
    write(keys, public_key, 0o600)
    own(keys.parent, owner)


def make_home(home: Path, owner: int, skeleton: Path) -> None:
    """A home directory with the files that a new user gets.

    :param skeleton: the directory that has them.
    """
    home.mkdir(parents=True)
    for name in (".bashrc", ".profile"):
        if (skeleton / name).exists():
            shutil.copy(skeleton / name, home / name)
    own(home, owner)


def own(tree: Path, owner: int) -> None:
    """Give a tree to a user."""
    for path in (tree, *tree.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file of a layer, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def make_opaque(directory: Path) -> None:
    """A directory of a layer that hides the machine's directory of that name."""
    directory.mkdir(parents=True)
    os.setxattr(directory, "trusted.overlay.opaque", b"y")


def _sshd_extra(root: Path) -> str:
    """Newer servers lock out clients with wrong passwords, which tests use."""
    option = "PerSourcePenalties no"
    sshd = ["/usr/sbin/sshd", "-G", "-f", "/dev/null", "-o", option]
    argv = sshd if root == Path("/") else ["chroot", str(root), *sshd]
    known = subprocess.run(argv, capture_output=True, timeout=20).returncode == 0
    return f"{option}\n" if known else ""


def _system_lines(file: Path) -> list[str]:
    lines = file.read_text().splitlines()
    return [line for line in lines if _is_system(line.split(":"))]


def _is_system(fields: list[str]) -> bool:
    number = int(fields[2]) if len(fields) > 2 and fields[2].isdigit() else FIRST_PERSON
    return number < FIRST_PERSON or number == NOBODY


def _names(lines: Iterable[str]) -> list[str]:
    return [line.split(":")[0] for line in lines]


def hashed_password(password: str) -> str:
    """A password as /etc/shadow has it."""
    # These need no protection from guesses, and each login and sudo computes the hash.
    salt = f"rounds=1000${secrets.token_hex(8)}"
    argv = ["openssl", "passwd", "-6", "-salt", salt, "-stdin"]
    done = subprocess.run(
        argv, input=password, capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.strip()
