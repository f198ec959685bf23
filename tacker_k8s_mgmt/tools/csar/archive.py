# SPDX-License-Identifier: Apache-2.0
"""A package as an archive, and TOSCA.meta, its entry file.

Archives are reproducible when written, and not trusted when read.

TOSCA.meta has the hash of every file in the package. Tacker compares the hashes at
upload and refuses a package with a wrong one. It reads the whole file as one YAML
mapping, and each block of it as another (``tacker/common/csar_utils.py``,
``_convert_artifacts``; tosca-parser's ``csar.py``).
"""

import gzip
import hashlib
import io
import posixpath
import re
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.yaml_text import mapping, parse_yaml

_EPOCH = (1980, 1, 1, 0, 0, 0)
_LIMIT = 512 * 1024 * 1024
_MOST = 20_000  # files
# What a file system takes, and what can be unpacked without much recursion.
_LONGEST = 1024  # bytes of a path
_LONGEST_PART = 255
_DEEPEST = 64  # directories
_SHOWN = 100  # characters
# RuntimeError: it is encrypted, or compressed in a way that zipfile does not know.
# ValueError, IndexError: a name is no text, or offsets lead nowhere.
_UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, IndexError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)


def write(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a zip of *files* with fixed order, times and modes.

    Scripts are executable: Tacker keeps the modes when it unpacks the package.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, wherever it is built
            mode = 0o755 if name.endswith(".sh") else 0o644
            info.external_attr = (stat.S_IFREG | mode) << 16
            package.writestr(info, files[name])


def tgz(files: Mapping[str, bytes]) -> bytes:
    """A compressed tar archive of *files* with fixed order, times and modes."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as package,
    ):
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            package.addfile(info, io.BytesIO(files[name]))
    return packed.getvalue()


def read(path: Path) -> dict[str, bytes]:
    """The files of the zip at *path*.

    :raises OSError: there is no such file, or it may not be read.
    :raises PackageError: it is not a zip, is damaged, a name leads out of it, or it is
        too large.
    """
    try:
        with zipfile.ZipFile(path) as package:
            entries = package.infolist()
            if problems := _name_problems([info.filename for info in entries]):
                raise PackageError(str(path), problems)
            members = [info for info in entries if not info.is_dir()]
            if problems := _member_problems(members):
                raise PackageError(str(path), problems)
            return {info.filename: _content(package, info) for info in members}
    except _UNREADABLE as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise PackageError(
            str(path), [f"it cannot be read as a zip: {error}"]
        ) from error


def _content(package: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    # The size is what the package says. It may be unpacked to more than that.
    with package.open(info) as member:
        return member.read(info.file_size)


def _member_problems(members: list[zipfile.ZipInfo]) -> list[str]:
    # "./a" and "a" are one file.
    names = Counter(str(PurePosixPath(info.filename)) for info in members)
    problems = [
        f"{name} occurs more than once" for name in sorted(names) if names[name] > 1
    ]
    for info in members:
        name, path = info.filename, PurePosixPath(info.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            problems.append(f"{name!r} would be unpacked outside the package")
        if any(str(parent) in names for parent in path.parents):
            problems.append(f"{name!r} is below what is a file")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            problems.append(f"{name!r} is a link or device, which Tacker cannot unpack")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # Others cannot be unpacked a part at a time.
            problems.append(f"{name!r} is not compressed with deflate")
    size = sum(info.file_size for info in members)
    if size > _LIMIT:
        problems.append(f"{size} bytes are too much to check (limit: {_LIMIT})")
    return problems


def _name_problems(names: Sequence[str]) -> list[str]:
    """What no file or directory can be called; other checks rely on it."""
    if len(names) > _MOST:
        return [f"{len(names)} files are too many to check (limit: {_MOST})"]
    return [text for name in names if (text := _no_name(name))]


def _no_name(name: str) -> str:
    parts = name.removesuffix("/").split("/")
    longest = max(len(part.encode()) for part in parts)
    if (
        longest > _LONGEST_PART
        or len(name.encode()) > _LONGEST
        or len(parts) > _DEEPEST
    ):
        return f"{name[:_SHOWN]!r}... is too long or too deep for a path"
    return f"{name!r} is not the name of a file" if parts[-1] in ("", ".") else ""


@contextmanager
def unpacked(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A temporary directory with *files*."""
    with tempfile.TemporaryDirectory(prefix="csar-") as directory:
        root = Path(directory)
        for name, content in files.items():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        yield root


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
        return mapping(parse_yaml(content.decode()))
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}


def _blocks(content: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each block with a hash; None where it is no YAML."""
    for number, block in enumerate(re.split(b"\n\n+", content), 1):
        if b"Algorithm:" in block or b"Hash:" in block:
            try:
                yield number, parse_yaml(block.decode())
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
        parts = untrusted.url_parts(name, any_port=True)
    except ValueError:
        return False
    return parts.scheme == "file" or bool(parts.scheme and parts.netloc)
