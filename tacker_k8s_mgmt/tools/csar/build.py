# SPDX-License-Identifier: Apache-2.0
"""Packages built from their parts: of VNFs with a site's own values, and of CNFs.

Site-specific values are names of images and flavours in the VNFD and its id, and
defaults of the Base HOT's parameters. The files are changed in place, so their comments
and layout stay.

Packages of CNFs are for the driver that exposes them.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.files import replacing
from tacker_k8s_mgmt.model import kubernetes_yaml
from tacker_k8s_mgmt.model.yaml_text import mapping, node_at, pairs, parse_yaml
from tacker_k8s_mgmt.tools.csar import archive, hot, parts, vnfd
from tacker_k8s_mgmt.tools.csar.package_check import check
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, Api
from tacker_k8s_mgmt.tools.csar.vnfd import FLAVOR, IMAGE

_BASE_HOT = re.compile(r"BaseHOT/[^/]+/[^/]+\.ya?ml")


@dataclass(frozen=True)
class Site:
    """A site's own names.

    :param images: image name by VDU; the VDU "" stands for all others.
    :param flavors: Nova flavour by VDU, likewise.
    :param vnfd_id: id of the VNFD; Tacker holds one package of each id.
    :param parameters: defaults of the Base HOT's parameters, as text.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    flavors: Mapping[str, str] = field(default_factory=dict)
    vnfd_id: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


def fit(files: Mapping[str, bytes], site: Site) -> dict[str, bytes]:
    """*files* of a package with the names of *site* in its VNFD and Base HOT.

    :raises PackageError: a VDU is named that the VNFD does not have, or a parameter
        that the Base HOT does not have.
    """
    if site == Site():
        return dict(files)
    files = {**files, **_fit_hots(files, site.parameters)}
    texts: dict[str, str] = {}
    vdus: set[str] = set()
    for name in [n for n in files if n.startswith("Definitions/")]:
        try:
            texts[name], own = _fit_text(files[name].decode(), site)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise PackageError("VNFD", [f"{name}: {error}"]) from error
        vdus |= own
    unknown = sorted({*site.images, *site.flavors} - vdus - {""})
    if unknown:
        known = ", ".join(sorted(vdus))
        raise PackageError(
            "VNFD", [f"there is no VDU {vdu}; it has {known}" for vdu in unknown]
        )
    if site.vnfd_id:
        ids = (_scalars(t, ("properties", "descriptor_id")) for t in texts.values())
        for old in {scalar.value for scalars in ids for _, scalar in scalars}:
            texts = {n: text.replace(old, site.vnfd_id) for n, text in texts.items()}
    return {**files, **{name: text.encode() for name, text in texts.items()}}


def _fit_hots(
    files: Mapping[str, bytes], defaults: Mapping[str, str]
) -> dict[str, bytes]:
    fitted = {}
    for name, content in files.items():
        if _BASE_HOT.fullmatch(name) and defaults:
            try:
                fitted[name] = _with_defaults(content.decode(), defaults).encode()
            except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
                raise PackageError("Base HOT", [f"{name}: {error}"]) from error
    return fitted


def _with_defaults(text: str, defaults: Mapping[str, str]) -> str:
    """The text of a HOT whose parameters have these defaults.

    :raises ValueError: it has no such parameter, or that is of another type.
    """
    for parameter, value in defaults.items():
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        schema = node_at(root, "parameters", parameter)
        if not isinstance(schema, yaml.MappingNode) or not schema.value:
            known = [key.value for key, _ in pairs(node_at(root, "parameters"))]
            listed = ", ".join(name for name in known if name != "nfv")
            raise ValueError(f"there is no parameter {parameter}; it has {listed}")
        kind = node_at(schema, "type")
        typed = value if kind and kind.value == "string" else parse_yaml(value)
        # JSON is YAML; surrogate pairs would not be.
        new = json.dumps(typed, ensure_ascii=False)
        old = node_at(schema, "default")
        if old is not None:
            start, end = old.start_mark.index, old.end_mark.index
        else:
            start = end = schema.start_mark.index
            new = f"default: {new}\n{' ' * schema.start_mark.column}"
        text = text[:start] + new + text[end:]
        for why in hot.value_problems(
            mapping(parse_yaml(text))["parameters"][parameter], typed
        ):
            raise ValueError(f"parameters.{parameter}: {why}")
    return text


def _fit_text(text: str, site: Site) -> tuple[str, set[str]]:
    """The changed text, and the VDUs in it."""
    vdus: set[str] = set()
    for names, path in ((site.images, IMAGE), (site.flavors, FLAVOR)):
        nodes = dict(_scalars(text, path))
        vdus |= set(nodes)
        text = _replaced(text, nodes, names)
    return text, vdus


