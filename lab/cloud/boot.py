# SPDX-License-Identifier: Apache-2.0
"""Starting a host: its layers, namespaces, cables and the talk with its process 1.

What an image does at its first start is done here in place of cloud-init: the key of
the server's key pair is installed for the image's own user. Of user data it knows
``ssh_pwauth``, and of ``user`` what sets the password of the image's own user.
"""

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from lab.cloud import CloudError, base, networks
from lab.cloud.systemd import cgroups
from lab.settings import PATH

INIT = Path(__file__).with_name("host_init.sh")
# Most of a second is normal on a busy machine; fifty hosts at once take longer.
BOOT_LIMIT = 90.0
DISK = "1g"
OUTPUT_TAIL = 600


@dataclass(frozen=True)
class Machine:
    """What an ordinary host is made of.

    :ivar layers: file layers above the machine's own, topmost first.
    :ivar mount: an empty directory; what is mounted there only the host sees.
    :ivar masks: directories of the machine that the host must not see.
    :ivar visible: directory of the machine that it sees read-only.
    """

    hostname: str
    nics: Sequence[networks.Nic]
    layers: Sequence[Path]
    mount: Path
    masks: Sequence[Path]
    visible: Path

    def command(self) -> list[str]:
        """What is run in the lab's namespaces: it talks as host_init.sh does."""
        namespaces = ["--fork", "--pid", "--mount", "--uts", "--ipc", "--net"]
        # host_init.sh makes its mounts private: unshare cannot do so in a chroot.
        return ["unshare", *namespaces, "--propagation", "unchanged", "sh", str(INIT)]

    def environment(self) -> dict[str, str]:
        """The variables that host_init.sh reads."""
        return {
            "PATH": PATH,
            "HOST_NAME": self.hostname,
            "HOST_LAYERS": ":".join(map(str, self.layers)),
            "HOST_MOUNT": str(self.mount),
            "HOST_DISK": DISK,
            "HOST_NET": networks.host_setup(self.nics),
            "HOST_ADDRESS": self.nics[0].address if self.nics else "",
            "HOST_MASKS": "\n".join(map(str, self.masks)),
            "HOST_VISIBLE": str(self.visible),
        }


def start(machine: "Machine | SystemdMachine", log: Path) -> int:
    """Start a host and wait until it is ready.

    The host is in a session of its own and outlives its starter.

    :param log: takes what the host says while it boots.
    :return: its process 1, as a number in the lab's pid namespace.
    :raises CloudError: it did not come up; nothing of it is left running.
    """
    deadline = time.monotonic() + BOOT_LIMIT
    with log.open("w") as output:
        process = subprocess.Popen(
            machine.command(),
            env=machine.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,
        )
    pid = 0
    try:
        # The types of subprocess do not express that both are pipes.
        go, said = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        with go, said:
            pid = int(_expect(said, "PID", deadline))
            networks.plug(machine.nics, pid)
            go.write(b"go\n")
            go.flush()
            _expect(said, "READY", deadline)
    except (CloudError, OSError, ValueError) as error:
        _abandon(process, pid)
        said_last = log.read_text(errors="replace")[-OUTPUT_TAIL:].strip()
        raise CloudError(
            f"Host {machine.hostname} did not start: {error}. {said_last}".strip()
        ) from error
    return pid


def _expect(output: IO[bytes], word: str, deadline: float) -> str:
    """The rest of the next line, which starts with a word."""
    left = max(0.0, deadline - time.monotonic())
    if not select.select([output], [], [], left)[0]:
        raise CloudError(f"no {word} within {BOOT_LIMIT:.0f} s")
    line = output.readline().decode(errors="replace")
    if not line.startswith(word):
        raise CloudError(f"it ended before {word}" if not line else line.strip())
    return line[len(word) :].strip()


def _abandon(process: subprocess.Popen[bytes], pid: int) -> None:
    for victim in (pid, process.pid):
        if victim:
            try:
                os.kill(victim, 9)
            except ProcessLookupError:
                continue
    process.wait(10)


