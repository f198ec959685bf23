# SPDX-License-Identifier: Apache-2.0
"""Archives of Helm charts, as ``helm package`` makes them, and what they are.

The layout is Helm's ("Charts", "The Chart File Structure"): a ``.tgz`` with one
directory, which has ``Chart.yaml``.
"""

import gzip
import io
import tarfile
from collections.abc import Mapping

import yaml

from tacker_k8s_mgmt.model.manifest_objects import Unusable

_CHART = "Chart.yaml"
_NAME = "chart"
_LARGEST = 1024 * 1024  # bytes of Chart.yaml


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
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for entry in tar:
                directory, slash, path = entry.name.removeprefix("./").partition("/")
                if directory and slash and path == _CHART and entry.size <= _LARGEST:
                    file = tar.extractfile(entry)
                    return _version(file.read() if file else b"")
    except (tarfile.TarError, OSError, EOFError):
        raise Unusable("is no archive of a chart (.tgz)") from None
    raise Unusable(f"has no {_CHART}")


def _version(text: bytes) -> str:
    try:
        chart = yaml.safe_load(text)
        return f"{chart['name']} {chart['version']}"
    except (yaml.YAMLError, TypeError, KeyError, ValueError):
        raise Unusable(f"has a {_CHART} without name or version") from None
