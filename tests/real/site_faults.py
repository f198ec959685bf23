# SPDX-License-Identifier: Apache-2.0
"""What can be wrong at a site of the real laboratory: a file, a disk."""

import contextlib
from collections.abc import Iterator

from lab import client
from lab.real import request
from lab.services import mirror
from lab.settings import from_environment

KUBELET = "kubelet"
_FILL = "/tmp/fill"
# What is allocated is not written, so a large disk is full at once.
_FULL = (
    f"fallocate -l $(df --output=avail -B1 / | tail -n 1) {_FILL};"
    f" cat /dev/zero >>{_FILL} 2>/dev/null; true"
)


@contextlib.contextmanager
def spoiled(release: str) -> Iterator[None]:
    """The kubelet of a release is not what its checksum says."""
    version = f"v{request.kubernetes_version(release)}"
    found = (mirror.root(from_environment()) / "files").rglob(f"{version}/**/{KUBELET}")
    (path,) = found
    target = path.readlink()
    path.unlink()
    try:
        path.write_bytes(target.read_bytes()[:-1] + b"?")
        yield
    finally:
        path.unlink()
        path.symlink_to(target)


def fill(server: str) -> None:
    """Leave a VM no room, for downloads or anything else."""
    client.on_host(server, "sh", "-c", _FULL)


def empty(server: str) -> None:
    """Give it its room back."""
    client.on_host(server, "rm", "-f", _FILL)


@contextlib.contextmanager
def full(server: str) -> Iterator[None]:
    """A VM that has no room."""
    fill(server)
    try:
        yield
    finally:
        empty(server)