# Names that Ubuntu's cloud images have, and cloud-init; sshd takes the first value.
_OF_IMAGE = base.SSHD_SETTINGS / "60-cloudimg-settings.conf"
_OF_FIRST_START = base.SSHD_SETTINGS / "50-cloud-init.conf"
_SHADOW = Path("etc/shadow")


def make_first_start_layer(
    layer: Path, below: Sequence[Path], public_key: str, config: Mapping[str, Any]
) -> None:
    """What the first start changes, as a file layer above those of the image.

    :param below: the layers of the image, topmost first.
    :param public_key: of the key pair; "" without one.
    :param config: the document of ``#cloud-config``; empty without user data.
    """
    layer.mkdir(parents=True)
    if public_key:
        home = layer / "home" / base.STOCK_ACCOUNT.name
        base.authorize(home, base.FIRST_PERSON, public_key)
        base.own(home, base.FIRST_PERSON)
    if "ssh_pwauth" in config:
        _passwords(layer / _OF_FIRST_START, allowed=bool(config["ssh_pwauth"]))
    user = config.get("user") or {}
    if user.get("hashed_passwd") and not user.get("lock_passwd", True):
        _set_password(layer, below, str(user["hashed_passwd"]))


def refuse_passwords(image: Path) -> None:
    """Have sshd accept no passwords, as that of a stock image.

    :param image: the layer of the image.
    """
    _passwords(image / _OF_IMAGE, allowed=False)


def _passwords(file: Path, *, allowed: bool) -> None:
    base.write(file, f"PasswordAuthentication {'yes' if allowed else 'no'}\n")


def _set_password(layer: Path, below: Sequence[Path], hashed: str) -> None:
    lines = [line.split(":") for line in _read(below, _SHADOW).splitlines()]
    changed = [
        ":".join([name, hashed if name == base.STOCK_ACCOUNT.name else old, *rest])
        for name, old, *rest in lines
    ]
    base.write(layer / _SHADOW, "\n".join([*changed, ""]), 0o600)


def _read(layers: Sequence[Path], name: Path) -> str:
    return next(
        path for path in (one / name for one in layers) if path.exists()
    ).read_text()


SCRIPTS = Path(__file__).parent / "systemd" / "boot"
# Sparse: it takes of the machine's disk what the host has written.
SYSTEMD_DISK = "20G"


@dataclass(frozen=True)
class SystemdMachine:
    """What a host with systemd is made of.

    :ivar layers: file layers, topmost first; the last one is the Debian root.
    :ivar mount: an empty directory; what is mounted there only the host sees.
    :ivar home: the host's directory in the cloud's state, where its disk is made.
    :ivar visible: directory of the machine that the host sees read-only.
    :ivar groups: its control groups, made already.
    """

    hostname: str
    nics: Sequence[networks.Nic]
    layers: Sequence[Path]
    mount: Path
    home: Path
    visible: Path
    groups: cgroups.HostGroups

    def command(self) -> list[str]:
        """What is run in the lab's namespaces: it talks as host_init.sh does."""
        kinds = ("pid", "mount", "uts", "ipc", "net", "cgroup")
        unshare = ["unshare", "--fork", *(f"--{kind}" for kind in kinds)]
        init = ["--propagation", "unchanged", "sh", str(SCRIPTS / "init.sh")]
        return cgroups.join(self.groups.entrances(), [*unshare, *init])

    def environment(self) -> dict[str, str]:
        """The variables that the scripts in ``boot`` read."""
        return {
            "PATH": PATH,
            "HOST_NAME": self.hostname,
            "HOST_LAYERS": ":".join(map(str, self.layers)),
            "HOST_MOUNT": str(self.mount),
            "HOST_DISK": str(self.home / "disk.img"),
            "HOST_DISK_SIZE": SYSTEMD_DISK,
            "HOST_LOG": str(self.home / "boot.log"),
            "HOST_NET": networks.host_setup(self.nics),
            "HOST_ADDRESS": self.nics[0].address if self.nics else "",
            "HOST_CGROUPS": self.groups.mounts(),
            "HOST_VISIBLE": str(self.visible),
            "HOST_SCRIPTS": str(SCRIPTS),
        }
