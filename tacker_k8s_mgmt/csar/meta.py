"""TOSCA.meta: the entry file of a package, and the hash of everything in it.

Tacker compares these hashes when a package is uploaded and refuses it if one is wrong
(``tacker/common/csar_utils.py``, ``_convert_artifacts``).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

PATH = "TOSCA-Metadata/TOSCA.meta"

_CONTENT_TYPES = {
    ".yaml": "application/x-yaml",
    ".yml": "application/x-yaml",
    ".py": "text/x-python",
    ".sh": "application/x-shellscript",
}
_ALGORITHMS = ("sha-224", "sha-256", "sha-384", "sha-512")


@dataclass(frozen=True)
class Meta:
    """A TOSCA.meta as blocks of ``key: value`` lines.

    :param head: the first block.
    :param entries: the others, one for each file.
    """

    head: Mapping[str, str]
    entries: tuple[Mapping[str, str], ...]

    @property
    def entry_definitions(self) -> str:
        return self.head.get("Entry-Definitions", "")


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
        f"Content-Type: {_content_type(name)}\n"
        "Algorithm: SHA-256\n"
        f"Hash: {hashlib.sha256(files[name]).hexdigest()}\n"
        for name in sorted(files)
    ]
    return "\n".join(blocks).encode()


def _content_type(name: str) -> str:
    suffix = PurePosixPath(name).suffix
    return _CONTENT_TYPES.get(suffix, "application/octet-stream")


def parse(text: str) -> Meta:
    """Read a TOSCA.meta; lines without a colon are left out."""
    blocks: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not line.strip():
            blocks.append({})
        elif colon:
            blocks[-1][key.strip()] = value.strip()
    head, *entries = [block for block in blocks if block] or [{}]
    return Meta(head, tuple(entries))


def problems(meta: Meta, files: Mapping[str, bytes]) -> list[str]:
    """What is wrong with *meta* for a package of these *files*."""
    found = []
    if meta.entry_definitions not in files:
        entry = meta.entry_definitions or "nothing"
        found.append(f"{PATH}: Entry-Definitions names {entry}, which is not there")
    named = set()
    for entry_block in meta.entries:
        name = entry_block.get("Name") or entry_block.get("Source") or ""
        named.add(name)
        found += _entry_problems(name, entry_block, files)
    unnamed = sorted(set(files) - named - {PATH})
    if unnamed:
        found.append(f"{PATH}: no hash for {', '.join(unnamed)}")
    return found


def _entry_problems(
    name: str, entry: Mapping[str, str], files: Mapping[str, bytes]
) -> list[str]:
    algorithm = entry.get("Algorithm", "").lower()
    if name not in files:
        return [
            f"{PATH}: it lists {name or 'a file without a name'}, which is not there"
        ]
    if algorithm not in _ALGORITHMS:
        return [
            f"{PATH}: {name} has the unknown hash algorithm {algorithm or '(none)'}"
        ]
    digest = hashlib.new(algorithm.replace("-", ""), files[name]).hexdigest()
    if digest != entry.get("Hash"):
        return [
            f"{name}: its {algorithm} is {digest}, "
            f"but {PATH} says {entry.get('Hash') or 'nothing'}"
        ]
    return []
