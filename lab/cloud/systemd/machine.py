# SPDX-License-Identifier: Apache-2.0
"""A host with systemd, in the form that the program that starts hosts needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.cloud import networks
from lab.cloud.systemd import cgroups
from lab.settings import PATH

SCRIPTS = Path(__file__).with_name("boot")
# Sparse: it takes of the machine's disk what the host has written.
DISK = "20G"


@dataclass(frozen=True)
class Machine:
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
        """What is run in the lab's namespaces to start it."""
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
            "HOST_DISK_SIZE": DISK,
            "HOST_LOG": str(self.home / "boot.log"),
            "HOST_NET": networks.host_setup(self.nics),
            "HOST_ADDRESS": self.nics[0].address if self.nics else "",
            "HOST_CGROUPS": self.groups.mounts(),
            "HOST_VISIBLE": str(self.visible),
            "HOST_SCRIPTS": str(SCRIPTS),
        }
