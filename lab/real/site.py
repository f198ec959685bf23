# SPDX-License-Identifier: Apache-2.0
"""What one real laboratory is made of: its kubespray, kubespray's Ansible, mirrors.

kubespray is a directory, a git repository with a reference
(``/src/kubespray@v2.31.0``), or a release (``v2.31.0``), which is cloned.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import LabError, command, environments, files
from lab.artifacts.releases import DEFAULT
from lab.report import Report
from lab.settings import SYSTEM_PYTHON, Settings


@dataclass(frozen=True)
class Wanted:
    """What a laboratory is made of.

    :ivar kubespray: see :func:`.checkout.find`.
    :ivar also: other releases of kubespray whose downloads it is to serve as well.
    :ivar source: directory of files and images, ``internet`` or ``build``; None: the
        internet if it answers.
    """

    kubespray: str
    also: tuple[str, ...] = ()
    source: Path | str | None = None


@dataclass(frozen=True)
class Site:
    """A real laboratory.

    :ivar kubespray: directory of the checkout.
    :ivar version: the checkout's, such as ``2.31.0``.
    :ivar ansible: virtual environment with the Ansible that the checkout requires.
    :ivar mirrors: by release of kubespray the directory with ``files``, ``images`` and
        perhaps ``checksums.yaml``.
    """

    kubespray: str
    version: str
    ansible: str
    mirrors: dict[str, str]

    @property
    def release(self) -> str:
        """The checkout's own: ``v2.31.0``."""
        return f"v{self.version}"

    @property
    def mirror(self) -> Path:
        """The mirror of the checkout's own release."""
        return Path(self.mirrors[self.release])

    @property
    def others(self) -> dict[str, Path]:
        """The mirrors of other releases."""
        own = self.release
        return {name: Path(p) for name, p in self.mirrors.items() if name != own}

    def save(self, state: Path) -> None:
        """Write it where :meth:`load` finds it."""
        self._path(state).write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, state: Path) -> "Site":
        """What the laboratory in a state directory is made of.

        :raises LabError: it is not a real one.
        """
        if found := cls.find(state):
            return found
        raise LabError(f"The laboratory in {state} has no real kubespray", 2)

    @classmethod
    def find(cls, state: Path) -> "Site | None":
        """The same; None for a laboratory with the stand-in for kubespray."""
        path = cls._path(state)
        return cls(**json.loads(path.read_text())) if path.exists() else None

    @staticmethod
    def _path(state: Path) -> Path:
        return state / "site.json"


HOME = "https://github.com/kubernetes-sigs/kubespray"
REQUIREMENTS = "requirements.txt"
CLONE_LIMIT = 900.0
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


def find_checkout(named: str, cache: Path, report: Report) -> Checkout:
    """The checkout that *named* means; it is made if it is not a directory.

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
    # A branch continues, and two repositories can have one tag.
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
        command.run(["git", "clone", *options, source, str(new)], limit=CLONE_LIMIT)
    except (LabError, subprocess.SubprocessError, OSError) as error:
        raise LabError(
            f"kubespray {reference} could not be had from {repository}: {error}."
            " Give a directory: KUBESPRAY=/path/to/kubespray"
        ) from error
    shutil.rmtree(new / ".git")
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)


def ansible_path(settings: Settings, checkout: Checkout) -> Path:
    """Directory of the environment, whether it is built or not.

    Beside the checkouts and not among the quick laboratory's environments, which are
    removed when their pins change.
    """
    # The name of the file that it really is has the version: python3.11.
    key = files.digest([checkout.requirements], os.path.realpath(SYSTEM_PYTHON))
    return settings.cache / "kubespray" / f"venv-{checkout.version}-{key}"


def prepare_ansible(settings: Settings, report: Report, checkout: Checkout) -> Path:
    """Build the environment unless it is there; its directory.

    :raises LabError: an installation failed.
    """
    target = ansible_path(settings, checkout)
    complete = target / environments.COMPLETE
    if complete.exists():
        return target
    environments.prepare_tools(settings, report)
    with report.step(f"Ansible of kubespray {checkout.version}"):
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        argv = [SYSTEM_PYTHON, "-m", "venv", "--without-pip", str(target)]
        command.run(argv, limit=environments.LIMIT)
        wanted = ["-r", str(checkout.requirements)]
        environments.install(settings, target, wanted)
        complete.touch()
    return target
