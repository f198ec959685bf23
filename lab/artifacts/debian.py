# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian packages for images, without installing them on the machine."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab import LabError, command
from lab.files import digest
from lab.settings import Settings

LIMIT = 600
OS_RELEASE = Path("/etc/os-release")
# Change it to keep other parts of packages.
RECIPE = "1"
# What packages need for their installation only, and nginx for a check of its own.
_SKIPPED = frozenset(
    {"debconf", "cdebconf", "dpkg", "init-system-helpers", "install-info", "iproute2"}
)
_NEEDLESS = (
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian"),
    *("usr/share/bash-completion", "usr/share/bug", "usr/lib/systemd"),
)
# Directories of the root that are links on an installed system; newer packages leave
# them out, older ones have them as directories.
_MERGED = ("bin", "sbin", "lib", "lib64")
_ONLY = tuple(
    f"--no-{kind}"
    for kind in (
        "recommends",
        "suggests",
        "conflicts",
        "breaks",
        "replaces",
        "enhances",
    )
)


def tree(settings: Settings, names: Sequence[str]) -> Path:
    """A directory with the contents of packages and of all that they depend on.

    :param settings: the tree is kept in the cache, for this Debian's release.
    :raises LabError: apt does not have them, or there is no apt.
    """
    if not shutil.which("apt-get"):
        raise LabError(
            f"Images need programs of Debian ({', '.join(names)}) and there is no apt:"
            " give a mirror, MIRROR=<directory>",
            2,
        )
    key = digest([OS_RELEASE], *names, RECIPE)
    target = settings.cache / "artifacts" / f"{names[0]}-debian-{key}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        work = Path(name)
        # apt's own user fetches the files.
        work.chmod(0o777)
        env = command.quiet_environment()
        wanted = sorted(closure(names))
        argv = ["apt-get", "download", "-q", *wanted]
        command.run(argv, limit=LIMIT, cwd=work, env=env)
        root = work / "root"
        for package in sorted(work.glob("*.deb")):
            command.run(["dpkg-deb", "-x", str(package), str(root)], limit=LIMIT)
        _merge_usr(root)
        for part in _NEEDLESS:
            shutil.rmtree(root / part, ignore_errors=True)
        root.rename(target)
    return target


def closure(names: Sequence[str]) -> set[str]:
    """Packages and all that they need to run."""
    found: set[str] = set()
    new = set(names)
    while new:
        found |= new
        new = set(_needs(sorted(new))) - found - _SKIPPED
    return found


def _merge_usr(root: Path) -> None:
    """Make a tree's layout that of an installed system."""
    for name in _MERGED:
        former, merged = root / name, root / "usr" / name
        if former.is_dir():
            shutil.copytree(former, merged, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(former)
        merged.mkdir(parents=True, exist_ok=True)
        former.symlink_to(f"usr/{name}")


def _needs(names: Sequence[str]) -> Iterator[str]:
    """What packages depend on directly; of alternatives the first."""
    said = command.run(["apt-cache", *_ONLY, "depends", *names], limit=LIMIT)
    alternative = False
    for bar, need in re.findall(r"(?m)^ ([ |])(?:Pre)?Depends: (\S+)$", said):
        if not alternative and not need.startswith("<"):
            yield need
        alternative = bar == "|"
