# SPDX-License-Identifier: Apache-2.0
"""Mirrors: directories with all that a release of kubespray downloads.

``files`` is what ``files_repo`` names, ``images`` the storage of the registry that
``registry_host`` names, and ``checksums.yaml`` has what kubespray must be given,
because what was built here is not what its authors have published.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab import LabError, files, packages
from lab.artifacts import golang, images, releases
from lab.artifacts.golang import Group
from lab.artifacts.images import Storage
from lab.artifacts.releases import SWITCHES, Release
from lab.report import Report
from lab.settings import Settings

VARIABLES = "checksums.yaml"
#: A mirror with the tests' own images only, which is served beside all others.
OWN = "lab"
REGISTRY = Group("registry", "3.1.2")
_COMPLETE = ".complete"
# A mirror is made again when these change, which takes only a minute.
RECIPE = (
    *Path(__file__).parent.glob("*.py"),
    images.PAUSE,
    *images.MARIADB_SCRIPTS.iterdir(),
)
# What is no Go module, or not built.
_NO_GROUP = frozenset({"pause", "nginx", "busybox", *SWITCHES})


def groups(release: Release) -> dict[str, Group]:
    """By part, the group of programs that it is built from."""
    return {
        part: Group(part, release.built(part))
        for part in release.wanted
        if part not in _NO_GROUP
    }


def key(release: Release) -> str:
    """What a mirror depends on, in short."""
    programs = (group.key() for group in groups(release).values())
    return files.digest(RECIPE, *programs, str(release))


def path(settings: Settings, name: str) -> Path:
    """Where a mirror that is made here is kept, whether it is there or not."""
    return settings.cache / "mirrors" / name


def is_ready(settings: Settings, release: Release) -> bool:
    """Whether the mirror of a release is there, made of the current pins."""
    return _is_complete(path(settings, release.name), key(release))


def make(settings: Settings, report: Report, release: Release) -> Path:
    """Build what a release of kubespray downloads, unless it is there.

    :returns: the mirror.
    :raises LabError: there is no Go, or something could not be fetched or built.
    """
    target = path(settings, release.name)
    if is_ready(settings, release):
        return target
    golang.check(settings)
    _install(settings, report)
    report.line(f"programs for kubespray {release.name}, built once:")
    programs = {
        part: golang.build(settings, report, group)
        for part, group in groups(release).items()
    }
    with locked(settings, report):
        if not is_ready(settings, release):
            with report.step(f"mirror {release.name}"):
                _assemble(settings, release, programs)
    return target


def make_own(settings: Settings, report: Report) -> Path:
    """Make the mirror with the tests' own images, unless it is there."""
    target = path(settings, OWN)
    current = files.digest(RECIPE)
    with locked(settings, report):
        if not _is_complete(target, current):
            with report.step(f"mirror {OWN}"):
                work = _new(target)
                (work / "files").mkdir()
                builder = images.Builder(settings, Storage(work / "images"), {})
                for image in releases.OWN:
                    builder.add(*image)
                _finish(work, target, current)
    return target


def make_registry(settings: Settings, report: Report) -> None:
    """Have a registry that serves the images: built, or Debian's where Go is missing.

    :raises LabError: it could not be built or installed.
    """
    if registry(settings).exists():
        return
    try:
        golang.check(settings)
    except LabError:
        with report.step(f"apt: {packages.REGISTRY.package}"):
            packages.install([packages.REGISTRY], settings.cache / "install.log")
    else:
        golang.build(settings, report, REGISTRY)


def registry(settings: Settings) -> Path:
    """The registry's program, whether it is there or not."""
    built = REGISTRY.path(settings) / "registry"
    packaged = shutil.which(packages.REGISTRY.program)
    return Path(packaged) if packaged and not built.exists() else built


def check(directory: Path, release: Release) -> None:
    """Refuse a mirror that does not have all that a release of kubespray downloads.

    :param directory: as described above; without ``checksums.yaml``, it has to have the
        published files.
    :raises LabError: naming every file and image that is missing.
    """
    absent = missing(directory, release)
    if absent:
        raise LabError(
            f"The mirror {directory} lacks what kubespray {release.name} downloads:\n"
            + "\n".join(f"  {name}" for name in absent),
            2,
        )


