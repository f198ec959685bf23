# SPDX-License-Identifier: Apache-2.0
"""The kubespray that the real laboratory runs, as its user names it.

It is a directory, a git repository with a reference (``/src/kubespray@v2.31.0``), or a
release (``v2.31.0``), which is cloned from its home on the Internet.
"""

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab import LabError, command
from lab.artifacts.releases import DEFAULT
from lab.report import Report

HOME = "https://github.com/kubernetes-sigs/kubespray"
REQUIREMENTS = "requirements.txt"
LIMIT = 900.0
_RELEASE = re.compile(r"v\d+\.\d+\.\d+")
# What every checkout has that the driver can use.
_NEEDED = ("galaxy.yml", REQUIREMENTS, "cluster.yml", "scale.yml", "remove-node.yml")


@dataclass(frozen=True)
class Checkout:
    """A tree of kubespray's.

    :ivar version: as its ``galaxy.yml`` has it: ``2.31.0``.
    """

    path: Path
    version: str

    @property
    def requirements(self) -> Path:
        """The Python packages that it requires, its Ansible among them."""
        return self.path / REQUIREMENTS

    @property
    def release(self) -> str:
        """The release, or the one that a development line is after: ``v2.31.0``."""
        return f"v{self.version}"


def find(named: str, cache: Path, report: Report) -> Checkout:
    """The checkout that *named* means; it is made if it is no directory.

    :param named: directory, ``REPOSITORY@REFERENCE``, or release.
    :param cache: where checkouts are kept.
    :raises LabError: there is none, or it is not kubespray's.
    """
    path = Path(named).expanduser()
    if path.is_dir() and (path / "galaxy.yml").exists():
        return look_at(path.absolute())
    repository, _, reference = named.rpartition("@")
    if not repository and _RELEASE.fullmatch(named):
        repository, reference = HOME, named
    if not repository:
        raise LabError(
            f"KUBESPRAY={named} is no checkout of kubespray, no REPOSITORY@REFERENCE"
            f" and no release such as {DEFAULT}",
            2,
        )
    # A branch goes on, and two repositories can have one tag.
    key = hashlib.sha256(repository.encode()).hexdigest()[:8]
    target = cache / "kubespray" / f"{reference.replace('/', '-')}-{key}"
    if not (target / "galaxy.yml").exists() or not _RELEASE.fullmatch(reference):
        with report.step(f"kubespray {reference}"):
            _clone(repository, reference, target)
    return look_at(target)


def look_at(path: Path) -> Checkout:
    """The checkout in a directory.

    :raises LabError: something that every release has is not there.
    """
    missing = [name for name in _NEEDED if not (path / name).exists()]
    if missing:
        raise LabError(
            f"{path} is no checkout of kubespray: it has no {', '.join(missing)}", 2
        )
    text = (path / "galaxy.yml").read_text()
    version = re.search(r"(?m)^version:\s*[\"']?([\d.]+)", text)
    if not version:
        raise LabError(f"{path}/galaxy.yml names no version", 2)
    return Checkout(path, version[1])


def _clone(repository: str, reference: str, target: Path) -> None:
    """A shallow clone, without git's records: the Ansible server gets the files."""
    new = target.with_name(f"{target.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.parent.mkdir(parents=True, exist_ok=True)
    options = ["--quiet", "--depth", "1", "--branch", reference]
    # A path alone would be cloned without --depth.
    source = f"file://{Path(repository).absolute()}"
    source = source if Path(repository).is_dir() else repository
    try:
        command.run(["git", "clone", *options, source, str(new)], limit=LIMIT)
    except (LabError, subprocess.SubprocessError, OSError) as error:
        raise LabError(
            f"kubespray {reference} could not be had from {repository}: {error}."
            " Give a directory: KUBESPRAY=/path/to/kubespray"
        ) from error
    shutil.rmtree(new / ".git")
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)
