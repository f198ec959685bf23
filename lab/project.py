# SPDX-License-Identifier: Apache-2.0
"""The project itself, installed beside Tacker as an operator would do it.

It is built from a copy, so that building leaves nothing in the source tree.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from lab import environments, files
from lab.report import Report
from lab.settings import ROOT, Settings

PARTS = (
    "LICENSE",
    "MANIFEST.in",
    "README.rst",
    "pyproject.toml",
    "samples",
    "scripts",
    "setup.py",
    "tacker_k8s_mgmt",
)
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", "*~", ".*", "*.egg-info")


def stamp(settings: Settings, name: str) -> Path:
    """File in an environment with the digest of the installed contents."""
    return environments.path(settings, name) / ".project"


def sources(root: Path = ROOT) -> Iterator[Path]:
    """Every file that belongs to the installed project."""
    for part in PARTS:
        path = root / part
        if path.is_file():
            yield path
        else:
            hidden = (p for p in path.rglob("*") if p.is_file())
            yield from (p for p in hidden if not _is_by_product(p.relative_to(root)))


def digest(root: Path = ROOT) -> str:
    """What the project's files are, in short."""
    paths = list(sources(root))
    names = sorted(str(path.relative_to(root)) for path in paths)
    return files.digest(paths, *names)


def is_installed(settings: Settings, name: str) -> bool:
    """Whether an environment has the project as it is now."""
    file = stamp(settings, name)
    return file.exists() and file.read_text() == digest()


def install(settings: Settings, report: Report, name: str) -> None:
    """Install the project into an environment unless it is installed as it is now.

    :raises LabError: it could not be built.
    """
    if is_installed(settings, name):
        return
    current = digest()
    # Always the same place: the installer's cache goes by the path.
    copy = settings.cache / "project"
    with report.step(f"project, {name}"):
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=IGNORED)
            else:
                shutil.copy(source, copy)
        environment = environments.path(settings, name)
        arguments = [
            "--no-deps",
            "--no-build-isolation",
            "--force-reinstall",
            str(copy),
        ]
        environments.install(settings, environment, arguments)
        shutil.rmtree(copy)
        stamp(settings, name).write_text(current)


def _is_by_product(path: Path) -> bool:
    return path.suffix == ".pyc" or any(p.startswith(".") for p in path.parts)
