# SPDX-License-Identifier: Apache-2.0
"""Packages of CNFs for the driver that exposes them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from tacker_k8s_mgmt.csar import archive, build, customize, meta, sources
from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.files import replacing
from tacker_k8s_mgmt.model import kubernetes_yaml

#: The driver's file in a package by Tacker's API, and the same as a VNFD names it.
DRIVER_FILES: Mapping[str, tuple[str, str]] = {
    "v1": ("Scripts/cnf_exposure_mgmt.py", "Scripts/cnf_exposure_mgmt.py"),
    "v2": ("Scripts/cnf_exposure_mgmt_v2.py", "../Scripts/cnf_exposure_mgmt_v2.py"),
}
_NOT_PACKED = "requests/"
_CHART = "/Chart.yaml"


def pack(
    output: Path, *, source: Path | None = None, api: str, vnfd_id: str | None = None
) -> tuple[str, ...]:
    """Pack a directory as the package of a CNF.

    The driver's file, the SOL001 types and TOSCA.meta are the driver's own. Tacker's v1
    API wants charts as Helm packs them, so it gets ``NAME-VERSION.tgz`` beside each
    chart's directory.

    :param source: laid out as a package; default: ``samples/cnf``.
    :param vnfd_id: another id for the VNFD.
    :returns: the files in it.
    :raises PackageError: there is no VNFD, or more than one.
    """
    source = source or sources.samples() / "cnf"
    files = {
        name: content
        for name, content in sources.tree(source).items()
        if not name.startswith(_NOT_PACKED) and name != meta.PATH
    }
    path, named = DRIVER_FILES[api]
    for other in {artifact for _, artifact in DRIVER_FILES.values()} - {named}:
        for name in files:
            if name.startswith("Definitions/"):
                old, new = f"file: {other}\n".encode(), f"file: {named}\n".encode()
                files[name] = files[name].replace(old, new)
    if api == "v1":
        files |= dict(_charts(files))
    files = {**sources.types(), **files, path: sources.own_file(Path(path).name)}
    files = customize.fit(files, customize.Site(vnfd_id=vnfd_id))
    files[meta.PATH] = meta.render(files, build.entry("of the CNF", files, source))
    with replacing(output, mode=0o644) as temporary:
        archive.write(temporary, files)
    return tuple(sorted(files))


def _charts(files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The charts among these files, packed, by their names.

    :raises PackageError: a chart has no name or version.
    """
    for name in files:
        if not name.endswith(_CHART):
            continue
        root = name.removesuffix("Chart.yaml")
        try:
            chart = kubernetes_yaml.document(files[name].decode())
            title, packed = str(chart["name"]), f"{chart['name']}-{chart['version']}"
        except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError):
            raise PackageError(name, ["it has no name and version"]) from None
        members = {
            f"{title}/{path.removeprefix(root)}": content
            for path, content in files.items()
            if path.startswith(root)
        }
        yield (
            f"{root.rstrip('/').rpartition('/')[0]}/{packed}.tgz",
            archive.tgz(members),
        )
