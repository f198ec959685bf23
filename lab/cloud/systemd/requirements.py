# SPDX-License-Identifier: Apache-2.0
"""What hosts with systemd need of a machine, and what kubespray is given there."""

import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import LabError, packages
from lab.cloud.systemd import cgroups, root
from lab.settings import PATH, Settings

TOOLS = (
    packages.MMDEBSTRAP,
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
    paths = root.listed(root.HERE / "modules.txt")
    names = [Path(path).stem for path in paths]
    for name in names:
        argv = ["modprobe", "--quiet", name]
        subprocess.run(argv, capture_output=True, timeout=60, check=False)


CAP_SYS_RESOURCE = 24
# kubespray's default for containers.
OPEN_FILES = 65535


def kubespray() -> dict[str, Any]:
    """The variables for hosts on this machine."""
    status = Path("/proc/self/status").read_text()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return needed(status, limit, cgroups.current())


def needed(
    status: str, open_files: int, mounted: Sequence[cgroups.Hierarchy]
) -> dict[str, Any]:
    """The variables for a machine.

    :param status: the text of ``/proc/self/status``.
    :param open_files: the hard limit of open files, -1 for none.
    :param mounted: the machine's hierarchies of cgroups.
    """
    found: dict[str, Any] = {
        # The machine's kernel: no device "dummy", perhaps no ipvs, one size of the
        # table of connections.
        "enable_nodelocaldns": False,
        "kube_proxy_mode": "iptables",
        "kube_proxy_conntrack_max_per_core": 0,
        "kube_proxy_conntrack_min": 0,
    }
    if any(hierarchy.type == cgroups.V1 for hierarchy in mounted):
        # A kubelet from 1.35 on refuses version 1 by default.
        found["kubelet_fail_cgroup_v1"] = False
        found["kubeadm_ignore_preflight_errors"] = ["SystemVerification"]
    if not _may_raise_limits(status):
        # Else runc fails to give important pods a lower OOM score than its own.
        found["containerd_extra_runtime_args"] = {"restrict_oom_score_adj": True}
        if 0 <= open_files < OPEN_FILES:
            found["containerd_base_runtime_spec_rlimit_nofile"] = open_files
    return found


def _may_raise_limits(status: str) -> bool:
    (line,) = (text for text in status.splitlines() if text.startswith("CapBnd:"))
    return bool(int(line.split()[1], 16) >> CAP_SYS_RESOURCE & 1)
