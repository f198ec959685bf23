# SPDX-License-Identifier: Apache-2.0
"""What a machine must have for hosts that boot systemd, and what is set on it for them.

Runs on the machine, before anything is made.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab import LabError, packages
from lab.cloud.systemd import cgroups, layer, root
from lab.settings import PATH, Settings

TOOLS = (
    packages.Tool("mmdebstrap", "mmdebstrap", "root file system of hosts"),
    packages.Tool("mkfs.ext4", "e2fsprogs", "disks of hosts"),
    packages.Tool("depmod", "kmod", "kernel modules as hosts see them"),
)
FILE_SYSTEMS = ("ext4", "overlay", "tmpfs")
LOOP = Path("/dev/loop-control")
INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
# What kubespray asks of one host; all hosts of the lab share the machine's.
LEAST_INSTANCES = 8192


def fulfil(settings: Settings) -> None:
    """See that hosts can boot systemd here; install and set what can be.

    :raises LabError: with all that is missing and cannot be had by itself.
    """
    found = lacking(Path("/proc/filesystems").read_text(), cgroups.current())
    if found:
        raise LabError(
            "Hosts with systemd (lab up --real) cannot run on this machine. It lacks:\n"
            + "\n".join(f"  {finding}" for finding in found)
            + "\nWithout --real the lab needs none of this.",
            2,
        )
    missing = packages.missing(TOOLS)
    packages.install(missing, settings.cache / "install.log")
    _load_modules()
    if int(INSTANCES.read_text()) < LEAST_INSTANCES:
        INSTANCES.write_text(str(LEAST_INSTANCES))


def lacking(filesystems: str, mounted: Sequence[cgroups.Hierarchy]) -> list[str]:
    """What the kernel or the distribution does not have, and how to get it.

    :param filesystems: the text of ``/proc/filesystems``.
    """
    known = [line.split()[-1] for line in filesystems.splitlines()]
    absent = [name for name in FILE_SYSTEMS if name not in known]
    found = [f"file system {name} in the kernel (modprobe {name})" for name in absent]
    if not LOOP.exists():
        found.append(f"{LOOP}, for hosts' disks (modprobe loop; in a container: /dev)")
    found += cgroups.lacking(mounted)
    if not shutil.which("apt-get", path=f"{os.environ.get('PATH', '')}:{PATH}"):
        found.append("apt, which the hosts' Debian comes from: use Debian or Ubuntu")
    return found


def _load_modules() -> None:
    """Load what hosts cannot; a kernel that has something built in finds no module."""
    paths = root.listed(layer.HERE / "modules.txt")
    names = [Path(path).stem for path in paths]
    for name in names:
        argv = ["modprobe", "--quiet", name]
        subprocess.run(argv, capture_output=True, timeout=60, check=False)
