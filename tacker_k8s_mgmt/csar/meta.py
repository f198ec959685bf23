# SPDX-License-Identifier: Apache-2.0
"""TOSCA.meta: the entry file of a package, and the hash of every file in it.

Tacker compares the hashes at upload and refuses a package with a wrong one. It reads
the whole file as one YAML mapping, and each block of it as another
(``tacker/common/csar_utils.py``, ``_convert_artifacts``; tosca-parser's ``csar.py``).
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from tacker_k8s_mgmt.model import tree, urls
from tacker_k8s_mgmt.model.tree import mapping

PATH = "TOSCA-Metadata/TOSCA.meta"

_CONTENT_TYPES = {
    ".yaml": "application/x-yaml",
    ".yml": "application/x-yaml",
    ".py": "text/x-python",
    ".sh": "application/x-shellscript",
}
_UNKNOWN = "application/octet-stream"
_MANIFEST = "ETSI-Entry-Manifest"
_KEYS = frozenset({"Source", "Algorithm", "Hash"})
_IMAGES = frozenset(
    {"raw", "vhd", "vhdx", "vmdk", "vdi", "iso", "ploop", "qcow2"}
    | {"aki", "ari", "ami", "img"}
)
_ALGORITHMS = ("sha-224", "sha-256", "sha-384", "sha-512")


@dataclass(frozen=True)
class Meta:
    """A TOSCA.meta.

    :param entry_definitions: path of the entry file; "" if it names none.
    :param entries: what is said of each file.
    """

    entry_definitions: str
    entries: tuple[Mapping[str, Any], ...]


def render(files: Mapping[str, bytes], entry_definitions: str) -> bytes:
    """The TOSCA.meta of *files*, sorted, each with its SHA-256."""
    blocks = [
        "TOSCA-Meta-File-Version: 1.0\n"
        "CSAR-Version: 1.1\n"
        "Created-By: tacker-k8s-mgmt\n"
        f"Entry-Definitions: {entry_definitions}\n"
    ]
    blocks += [
        f"Name: {name}\n"
        f"Content-Type: {_CONTENT_TYPES.get(PurePosixPath(name).suffix, _UNKNOWN)}\n"
        "Algorithm: SHA-256\n"
        f"Hash: {hashlib.sha256(files[name]).hexdigest()}\n"
        for name in sorted(files)
    ]
    return "\n".join(blocks).encode()


def parse(text: str) -> Meta:
    """Read a TOSCA.meta; what is no YAML is left out."""
    entries = [found for _, found in _blocks(text.encode()) if isinstance(found, dict)]
    entry = _head(text.encode()).get("Entry-Definitions")
    return Meta(str(entry or ""), tuple(entries))


def entry_files(named: str, files: Mapping[str, bytes]) -> list[str]:
    """The file that TOSCA.meta names, or else all that could be the entry file."""
    suffixes = (".vnfd.yaml", ".vnfd.yml")
    return (
        [named] if named in files else sorted(n for n in files if n.endswith(suffixes))
    )


def problems(files: Mapping[str, bytes]) -> Iterator[str]:
    """What Tacker refuses of TOSCA.meta and of the SOL004 manifest that it names."""
    if PATH not in files:
        yield f"{PATH} is missing"
        return
    head = _head(files[PATH])
    if not head:
        yield f"{PATH}: it is no YAML mapping, as which Tacker reads all of it"
    entry = head.get("Entry-Definitions")
    if entry not in files:
        named = entry or "nothing"
        yield f"{PATH}: Entry-Definitions names {named}, which is not there"
    manifest = head.get(_MANIFEST)
    if manifest and not str(manifest).lower().endswith(".mf"):
        yield f"{PATH}: {_MANIFEST} names {manifest}, whose name must end with .mf"
    elif manifest and manifest not in files:
        yield f"{PATH}: {_MANIFEST} names {manifest}, which is not there"
    elif manifest:
        yield from _hash_problems(str(manifest), files)
    yield from _hash_problems(PATH, files)


def unlisted(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The files that have no hash, which Tacker takes as they are."""
    manifest = _head(files.get(PATH, b"")).get(_MANIFEST)
    lists = [name for name in (PATH, str(manifest)) if name in files]
    listed = {
        str(entry.get("Name") or entry.get("Source"))
        for name in lists
        for _, entry in _blocks(files[name])
        if isinstance(entry, dict)
    }
    return tuple(sorted(files.keys() - listed - {*lists}))


def _head(content: bytes) -> Mapping[str, Any]:
    """The whole file as one mapping, the last of equal keys; empty if it is none."""
    try:
        return mapping(tree.parse(content.decode()))
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}


def _blocks(content: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each block with a hash; None where it is no YAML."""
    for number, block in enumerate(re.split(b"\n\n+", content), 1):
        if b"Algorithm:" in block or b"Hash:" in block:
            try:
                yield number, tree.parse(block.decode())
            except (yaml.YAMLError, UnicodeDecodeError):
                yield number, None


def _hash_problems(where: str, files: Mapping[str, bytes]) -> Iterator[str]:
    for number, block in _blocks(files[where]):
        if not isinstance(block, dict):
            yield (
                f"{where}: its block {number} is no YAML mapping; blocks are parted by "
                "empty lines that end with a line feed alone"
            )
            continue
        entry = {**block, **({"Source": block["Name"]} if "Name" in block else {})}
        entry = {k: v for k, v in entry.items() if k not in ("Name", "Content-Type")}
        if why := _wrong(entry, files):
            name = entry.get("Source") or f"its block {number}"
            yield f"{name} in {where}: {why}"


def _wrong(entry: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """Why Tacker refuses what is said of a file; "" if it does not."""
    if entry.keys() != _KEYS:
        extra = ", ".join(sorted(map(str, entry.keys() ^ _KEYS)))
        return f"Tacker wants Source (or Name), Algorithm and Hash alone; see {extra}"
    name, algorithm = entry["Source"], entry["Algorithm"]
    if not all(isinstance(value, str) and value for value in (name, algorithm)):
        return "its name and Algorithm must be texts"
    if not entry["Hash"]:
        return "its Hash is empty"
    if PurePosixPath(name).suffix[1:] in _IMAGES:
        return ""  # Tacker takes these without a look.
    path = posixpath.normpath(name)
    if path.startswith(("/", "../")) or path == "..":
        return "it leads out of the package"
    if algorithm.lower() not in _ALGORITHMS:
        return f"unknown hash algorithm {algorithm}"
    if name not in files:
        return "" if _is_url(name) else "it is not there"
    digest = hashlib.new(algorithm.lower().replace("-", ""), files[name]).hexdigest()
    if digest == entry["Hash"]:
        return ""
    return f"its {algorithm.lower()} is {digest}, not {entry['Hash']}"


def _is_url(name: str) -> bool:
    try:
        parts = urls.parts(name, any_port=True)
    except ValueError:
        return False
    return parts.scheme == "file" or bool(parts.scheme and parts.netloc)
