"""Free space on another host: where files of a cluster are, or are to be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tacker_k8s_mgmt.remote.ssh.channel import Result

_SECONDS = 30.0
# Of the directory, or else of the nearest one above it that is there.
_ASK = """
place=$1
until [ -d "$place" ]; do place=$(dirname -- "$place"); done
df -B1048576 --output=avail,itotal,iavail,target -- "$place" | tail -n 1
"""


class Host(Protocol):
    """A session, as far as it is needed here."""

    def run(
        self, argv: Sequence[str], *, timeout: float, check: bool = True
    ) -> Result: ...


@dataclass(frozen=True)
class Space:
    """What is free on a file system.

    :param mebibytes: free for this user.
    :param files: how many more can be made; None where there is no such limit.
    :param place: where it is mounted.
    """

    mebibytes: int
    files: int | None
    place: str

    def __str__(self) -> str:
        files = "" if self.files is None else f" and {self.files} inodes"
        return f"{self.mebibytes} MiB{files} free on {self.place}"

    def suffices(self, mebibytes: int, files: int) -> bool:
        """Whether as much, and as many files, can be written."""
        return self.mebibytes >= mebibytes and (
            self.files is None or self.files >= files
        )


def free(host: Host, path: str) -> Space | None:
    """What is free where a path is, or would be made; None where ``df`` does not say.

    :param path: absolute.
    :raises RemoteError: the session broke.
    """
    told = host.run(["sh", "-c", _ASK, "sh", path], timeout=_SECONDS, check=False)
    fields = told.stdout.split(None, 3)
    if told.rc or len(fields) != 4:
        return None
    numbers, place = fields[:3], fields[3].rstrip("\n")
    if not numbers[0].isdecimal():
        return None
    # Btrfs and others make inodes as they are needed, and report none.
    counted = numbers[1].isdecimal() and numbers[2].isdecimal() and int(numbers[1]) > 0
    return Space(int(numbers[0]), int(numbers[2]) if counted else None, place)
