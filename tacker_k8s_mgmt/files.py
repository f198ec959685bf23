# SPDX-License-Identifier: Apache-2.0
"""Files of this host that are written completely or not at all."""

import errno
import os
import pwd
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Enough to search it, as a path does.
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LINKS = 40  # as Linux has it
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
    """A temporary file that replaces *path* when no exception is raised.

    What is written goes into the file that was made, also if another process replaces
    it by a link meanwhile: the path that is returned is that of an open file.

    :param path: of a regular file, or of nothing.
    :param mode: of the new file.
    :raises NotWritten: also if something else is at *path*, or root would follow a
        link of another user.
    """
    exists(path)
    temporary = f".new-{secrets.token_hex(8)}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        directory = _open_directory(path.parent)
    except OSError as error:
        raise NotWritten(path, reason(error)) from error
    descriptor, name = -1, ""
    try:
        descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
        name = f"/proc/self/fd/{descriptor}"
        yield Path(name)
        os.fchmod(descriptor, mode)
        # A crash leaves the former file or the new one.
        os.fsync(descriptor)
        # What is written may have taken minutes.
        exists(path)
        os.replace(temporary, path.name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError as error:
        if error.filename not in (None, name, temporary) or isinstance(
            error, NotWritten
        ):
            raise
        # A full disk has no name.
        raise NotWritten(path, reason(error)) from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
        os.close(directory)


def make_directory(path: Path, *, parents: bool = False) -> None:
    """Make a directory of mode 0700, if there is none.

    :param parents: make those above it, too.
    :raises OSError: also if root would follow a link of another user.
    """
    last = len(Path(os.path.abspath(path)).parts) - 1
    os.close(_open_directory(path, makes=last if parents else 1))


@contextmanager
def as_owner_of(directory: str | Path) -> Iterator[int]:
    """Root becomes the owner of a directory meanwhile; others stay what they are.

    A process of root's that writes among another user's files has that user's rights,
    so links and races of that user lead to nothing more. It is for commands: all
    threads of the process change.

    :returns: the open directory, whose owner it is whatever is at the path by now.
    :raises OSError: there is no such directory, or root would follow a link of another
        user.
    """
    former = os.geteuid(), os.getegid(), os.getgroups()
    is_root = os.getuid() == 0
    if is_root:
        os.seteuid(0)
    try:
        with naming(directory):
            descriptor = _open_directory(Path(directory))
    except OSError:
        os.seteuid(former[0])
        raise
    try:
        if is_root:
            owner = os.fstat(descriptor)
            group = _group(owner)
            _become(owner.st_uid, group, [group])
        yield descriptor
    finally:
        os.close(descriptor)
        if is_root:
            _become(*former)


def _group(owner: os.stat_result) -> int:
    """The group to write with: of another user than root never root's."""
    if owner.st_uid == 0 or owner.st_gid != 0:
        return owner.st_gid
    try:
        return pwd.getpwuid(owner.st_uid).pw_gid or owner.st_uid
    except KeyError:
        return owner.st_uid


def open_regular(path: Path, flags: int, *, directory: int) -> int:
    """Open a regular file; neither a link is followed nor a named pipe waited for.

    :param directory: the open directory in which it is.
    :raises OSError: also if there is something else.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with naming(path):
        descriptor = os.open(path.name, flags, 0o600, dir_fd=directory)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Name the path in an error of what works by descriptor."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _become(user: int, group: int, groups: list[int]) -> None:
    os.seteuid(0)
    os.setgroups(groups)
    os.setegid(group)
    os.seteuid(user)


def _open_directory(path: Path, makes: int = 0) -> int:
    """Open a directory; root follows links of root only.

    :param makes: how many at the path's end are made if they are missing.
    """
    parts = list(reversed(Path(os.path.abspath(path)).parts[1:]))
    descriptor, links = os.open("/", _DIRECTORY), 0
    try:
        while parts:
            part = parts.pop()
            target = _link(part, descriptor)
            if target is None:
                if len(parts) < makes:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=descriptor)
                inner = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            else:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                parts += reversed(Path(target).parts)
                if not target.startswith("/"):
                    continue
                inner = os.open(parts.pop(), _DIRECTORY)
            os.close(descriptor)
            descriptor = inner
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _link(name: str, directory: int) -> str | None:
    """Where a link leads; None if it is none.

    :raises OSError: root would follow it, and it is another user's.
    """
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(status.st_mode):
        return None
    if os.geteuid() == 0 and status.st_uid != 0:
        why = f"{name} on the way there is a link of another user, which root refuses"
        raise OSError(errno.EPERM, why)
    return os.readlink(name, dir_fd=directory)


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