def missing(
    directory: Path,
    release: Release,
    wanted: Sequence[releases.Image] | None = None,
) -> list[str]:
    """What a mirror lacks, as paths in it and names of images.

    :param wanted: the images; by default those that every cluster needs.
    """
    chosen = variables(directory)
    versions = releases.parts_versions(release.wanted, chosen)
    places = (f"files/{file.place(versions[file.part])}" for file in releases.FILES)
    absent = [place for place in places if not (directory / place).is_file()]
    storage = Storage(directory / "images")
    for image in releases.IMAGES if wanted is None else wanted:
        if chosen.get(SWITCHES.get(image.part, "")) == "false":
            continue
        repository, tag = image.reference(versions[image.part])
        if storage.lacks(repository, tag):
            absent.append(f"image {repository}:{tag}")
    return absent


def variables(directory: Path) -> dict[str, str]:
    """A mirror's ``checksums.yaml``, with all values as text; empty without one.

    Only ``name: value`` is known, in lines of its own: the machine's Python may have no
    YAML.
    """
    file = directory / VARIABLES
    text = file.read_text() if file.exists() else ""
    line = r"""(?m)^(\w+):[ ]+["']?([^"'\s#]*)["']?[ ]*(?:#.*)?$"""
    found: list[tuple[str, str]] = re.findall(line, text)
    return dict(found)


def _assemble(
    settings: Settings, release: Release, programs: Mapping[str, Path]
) -> None:
    target = path(settings, release.name)
    work = _new(target)
    chosen = release.variables()
    for file in releases.FILES:
        version = release.built(file.part)
        place = work / "files" / file.place(version)
        place.parent.mkdir(parents=True, exist_ok=True)
        digest = _put(file, version, programs[file.part], place)
        chosen[file.checksum] = f"sha256:{digest}"
    builder = images.Builder(settings, Storage(work / "images"), programs)
    for image in (*releases.IMAGES, *releases.OPTIONAL_IMAGES):
        if image.part not in SWITCHES:
            builder.add(*image.reference(release.built(image.part)))
    lines = (f"{name}: {json.dumps(value)}\n" for name, value in chosen.items())
    (work / VARIABLES).write_text(f"# For kubespray {release.name}.\n{''.join(lines)}")
    _finish(work, target, key(release))


def _put(file: releases.File, version: str, programs: Path, place: Path) -> str:
    """Put a file into a mirror; its SHA-256 in hexadecimal."""
    if file.members is None:
        shutil.copyfile(programs / file.name, place)
        return images.sha256(place)
    inner = file.members.format(version=version)
    found = (each for each in sorted(programs.iterdir()) if each.name[0] != ".")
    digest, _ = images.write_archive(
        place, (images.Entry(f"{inner}{each.name}", each) for each in found)
    )
    return digest


def _install(settings: Settings, report: Report) -> None:
    """Install what the programs that are written in C need."""
    wanted = packages.missing(packages.BUILD_TOOLS)
    if wanted:
        with report.step(f"apt: {' '.join(sorted({t.package for t in wanted}))}"):
            packages.install(wanted, settings.cache / "install.log")


def _is_complete(target: Path, current: str) -> bool:
    stamp = target / _COMPLETE
    return stamp.exists() and stamp.read_text() == current


def _new(target: Path) -> Path:
    work = target.with_name(f".{target.name}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return work


def _finish(work: Path, target: Path, current: str) -> None:
    (work / _COMPLETE).write_text(current)
    shutil.rmtree(target, ignore_errors=True)
    work.rename(target)


@contextmanager
def locked(settings: Settings, report: Report) -> Iterator[None]:
    """Keep other commands from putting mirrors together at the same time."""

    def busy() -> None:
        report.line("  waiting for another command that makes a mirror ...")

    with files.locked(golang.artifacts(settings) / "lock", busy):
        yield
