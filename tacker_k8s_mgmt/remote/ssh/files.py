# SPDX-License-Identifier: Apache-2.0
"""Whole files on another host over SFTP, replaced atomically.

The SFTP client is a Protocol, so that paramiko stays in :mod:`.session`.
"""

import posixpath
import secrets
import stat
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

#: Bytes of a file that is read: many times what the inventory of a cluster has.
LARGEST = 32 * 1024 * 1024


class Sftp(Protocol):
    """paramiko's SFTP client, as far as it is used here."""

    def lstat(self, path: str) -> Any: ...
    def open(self, filename: str, mode: str = "r") -> AbstractContextManager[Any]: ...
    def chmod(self, path: str, mode: int) -> None: ...
    def posix_rename(self, oldpath: str, newpath: str) -> None: ...
    def remove(self, path: str) -> None: ...


def read(sftp: Sftp, path: str, largest: int = LARGEST) -> bytes | None:
    """Return the content, or None if there is no such file.

    :param largest: bytes that it may have; the other host may send any number.
    """
    try:
        with sftp.open(path, "r") as file:
            content: bytes = file.read(largest + 1)
    except FileNotFoundError:
        return None
    if len(content) > largest:
        raise OSError(f"it has more than {largest} bytes")
    return content


def replace(sftp: Sftp, path: str, content: bytes, mode: int) -> bool:
    """Write content and mode of a file; return whether that changed anything.

    A symbolic link at ``path`` is replaced, not followed.
    """
    if _same(sftp, path, content):
        if stat.S_IMODE(sftp.lstat(path).st_mode) == mode:
            return False
        sftp.chmod(path, mode)
        return True
    folder, name = posixpath.split(path)
    temp = posixpath.join(folder, f".{name}.{secrets.token_hex(4)}")
    try:
        with sftp.open(temp, "wx") as file:
            # Before the content is written, so that it is never readable for others.
            sftp.chmod(temp, mode)
            file.write(content)
        sftp.posix_rename(temp, path)
    except OSError:
        with suppress(OSError):
            sftp.remove(temp)
        raise
    return True


def _same(sftp: Sftp, path: str, content: bytes) -> bool:
    try:
        status = sftp.lstat(path)
    except FileNotFoundError:
        return False
    same_size = stat.S_ISREG(status.st_mode) and status.st_size == len(content)
    return same_size and read(sftp, path) == content
