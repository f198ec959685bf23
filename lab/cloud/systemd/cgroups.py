# SPDX-License-Identifier: Apache-2.0
"""Control groups of hosts with systemd: one of each hierarchy for each host.

Version 1, where each controller has a hierarchy of its own (and systemd one without
any), and version 2, where one hierarchy has all of them. A host's group is the root of
its cgroup namespace; the groups of a lab's hosts are below one of the lab's name, so
that they can be taken away when nothing of the lab runs any more.
"""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.cloud import CloudError

MOUNTINFO = Path("/proc/self/mountinfo")
PREFIX = "tacker-k8s-lab"
#: Controllers without which a kubelet does not start.
NEEDED = ("cpu", "cpuset", "memory", "pids")
NEEDED_V1 = (*NEEDED, "blkio", "cpuacct", "devices", "freezer")
NAMED = "name=systemd"
V1, V2 = "cgroup", "cgroup2"
# Where a process of the lab's enters a host: a group of version 2 that has groups
# below it takes no process itself.
CONSOLE = "console"
REMOVAL_LIMIT = 10.0


@dataclass(frozen=True)
class Hierarchy:
    """A mounted hierarchy.

    :ivar controllers: of version 1: what is mounted there, ``name=systemd`` included.
    """

    mount: Path
    type: str
    controllers: tuple[str, ...] = ()


def hierarchies(mountinfo: str) -> list[Hierarchy]:
    """The hierarchies below ``/sys/fs/cgroup``, from the text of a ``mountinfo``."""
    found = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ")[:3]
        mount = Path(left.split(" ")[4])
        if kind in (V1, V2) and mount.is_relative_to("/sys/fs/cgroup"):
            known = (*NEEDED_V1, NAMED, "hugetlb", "net_cls", "net_prio", "perf_event")
            names = options.split(",") if kind == V1 else []
            controllers = tuple(name for name in names if name in known)
            found[mount] = Hierarchy(mount, kind, controllers)
    return list(found.values())


def current() -> list[Hierarchy]:
    """The hierarchies of this machine."""
    return hierarchies(MOUNTINFO.read_text())


def lacking(mounted: Sequence[Hierarchy]) -> list[str]:
    """What hosts with systemd need and this machine has not, as sentences."""
    v1 = {
        name
        for hierarchy in mounted
        if hierarchy.type == V1
        for name in hierarchy.controllers
    }
    if v1:
        absent = [name for name in (*NEEDED_V1, NAMED) if name not in v1]
        where = "cgroup v1 hierarchies below /sys/fs/cgroup"
    elif mounted:
        listed = (mounted[0].mount / "cgroup.controllers").read_text().split()
        absent = [name for name in NEEDED if name not in listed]
        where = f"controllers in {mounted[0].mount}/cgroup.controllers"
    else:
        return ["cgroups mounted at /sys/fs/cgroup"]
    return [f"{where}: {', '.join(absent)}"] if absent else []


class HostGroups:
    """The groups of one host.

    :param lab: the cloud's state directory, which names the lab's groups.
    :param mounted: the machine's hierarchies.
    """

    def __init__(self, lab: Path, host_id: str, mounted: Sequence[Hierarchy]) -> None:
        self._mounted = mounted
        self._name = f"{lab_group(lab)}/{host_id}"

    def make(self, memory: int) -> None:
        """Make the groups, with a limit of the memory in bytes.

        :raises CloudError: the kernel refused.
        """
        try:
            for hierarchy in self._mounted:
                group = hierarchy.mount / self._name
                if hierarchy.type == V2:
                    _delegate(hierarchy.mount, group)
                    (group / CONSOLE).mkdir(parents=True, exist_ok=True)
                    # Beside hierarchies of version 1 it has no memory controller.
                    if (group / "memory.max").exists():
                        (group / "memory.max").write_text(str(memory))
                    continue
                group.mkdir(parents=True, exist_ok=True)
                if "cpuset" in hierarchy.controllers:
                    _inherit_cpuset(group)
                if "memory" in hierarchy.controllers:
                    (group / "memory.limit_in_bytes").write_text(str(memory))
        except OSError as error:
            raise CloudError(f"The host's cgroups: {error}") from error

    def entrances(self) -> list[Path]:
        """The files that take the number of a process which shall be in the host."""
        groups = (
            hierarchy.mount / self._name / (CONSOLE if hierarchy.type == V2 else "")
            for hierarchy in self._mounted
        )
        return [group / "cgroup.procs" for group in groups]

    def mounts(self) -> str:
        """What is mounted in a host: a line with type, options and directory each.

        The directory is relative to ``/sys/fs/cgroup``, ``.`` for that itself.
        """
        lines = []
        for hierarchy in self._mounted:
            directory = hierarchy.mount.relative_to("/sys/fs/cgroup")
            options = ",".join(
                f"none,{name}" if name == NAMED else name
                for name in hierarchy.controllers
            )
            lines.append(f"{hierarchy.type} {options or 'rw'} {directory}")
        return "\n".join(lines)

    def remove(self) -> None:
        """Remove the groups, the innermost first; they may be gone already.

        :raises CloudError: something still runs in one.
        """
        for hierarchy in self._mounted:
            _remove(hierarchy.mount / self._name)


def lab_group(lab: Path) -> str:
    """Name of the group of all hosts of a lab."""
    return f"{PREFIX}{str(lab).replace('/', '-')}"


def remove_all(lab: Path) -> None:
    """Remove the groups of a lab in which nothing runs.

    :param lab: the cloud's state directory.
    :raises CloudError: something still runs in one.
    """
    for group in current():
        _remove(group.mount / lab_group(lab))


def join(entrances: Sequence[Path], argv: Sequence[str]) -> list[str]:
    """The command that enters groups and becomes another command."""
    into = " ".join(map(str, entrances))
    script = f'for group in {into}; do echo $$ >"$group" || exit; done; exec "$@"'
    return ["sh", "-c", script, "join", *argv]


def _delegate(mount: Path, group: Path) -> None:
    """Make a group and let it and its children use all controllers."""
    group.mkdir(parents=True, exist_ok=True)
    for parent in (mount, group.parent):
        names = (parent / "cgroup.controllers").read_text().split()
        (parent / "cgroup.subtree_control").write_text(
            " ".join(f"+{name}" for name in names)
        )


def _inherit_cpuset(group: Path) -> None:
    for directory in (group.parent, group):
        for name in ("cpuset.cpus", "cpuset.mems"):
            (directory / name).write_text((directory.parent / name).read_text())


def _remove(group: Path) -> None:
    deadline = time.monotonic() + REMOVAL_LIMIT
    for directory in _innermost_first(group):
        while directory.exists():
            try:
                directory.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                # What was killed leaves its group a moment later.
                if time.monotonic() > deadline:
                    raise CloudError(f"cgroup {directory}: {error}") from error
                time.sleep(0.02)


def _innermost_first(group: Path) -> Iterator[Path]:
    for directory, _, _ in os.walk(group, topdown=False):
        yield Path(directory)
