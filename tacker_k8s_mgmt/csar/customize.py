# SPDX-License-Identifier: Apache-2.0
"""Site-specific values of a package: names of images and flavours in the VNFD and its
id, and defaults of the Base HOT's parameters.

The files are changed in place, so their comments and layout stay.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from tacker_k8s_mgmt.csar import hot_values
from tacker_k8s_mgmt.csar.vnfd import FLAVOR, IMAGE
from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model.tree import mapping, node_at, pairs, parse

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
        typed = value if kind and kind.value == "string" else parse(value)
        # JSON is YAML; surrogate pairs would not be.
        new = json.dumps(typed, ensure_ascii=False)
        old = node_at(schema, "default")
        if old is not None:
            start, end = old.start_mark.index, old.end_mark.index
        else:
            start = end = schema.start_mark.index
            new = f"default: {new}\n{' ' * schema.start_mark.column}"
        text = text[:start] + new + text[end:]
        for why in hot_values.problems(
            mapping(parse(text))["parameters"][parameter], typed
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
