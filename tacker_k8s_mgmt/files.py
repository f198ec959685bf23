# SPDX-License-Identifier: Apache-2.0
"""Files of this host that are written completely or not at all."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


class NotWritten(OSError):
    """A file cannot be written; nothing has changed at its place."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(errno.EIO, why, str(path))

    def __str__(self) -> str:
        return f"{self.filename} cannot be written: {self.strerror}"


@contextmanager
def replacing(path: Path, *, mode: int) -> Iterator[Path]:
    """A temporary file beside *path* that replaces it when no exception is raised.

    Its name does not end as that of *path* does.

    :param path: of a regular file, or of nothing.
    :param mode: of the new file.
    :raises NotWritten: also if something else is at *path*.
    """
    exists(path)
    try:
        handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    except OSError as error:
        raise NotWritten(path, reason(error)) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(mode)
        _store(temporary)
        # What is written may have taken minutes.
        exists(path)
        temporary.replace(path)
    except OSError as error:
        if error.filename not in (None, name) or isinstance(error, NotWritten):
            raise
        # A full disk has no name.
        raise NotWritten(path, reason(error)) from error
    finally:
        temporary.unlink(missing_ok=True)


def exists(path: Path) -> bool:
    """Whether there is a regular file, which a rename would replace.

    :raises NotWritten: something else is there. A rename would replace that as well:
        even a device of the host.
    """
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NotWritten(path, reason(error)) from error
    if kind != stat.S_IFREG:
        what = _KINDS.get(kind, "no file")
        raise NotWritten(path, f"it is {what}, and only a regular file is replaced")
    return True


def reason(error: OSError) -> str:
    """What went wrong, without the number and the path."""
    return error.strerror or str(error) or type(error).__name__


def _store(path: Path) -> None:
    """Bring a file to the disk, so that a crash leaves the former or the new one."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
