# SPDX-License-Identifier: Apache-2.0
"""TOSCA.meta: the entry file of a package, and the hash of every file in it.

Tacker compares the hashes at upload and refuses a package with a wrong one
(``tacker/common/csar_utils.py``, ``_convert_artifacts``).
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

PATH = "TOSCA-Metadata/TOSCA.meta"

_CONTENT_TYPES = {
    ".yaml": "application/x-yaml",
    ".yml": "application/x-yaml",
    ".py": "text/x-python",
    ".sh": "application/x-shellscript",
}
_UNKNOWN = "application/octet-stream"
_ALGORITHMS = ("sha-224", "sha-256", "sha-384", "sha-512")


@dataclass(frozen=True)
class Meta:
    """A TOSCA.meta.

    :param entry_definitions: path of the entry file; "" if it names none.
    :param entries: the ``key: value`` lines of each file.
    """

    entry_definitions: str
    entries: tuple[Mapping[str, str], ...]


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
    """Read a TOSCA.meta; lines without a colon are left out."""
    blocks: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not line.strip():
            blocks.append({})
        elif colon:
            blocks[-1][key.strip()] = value.strip()
    head, *entries = [block for block in blocks if block] or [{}]
    return Meta(head.get("Entry-Definitions", ""), tuple(entries))


def entry_files(named: str, files: Mapping[str, bytes]) -> list[str]:
    """The file that TOSCA.meta names, or else all that could be the entry file."""
    suffixes = (".vnfd.yaml", ".vnfd.yml")
    return (
        [named] if named in files else sorted(n for n in files if n.endswith(suffixes))
    )


def problems(meta: Meta, files: Mapping[str, bytes]) -> Iterator[str]:
    """What is wrong with *meta* for a package of these *files*."""
    if meta.entry_definitions not in files:
        entry = meta.entry_definitions or "nothing"
        yield f"{PATH}: Entry-Definitions names {entry}, which is not there"
    unnamed = set(files) - {PATH}
    for block in meta.entries:
        name = block.get("Name") or block.get("Source") or ""
        unnamed.discard(name)
        yield from _entry_problems(name, block, files)
    if unnamed:
        yield f"{PATH}: no hash for {', '.join(sorted(unnamed))}"


def _entry_problems(
    name: str, entry: Mapping[str, str], files: Mapping[str, bytes]
) -> Iterator[str]:
    algorithm, expected = entry.get("Algorithm", "").lower(), entry.get("Hash")
    if name not in files:
        yield f"{PATH}: it lists {name or 'a file without a name'}, which is not there"
    elif algorithm not in _ALGORITHMS:
        yield f"{PATH}: {name} has the unknown hash algorithm {algorithm or '(none)'}"
    else:
        digest = hashlib.new(algorithm.replace("-", ""), files[name]).hexdigest()
        if digest != expected:
            yield (
                f"{name}: its {algorithm} is {digest}, but {PATH} says "
                f"{expected or 'nothing'}"
            )
