# SPDX-License-Identifier: Apache-2.0
"""Archives of Helm charts, as ``helm package`` makes them, and what they are.

The layout is Helm's ("Charts", "The Chart File Structure"): a ``.tgz`` with one
directory, which has ``Chart.yaml``.
"""

import gzip
import io
import re
import tarfile
from collections.abc import Iterator, Mapping

import yaml

from tacker_k8s_mgmt.model import kubernetes_yaml, untrusted
from tacker_k8s_mgmt.model.manifests import Unusable

_CHART = "Chart.yaml"
_NAME = "chart"
_LONGEST = 250  # characters of name or version
_LARGEST = 1024 * 1024  # bytes of Chart.yaml
#: Bytes of a chart when it is unpacked, as for Helm itself.
LARGEST_UNPACKED = 100 * 1024 * 1024
# A call of Helm's function that reads objects of the cluster.
_LOOKUP = re.compile(rb"\blookup\s")
_MOST_MEMBERS = 10_000
# What tarfile raises beside its own errors, also for members that it cannot follow.
_NO_ARCHIVE = (
    *(tarfile.TarError, untrusted.Damaged, ValueError, LookupError),
    *(ArithmeticError, RecursionError),
)


class _Member(tarfile.TarInfo):
    """A member that comes after the one before it.

    One of a negative size has tarfile read the same header for ever (CVE-2025-8194, in
    Python before 3.11.14, 3.12.12 and 3.13.6).
    """

    def _block(self, count: int) -> int:
        if count < 0:
            raise tarfile.ReadError("a member has a negative size")
        blocks: int = super()._block(count)  # type: ignore[misc]
        return blocks


def packed(files: Mapping[str, bytes]) -> bytes:
    """The archive of a chart's files, by their paths in it; the same each time."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            entry = tarfile.TarInfo(f"{_NAME}/{path}")
            entry.size = len(files[path])
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(files[path]))
    return gzip.compress(tar.getvalue(), mtime=0)


def version_of(archive: bytes) -> str:
    """Name and version of a chart, such as ``keystone 0.3.1``.

    :raises Unusable: it is no chart.
    """
    try:
        text = _chart_file(archive)
    except _NO_ARCHIVE:
        raise Unusable("is no archive of a chart (.tgz)") from None
    if text is None:
        raise Unusable(f"has no {_CHART}")
    return _version(text)


def looks_up(archive: bytes) -> bool:
    """Whether a template of the chart, or of one within, may read the cluster.

    :raises Unusable: it is no chart.
    """
    try:
        with _opened(archive) as tar:
            return any(
                _LOOKUP.search(file.read())
                for entry in _members(tar)
                if entry.isreg() and "/templates/" in entry.name
                if (file := tar.extractfile(entry))
            )
    except _NO_ARCHIVE:
        raise Unusable("is no archive of a chart (.tgz)") from None


def _opened(archive: bytes) -> tarfile.TarFile:
    # Unpacked before it is parsed: a header may claim any size, which tarfile reads.
    try:
        unpacked = untrusted.unpack_gzip(archive, LARGEST_UNPACKED)
    except untrusted.TooLarge as error:
        raise Unusable(f"has {error}") from None
    return tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:", tarinfo=_Member)


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for number, entry in enumerate(tar, 1):
        if number > _MOST_MEMBERS:
            raise Unusable(f"has more than {_MOST_MEMBERS} files")
        yield entry


def _chart_file(archive: bytes) -> bytes | None:
    with _opened(archive) as tar:
        for entry in _members(tar):
            directory, slash, path = entry.name.removeprefix("./").partition("/")
            # No link, which may be one to itself.
            if directory and slash and path == _CHART and entry.isreg():
                file = tar.extractfile(entry) if entry.size <= _LARGEST else None
                return file.read() if file else None
    return None


def _version(text: bytes) -> str:
    try:
        chart = kubernetes_yaml.document(text.decode())
        parts = [chart["name"], chart["version"]]
    except (yaml.YAMLError, TypeError, KeyError, ValueError):
        parts = []
    words = [str(part) for part in parts if isinstance(part, str | int | float)]
    if len(words) != 2 or not all(map(_is_word, words)):
        raise Unusable(f"has a {_CHART} without name or version")
    return " ".join(words)


def _is_word(text: str) -> bool:
    return text.isprintable() and 0 < len(text) <= _LONGEST
