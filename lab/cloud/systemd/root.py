# SPDX-License-Identifier: Apache-2.0
"""The Debian root file system of hosts with systemd: made once, kept in the cache.

mmdebstrap makes it of the packages in ``packages.txt``, from the machine's own package
sources and with its own settings for downloads. Runs on the machine itself: inside the
lab there is no network.
"""

import re
import shutil
from pathlib import Path

from lab import LabError, command, files
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
        if not _in_use(former):
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


def _in_use(root: Path, proc: Path = Path("/proc")) -> bool:
    """Whether a host uses a root file system, in any mount namespace."""
    for mounts in proc.glob("[0-9]*/mountinfo"):
        try:
            if str(root) in mounts.read_text():
                return True
        except OSError:
            continue
    return False
