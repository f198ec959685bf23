# SPDX-License-Identifier: Apache-2.0
"""Archives: reproducible when written, and not trusted when read."""

import gzip
import io
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from tacker_k8s_mgmt.errors import PackageError

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
    :raises PackageError: it is no zip, is damaged, a name leads out of it, or it is
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
