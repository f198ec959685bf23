# SPDX-License-Identifier: Apache-2.0
"""Build a VNF package from its parts."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tacker_k8s_mgmt.csar import archive, customize, meta, sources, vnfd
from tacker_k8s_mgmt.csar.api import V1, Api
from tacker_k8s_mgmt.csar.check import check
from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.files import replacing
from tacker_k8s_mgmt.model.tree import mapping, parse

_NOTHING = customize.Site()


@dataclass(frozen=True)
class Built:
    """A finished package.

    :param replaced: files of the source that are replaced by the driver's own.
    :param sha256: of the zip; the same parts give the same zip.
    :param vnfd_id: of the VNFD.
    """

    path: Path
    files: tuple[str, ...]
    sha256: str
    replaced: tuple[str, ...] = ()
    vnfd_id: str = ""


def build(
    flavour: str,
    output: Path,
    *,
    source: Path | None = None,
    types: Path | None = None,
    api: Api = V1,
    names: customize.Site = _NOTHING,
) -> Built:
    """Build the package of *flavour*, check it, and only then put it at *output*.

    :param source: a directory laid out as ``samples/``, or as a package; default: the
        driver's samples for *api*.
    :param types: SOL001 types; default: those of *source*, or the driver's.
    :raises PackageError: a part is missing, or the package has a problem; *output* is
        unchanged.
    """
    source = source or sources.samples(api)
    files = sources.collect(flavour, source=source, types=types, api=api)
    files = customize.fit(files, names)
    replaced = sources.replaced(files, source)
    main = entry(flavour, files, source)
    files[meta.PATH] = meta.render(files, main)
    with replacing(output, mode=0o644) as temporary:
        archive.write(temporary, files)
        problems = check(temporary).problems
        if problems:
            raise PackageError(flavour, problems)
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
    vnfd_id = vnfd.descriptor_id(mapping(parse(files[main].decode())))
    return Built(output, tuple(sorted(files)), digest, replaced, vnfd_id)


def entry(flavour: str, files: Mapping[str, bytes], source: Path) -> str:
    """The entry file: named by the source's TOSCA.meta, or the only one of its kind.

    :param flavour: for the error.
    :raises PackageError: there is none, or more than one.
    """
    own, named = source / meta.PATH, ""
    if own.is_file():
        named = meta.parse(own.read_text(encoding="utf-8")).entry_definitions
    entries = meta.entry_files(named, files)
    if len(entries) != 1:
        listed = ", ".join(entries) or "none"
        raise PackageError(
            flavour, [f"exactly one file must be named *.vnfd.yaml, there is: {listed}"]
        )
    return entries[0]