def _scalars(text: str, path: tuple[str, ...]) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """``(node template, scalar)`` wherever a node template has *path*."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, node in pairs(node_at(root, "topology_template", "node_templates")):
        scalar = node_at(node, *path)
        if isinstance(scalar, yaml.ScalarNode):
            yield key.value, scalar


def _replaced(
    text: str, nodes: Mapping[str, yaml.ScalarNode], names: Mapping[str, str]
) -> str:
    # From the end to the start: earlier positions stay valid.
    for vdu, node in sorted(nodes.items(), key=lambda item: -item[1].start_mark.index):
        name = names.get(vdu, names.get(""))
        if name is not None:
            quoted = "'" + name.replace("'", "''") + "'"
            text = text[: node.start_mark.index] + quoted + text[node.end_mark.index :]
    return text


_NOTHING = Site()


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
    replaced: tuple[str, ...]
    vnfd_id: str


def build(
    flavour: str,
    output: Path,
    *,
    source: Path | None = None,
    types: Path | None = None,
    api: Api = V1,
    names: Site = _NOTHING,
) -> Built:
    """Build the package of *flavour*, check it, and only then put it at *output*.

    :param source: a directory laid out as ``samples/``, or as a package; default: the
        driver's samples for *api*.
    :param types: SOL001 types; default: those of *source*, or the driver's.
    :raises PackageError: a part is missing, or the package has a problem; *output* is
        unchanged.
    """
    source = source or parts.samples(api)
    files = parts.collect(flavour, source=source, types=types, api=api)
    files = fit(files, names)
    replaced = parts.replaced(files, source)
    main = entry(flavour, files, source)
    files[archive.PATH] = archive.render(files, main)
    with replacing(output, mode=0o644) as temporary:
        archive.write(temporary, files)
        problems = check(temporary).problems
        if problems:
            raise PackageError(flavour, problems)
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
    return Built(output, tuple(sorted(files)), digest, replaced, vnfd.id_in(files))


def entry(flavour: str, files: Mapping[str, bytes], source: Path) -> str:
    """The entry file: named by the source's TOSCA.meta, or the only one of its kind.

    :param flavour: for the error.
    :raises PackageError: there is none, or more than one.
    """
    own, named = source / archive.PATH, ""
    if own.is_file():
        named = archive.parse(own.read_text(encoding="utf-8")).entry_definitions
    entries = archive.entry_files(named, files)
    if len(entries) != 1:
        listed = ", ".join(entries) or "none"
        raise PackageError(
            flavour, [f"exactly one file must be named *.vnfd.yaml, there is: {listed}"]
        )
    return entries[0]


#: The driver's file in a package by Tacker's API, and the same as a VNFD names it.
DRIVER_FILES: Mapping[str, tuple[str, str]] = {
    "v1": ("Scripts/cnf_exposure_mgmt.py", "Scripts/cnf_exposure_mgmt.py"),
    "v2": ("Scripts/cnf_exposure_mgmt_v2.py", "../Scripts/cnf_exposure_mgmt_v2.py"),
}
#: That of the file is for v1: Tacker takes one package of each.
_SAMPLE_IDS = {"v2": "b7a4c1de-8f52-4c0e-9d36-51f0a2c7e894"}
_NOT_PACKED = "requests/"
_CHART = "/Chart.yaml"


def pack(
    output: Path, *, source: Path | None = None, api: str, vnfd_id: str | None = None
) -> Built:
    """Pack a directory as the package of a CNF.

    The driver's file, the SOL001 types and TOSCA.meta are the driver's own. Tacker's v1
    API wants charts as Helm packs them, so it gets ``NAME-VERSION.tgz`` beside each
    chart's directory.

    :param source: laid out as a package; default: ``samples/cnf``.
    :param vnfd_id: another id for the VNFD; default: that of *source*, and of the
        sample an id for each API.
    :raises PackageError: there is no VNFD, or more than one.
    """
    if source is None:
        vnfd_id = vnfd_id or _SAMPLE_IDS.get(api)
    source = source or parts.samples() / "cnf"
    files = {
        name: content
        for name, content in parts.tree(source).items()
        if not name.startswith(_NOT_PACKED) and name != archive.PATH
    }
    path, named = DRIVER_FILES[api]
    for other in {artifact for _, artifact in DRIVER_FILES.values()} - {named}:
        for name in files:
            if name.startswith("Definitions/"):
                old, new = f"file: {other}\n".encode(), f"file: {named}\n".encode()
                files[name] = files[name].replace(old, new)
    if api == "v1":
        files |= dict(_charts(files))
    files = {**parts.types(), **files, path: parts.own_file(Path(path).name)}
    files = fit(files, Site(vnfd_id=vnfd_id))
    files[archive.PATH] = archive.render(files, entry("of the CNF", files, source))
    with replacing(output, mode=0o644) as temporary:
        archive.write(temporary, files)
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
    return Built(output, tuple(sorted(files)), digest, (), vnfd.id_in(files))


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
