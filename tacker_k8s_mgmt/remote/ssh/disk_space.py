# SPDX-License-Identifier: Apache-2.0
"""Free disk space on another host, where a file is or would be written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tacker_k8s_mgmt.remote.ssh.channel import Result

_SECONDS = 30.0
# Of the directory, or else of its nearest existing parent.
_SCRIPT = """
place=$1
until [ -d "$place" ]; do place=$(dirname -- "$place"); done
df -B1048576 --output=avail,itotal,iavail,target -- "$place" | tail -n 1
"""


class Host(Protocol):
    """A session, as far as it is used here."""

    def run(
        self, argv: Sequence[str], *, timeout: float, check: bool = True
    ) -> Result: ...


@dataclass(frozen=True)
class Space:
    """Free space on a file system.

    :param mebibytes: available to this user.
    :param files: free inodes; None if the file system has no fixed number.
    :param place: mount point.
    """

    mebibytes: int
    files: int | None
    place: str

    def __str__(self) -> str:
        files = "" if self.files is None else f" and {self.files} inodes"
        return f"{self.mebibytes} MiB{files} free on {self.place}"

    def suffices(self, mebibytes: int, files: int) -> bool:
        """Return whether so much, in so many files, can be written."""
        return self.mebibytes >= mebibytes and (
            self.files is None or self.files >= files
        )


def free(host: Host, path: str) -> Space | None:
    """Return the free space at an absolute path, which need not exist.

    :returns: None if ``df`` failed.
    :raises RemoteError: the session broke.
    """
    result = host.run(["sh", "-c", _SCRIPT, "sh", path], timeout=_SECONDS, check=False)
    fields = result.stdout.split(None, 3)
    available, total_inodes, free_inodes, place = (*fields, *[""] * 4)[:4]
    if result.rc or not place or not _is_number(available):
        return None
    # Btrfs and others allocate inodes dynamically and report no number.
    fixed = _is_number(total_inodes) and _is_number(free_inodes) and int(total_inodes)
    return Space(
        int(available), int(free_inodes) if fixed else None, place.rstrip("\n")
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20
