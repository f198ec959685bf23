"""What differs from site to site in a VNFD: names of images and flavours, and its id.

The file is not written anew but changed in place, so its comments and layout stay.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from tacker_k8s_mgmt.csar.tree import node_at, pairs
from tacker_k8s_mgmt.errors import PackageError

_IMAGE = ("properties", "sw_image_data", "name")
_FLAVOR = (
    "capabilities",
    "virtual_compute",
    "properties",
    "requested_additional_capabilities",
    "properties",
    "requested_additional_capability_name",
)


@dataclass(frozen=True)
class Site:
    """A site's own names.

    :param images: image name by VDU; the VDU "" stands for all others.
    :param flavors: Nova flavour by VDU, likewise.
    :param vnfd_id: id of the VNFD; Tacker holds one package of each id.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    flavors: Mapping[str, str] = field(default_factory=dict)
    vnfd_id: str | None = None


def fit(files: Mapping[str, bytes], site: Site) -> dict[str, bytes]:
    """*files* of a package with the names of *site* in its VNFD.

    :raises PackageError: a VDU is named that the VNFD does not have.
    """
    fitted = dict(files)
    if site == Site():
        return fitted
    vdus: set[str] = set()
    for name in [n for n in files if n.startswith("Definitions/")]:
        try:
            text, found = _fit_text(files[name].decode(), site)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise PackageError("VNFD", [f"{name}: {error}"]) from error
        fitted[name] = text.encode()
        vdus |= found
    unknown = (set(site.images) | set(site.flavors)) - vdus - {""}
    if unknown:
        known = ", ".join(sorted(vdus))
        raise PackageError(
            "VNFD",
            [f"there is no VDU {vdu}; it has {known}" for vdu in sorted(unknown)],
        )
    return _with_id(fitted, site.vnfd_id) if site.vnfd_id else fitted


def _fit_text(text: str, site: Site) -> tuple[str, set[str]]:
    """The changed text, and the VDUs that it has."""
    vdus: set[str] = set()
    for names, path in ((site.images, _IMAGE), (site.flavors, _FLAVOR)):
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
    # From the end to the start, so that earlier positions stay true.
    for vdu, node in sorted(nodes.items(), key=lambda item: -item[1].start_mark.index):
        new = names.get(vdu, names.get(""))
        if new is not None:
            start, end = node.start_mark.index, node.end_mark.index
            text = text[:start] + _quoted(new) + text[end:]
    return text


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _with_id(files: Mapping[str, bytes], vnfd_id: str) -> dict[str, bytes]:
    old = {
        scalar.value
        for name, content in files.items()
        if name.startswith("Definitions/")
        for _, scalar in _scalars(content.decode(), ("properties", "descriptor_id"))
    }
    changed = dict(files)
    for name in [n for n in files if n.startswith("Definitions/")]:
        for value in old:
            changed[name] = changed[name].replace(value.encode(), vnfd_id.encode())
    return changed
