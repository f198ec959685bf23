# SPDX-License-Identifier: Apache-2.0
"""Archives that are the same whenever they are made of the same contents."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# The fastest: it is packed once and unpacked on every node.
LEVEL = 1
CHUNK = 1 << 20


@dataclass(frozen=True)
class Entry:
    """A member of an archive.

    :ivar name: without a leading slash.
    :ivar source: a file with its contents, or the contents themselves. None: a
        directory.
    :ivar link: where a symbolic link points to; then there is no source.
    """

    name: str
    source: Path | bytes | None = None
    mode: int = 0o755
    link: str = ""


def write(target: Path, entries: Iterable[Entry]) -> tuple[str, str]:
    """Write a compressed archive, whose members all belong to root.

    :returns: SHA-256 of the archive and of what it is uncompressed, in hexadecimal.
    """
    with target.open("wb") as file:
        packed = _Digesting(file)
        with gzip.GzipFile("", "wb", LEVEL, packed, mtime=0) as unpacked:
            plain = _Digesting(unpacked)
            with tarfile.open(
                fileobj=plain, mode="w|", format=tarfile.GNU_FORMAT
            ) as tar:
                for entry in entries:
                    _add(tar, entry)
    return packed.digest(), plain.digest()


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_directory(root: Path) -> list[Entry]:
    """All that is in a directory, in the order of the names."""
    entries = []
    for path in sorted(root.rglob("*")):
        name, mode = str(path.relative_to(root)), path.lstat().st_mode & 0o7777
        if path.is_symlink():
            entries.append(Entry(name, link=str(path.readlink())))
        else:
            source = None if path.is_dir() else path
            entries.append(Entry(name, source, mode))
    return entries


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.name)
    info.mode = entry.mode
    if entry.link:
        info.type, info.linkname = tarfile.SYMTYPE, entry.link
        tar.addfile(info)
    elif entry.source is None:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    elif isinstance(entry.source, bytes):
        info.size = len(entry.source)
        tar.addfile(info, io.BytesIO(entry.source))
    else:
        info.size = entry.source.stat().st_size
        with entry.source.open("rb") as file:
            tar.addfile(info, file)


class _Digesting(io.RawIOBase):
    """Passes on what is written, and takes its digest."""

    def __init__(self, target: "IO[bytes] | gzip.GzipFile") -> None:
        self._target = target
        self._sum = hashlib.sha256()

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Pass something on."""
        self._sum.update(data)
        return self._target.write(data)

    def digest(self) -> str:
        """Of all that was written, in hexadecimal."""
        return self._sum.hexdigest()
