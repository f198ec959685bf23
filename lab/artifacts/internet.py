# SPDX-License-Identifier: Apache-2.0
"""A mirror of what kubespray downloads, filled from where kubespray downloads it.

Files are compared with the checksums of kubespray's own checkout. A file or an image is
put into the mirror when it is complete, so the next attempt continues where one failed.
One directory serves all releases: names have versions in them.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab import LabError, command, packages
from lab.artifacts import images, mirror, releases
from lab.artifacts.images import Storage
from lab.artifacts.releases import Release
from lab.real.site import Checkout
from lab.report import Report
from lab.settings import Settings

NAME = "internet"
#: Seconds for the answer of one host.
PROBE_LIMIT = 5
FILE_LIMIT = 3600
IMAGE_LIMIT = 1800
_UNFINISHED = "unfinished"
_ROLE = Path("roles/kubespray_defaults")
_DOWNLOADS = _ROLE / "defaults/main/download.yml"
_CHECKSUMS = _ROLE / "vars/main/checksums.yml"
_CURL = ("curl", "--silent", "--show-error", "--location")
# It gives up on a server that sends less than 1 kB a second for a minute.
_PATIENT = (
    *("--fail", "--retry", "3", "--connect-timeout", "20"),
    *("--speed-limit", "1000", "--speed-time", "60", "--continue-at", "-"),
)
# Which images to trust is not this machine's policy: the names are kubespray's.
_SKOPEO = (
    *("skopeo", "--insecure-policy", "--override-os", "linux"),
    *("--override-arch", "amd64", "copy", "--quiet", "--retry-times", "3"),
)
# A registry answers 401 to a client that has not asked for a token.
_ANSWERS = frozenset({"200", "206", "401"})
# The host of a registry's API where it is not that of the images' names.
_APIS = {releases.DOCKER_REGISTRY: "registry-1.docker.io"}


def path(settings: Settings) -> Path:
    """Where the mirror is kept, whether it is there or not."""
    return mirror.path(settings, NAME)


def is_ready(settings: Settings, release: Release) -> bool:
    """Whether the mirror has all that a release of kubespray downloads."""
    return not mirror.missing(path(settings), release, _images())


def unreachable(settings: Settings, release: Release) -> str:
    """Why kubespray's sources cannot be used; empty when all of them answer.

    :param release: of each host that it downloads from, one of its files is requested.
    """
    addresses = {f.host: _url(f, release.wanted[f.part]) for f in releases.FILES}
    for image in releases.IMAGES:
        host = image.registry
        addresses[host] = f"https://{_APIS.get(host, host)}/v2/"
    try:
        _install(settings, packages.CURL)
        for host, url in addresses.items():
            words = ["--range", "0-0", "--output", "/dev/null", "-w", "%{http_code}"]
            limit = ["--max-time", str(PROBE_LIMIT)]
            status = command.run([*_CURL, *words, *limit, url], limit=PROBE_LIMIT * 2)
            if status not in _ANSWERS:
                return f"{host} answers with HTTP status {status}"
    except LabError as error:
        return " ".join(str(error).split())
    return ""


def make(
    settings: Settings, report: Report, release: Release, checkout: Checkout
) -> Path:
    """Download what the mirror lacks for a release of kubespray.

    :param checkout: has the checksums that kubespray will compare files with.
    :returns: the mirror.
    :raises LabError: a download failed, or kubespray has no checksum for a file.
    """
    target = path(settings)
    digests = checksums(checkout.path, release)
    with mirror.locked(settings, report):
        if is_ready(settings, release):
            return target
        _install(settings, packages.CURL, packages.SKOPEO)
        unfinished = target / _UNFINISHED
        unfinished.mkdir(parents=True, exist_ok=True)
        report.line(f"downloads of kubespray {release.name}, into {target}:")
        for file in releases.FILES:
            _add_file(report, target, file, release.wanted[file.part], digests)
        for image in _images():
            _add_image(report, target, image, release.wanted[image.part])
        shutil.rmtree(unfinished)
    mirror.check(target, release)
    return target


def checksums(checkout: Path, release: Release) -> dict[str, str]:
    """By name of the file, the SHA-256 that kubespray expects, in hexadecimal.

    Read line by line: the machine's Python may have no YAML.

    :raises LabError: naming every file without a checksum.
    """
    try:
        downloads = (checkout / _DOWNLOADS).read_text()
        tables = (checkout / _CHECKSUMS).read_text()
    except OSError as error:
        raise LabError(
            f"{checkout} has no checksums of kubespray: {error}", 2
        ) from error
    digests, absent = {}, []
    for file in releases.FILES:
        version = release.wanted[file.part]
        table = re.search(rf"(?m)^{file.checksum}: .*?(\w+)\[", downloads)
        rows = (
            re.search(
                rf"(?m)^{table[1]}:\n(?:  .*\n)*?  amd64:\n((?:    .*\n?)*)", tables
            )
            if table
            else None
        )
        line = rf"(?m)^ +['\"]?{re.escape(version)}['\"]?: (?:sha256:)?(\w{{64}})$"
        if rows and (row := re.search(line, rows[1])):
            digests[file.name] = row[1]
        else:
            absent.append(f"  {file.name} {version} ({file.checksum})")
    if absent:
        raise LabError(
            f"{checkout / _CHECKSUMS} has no checksum, for amd64, of\n"
            + "\n".join(absent),
            2,
        )
    return digests


def _add_file(
    report: Report,
    target: Path,
    file: releases.File,
    version: str,
    digests: Mapping[str, str],
) -> None:
    place = target / "files" / file.place(version)
    if place.exists() and images.sha256(place) == digests[file.name]:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = target / _UNFINISHED / f"{file.name}-{version}"
    url = _url(file, version)
    with _download(report, f"{file.name} {version}", url):
        command.run([*_CURL, *_PATIENT, "--output", str(part), url], limit=FILE_LIMIT)
        digest = images.sha256(part)
        if digest != digests[file.name]:
            part.unlink()
            raise LabError(
                f"its SHA-256 is {digest}, kubespray expects {digests[file.name]}"
            )
        part.replace(place)


def _images() -> tuple[releases.Image, ...]:
    return (*releases.IMAGES, *releases.OPTIONAL_IMAGES)


def _add_image(
    report: Report, target: Path, image: releases.Image, version: str
) -> None:
    storage = Storage(target / "images")
    repository, tag = image.reference(version)
    if not storage.lacks(repository, tag):
        return
    source = f"{image.registry}/{repository}:{tag}"
    with (
        _download(report, f"{repository}:{tag}", source),
        tempfile.TemporaryDirectory(dir=target / _UNFINISHED) as work,
    ):
        words = [*_SKOPEO, f"docker://{source}", f"dir:{work}"]
        command.run(words, limit=IMAGE_LIMIT)
        storage.adopt(repository, tag, Path(work))


@contextmanager
def _download(report: Report, name: str, source: str) -> Iterator[None]:
    """Time a download; an error has its source, and what can be done instead."""
    try:
        with report.step(name):
            yield
    except LabError as error:
        raise LabError(
            f"{source} could not be downloaded: {error}\n"
            "The next attempt continues from here. Without the internet: give a mirror"
            " (MIRROR=<directory>), or build everything (ARTIFACTS=build)"
        ) from error


def _url(file: releases.File, version: str) -> str:
    return f"https://{file.place(version)}"


def _install(settings: Settings, *tools: packages.Tool) -> None:
    packages.install(packages.missing(tools), settings.cache / "install.log")
