# SPDX-License-Identifier: Apache-2.0
"""The file systems of hosts with systemd: a Debian root, and the lab's layer on it.

The root is made once and kept in the cache: mmdebstrap makes it of the packages in
``packages.txt``, from the machine's own package sources and with its own settings for
downloads, and on the machine itself, because inside the lab there is no network. The
layer is made in memory at each start of a lab, as those of ordinary hosts are.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from lab import LabError, command, files
from lab.cloud import CloudError, base
from lab.report import Report
from lab.settings import Settings

HERE = Path(__file__).parent
PACKAGES = HERE / "packages.txt"
# Change it to make the root in another way from the same packages.
RECIPE = "1"
LIMIT = 1800
FIELDS = ("ORIGIN", "RELEASE", "COMPONENT", "REPO_URI", "SIGNED_BY")
UNREAD = ("man", "doc", "locale", "info")
# What a host has of its own, or what would be another host's.
REMOVED = (
    "etc/apt/sources.list",
    "etc/apt/sources.list.d/*",
    "etc/apt/apt.conf.d/99mmdebstrap",
    "etc/hostname",
    "etc/machine-id",
    "etc/resolv.conf",
    "etc/ssh/ssh_host_*",
    # Started by what configures it.
    "etc/systemd/system/multi-user.target.wants/haproxy.service",
    "var/lib/dbus/machine-id",
)


def path(settings: Settings) -> Path:
    """Directory of the root file system, whether it is made or not."""
    return _place(settings) / files.digest([PACKAGES], RECIPE, *_system())


def make(settings: Settings, report: Report) -> None:
    """Make the root file system unless it is there, and remove former ones.

    :raises LabError: apt has no sources of this system's, or mmdebstrap failed.
    """
    target = path(settings)
    if target.exists():
        return
    with report.step(f"root file system of hosts, {target}"):
        unfinished = target.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        tree = unfinished / "root"
        log = settings.cache / "install.log"
        sources, downloads = unfinished / "sources.list", unfinished / "apt.conf"
        sources.write_text(_sources())
        downloads.write_text(download_settings())
        command.run(mmdebstrap(tree, sources, downloads), limit=LIMIT, log=log)
        clean(tree)
        tree.rename(target)
        shutil.rmtree(unfinished)
    for former in set(_place(settings).iterdir()) - {target}:
        # A host may use it, in any mount namespace.
        if not files.is_named_by_processes(str(former), "mountinfo"):
            shutil.rmtree(former)


def mmdebstrap(tree: Path, sources: Path, downloads: Path) -> list[str]:
    """The command that makes a root file system.

    :param sources: apt's list of package sources.
    :param downloads: apt's settings for downloads.
    """
    excluded = (f"path-exclude=/usr/share/{name}/*" for name in UNREAD)
    return [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        f"--include={','.join(listed(PACKAGES))}",
        *(f"--dpkgopt={option}" for option in excluded),
        f"--aptopt={downloads}",
        _system()[1],
        str(tree),
        str(sources),
    ]


def listed(file: Path) -> list[str]:
    """The lines of a file, without comments."""
    lines = (line.strip() for line in file.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def own_sources(targets: str, system: str) -> str:
    """A ``sources.list`` of the system's own sources, in apt's old format.

    :param targets: what ``apt-get indextargets`` prints of :data:`FIELDS`, separated
        by ``|``.
    :param system: ``ID`` of its ``os-release``; others' sources are not needed.
    """
    lines = []
    for line in targets.splitlines():
        origin, release, component, uri, signed = line.split("|")
        if origin.lower() != system:
            continue
        # apt leaves the name of a field that a source does not have.
        option = "" if not signed or "$" in signed else f"[signed-by={signed}] "
        lines.append(f"deb {option}{uri} {release} {component}\n")
    return "".join(dict.fromkeys(lines))


def clean(tree: Path) -> None:
    """Remove what hosts may not have in common."""
    for pattern in REMOVED:
        for path in tree.glob(pattern):
            path.unlink()


def _sources() -> str:
    fields = "|".join(f"$({name})" for name in FIELDS)
    argv = ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]
    targets = command.run(argv, limit=60, env=command.quiet_environment())
    found = own_sources(targets, _system()[0])
    if not found:
        raise LabError(
            "apt has no package lists of this system's own sources: apt-get update", 2
        )
    return found


def download_settings() -> str:
    """Proxies, certificates and the like, as apt has them."""
    dumped = command.run(["apt-config", "dump"], limit=60)
    lines = [
        line
        for line in dumped.splitlines()
        if line.startswith("Acquire::") and not line.startswith("Acquire::IndexTargets")
    ]
    return "\n".join([*lines, 'Acquire::Languages "none";']) + "\n"


def _system() -> tuple[str, str]:
    """``ID`` and ``VERSION_CODENAME`` of this system."""
    text = Path("/etc/os-release").read_text()
    found = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    return found.get("ID", ""), found.get("VERSION_CODENAME", "")


def _place(settings: Settings) -> Path:
    return settings.cache / "roots"


FILES = HERE / "files"
NAME = "systemd"
DEPMOD_LIMIT = 60

# Ansible's module for kernel modules reads /proc/modules before it asks what is built
# in, and a file cannot be added to /proc.
NO_MODULES = '''\
"""Gives Python an empty /proc/modules: this kernel has no loadable modules."""

import builtins
import io

_open = builtins.open


def _open_known(file, *args, **kwargs):
    return io.StringIO() if file == "/proc/modules" else _open(file, *args, **kwargs)


builtins.open = _open_known
'''
PYTHON = "usr/lib/python3/dist-packages"


def make_layer(layer: Path, root: Path) -> None:
    """Make the layer.

    :param root: the Debian root file system below it.
    :raises CloudError: a program failed.
    """
    shutil.copytree(FILES, layer)
    for unit in listed(HERE / "masked.txt"):
        mask = layer / "etc/systemd/system" / unit
        mask.parent.mkdir(parents=True, exist_ok=True)
        mask.symlink_to("/dev/null")
    default = layer / "etc/systemd/system/default.target"
    default.symlink_to("/lib/systemd/system/multi-user.target")
    base.write_login_settings(layer, root)
    base.write(layer / "etc/environment", base.ENVIRONMENT)
    _make_modules(layer)


def _make_modules(layer: Path) -> None:
    """Have modprobe find what the machine's kernel has, and find it there already."""
    release = os.uname().release
    directory = layer / "usr/lib/modules" / release
    base.write(directory / "modules.order", "")
    names = "\n".join(listed(HERE / "modules.txt"))
    base.write(directory / "modules.builtin", f"{names}\n")
    argv = ["depmod", "-b", str(layer / "usr"), release]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEPMOD_LIMIT)
    if done.returncode:
        raise CloudError(f"depmod: {done.stderr.strip()}")
    if not Path("/proc/modules").exists():
        base.write(layer / PYTHON / "lab_no_modules.py", NO_MODULES)
        base.write(layer / PYTHON / "lab_no_modules.pth", "import lab_no_modules\n")
