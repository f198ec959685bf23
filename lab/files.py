# SPDX-License-Identifier: Apache-2.0
"""Locks, digests and directories with a mark of the lab."""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import LabError

MARKER = ".tacker-k8s-lab"


@contextmanager
def locked(path: Path, busy: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock file; waits until it is free.

    The holder may remove the file: then the next one recreates it.

    :param busy: called before waiting.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                busy()
                fcntl.flock(file, fcntl.LOCK_EX)
            if _is_still(path, file.fileno()):
                yield
                return


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def digest(paths: Iterable[Path], *texts: str) -> str:
    """A short name for the contents of files, their names, and some texts."""
    total = hashlib.sha256("\0".join(texts).encode())
    for path in sorted(paths):
        total.update(f"\0{path.name}\0".encode())
        total.update(path.read_bytes())
    return total.hexdigest()[:12]


def claim(directory: Path) -> None:
    """Make and mark a directory, so that :func:`remove` may remove it.

    :raises LabError: it has contents that are not ours, or is inside another lab's.
    """
    marker = directory / MARKER
    if marker.exists():
        return
    for above in directory.resolve().parents:
        if (above / MARKER).exists():
            # The other lab would remove it with its own.
            raise LabError(f"{directory} is inside the lab {above}", 2)
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise LabError(
            f"{directory} is not empty and not a lab's: choose another --state", 2
        )
    marker.write_text("Made by python3 -m lab, which also removes this directory.\n")


def is_ours(directory: Path) -> bool:
    """Whether a directory was made by :func:`claim`."""
    return (directory / MARKER).exists()


def remove(directory: Path) -> None:
    """Remove a marked directory; it may be absent.

    :raises LabError: it is not ours.
    """
    if not directory.exists():
        return
    if not is_ours(directory):
        raise LabError(f"{directory} is not a lab's: not removed", 2)
    shutil.rmtree(directory)


def put_program(source: Path, target: Path) -> None:
    """Copy a program to where others may be starting it."""
    temporary = target.with_suffix(f".{os.getpid()}")
    shutil.copyfile(source, temporary)
    temporary.chmod(0o755)
    temporary.replace(target)


def is_named_by_processes(text: str, file: str, proc: Path = Path("/proc")) -> bool:
    """Whether a file of any process in ``/proc`` has a text.

    :param file: ``cmdline``, for instance.
    """
    for path in proc.glob(f"[0-9]*/{file}"):
        # The process may end meanwhile.
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes():
                return True
    return False
