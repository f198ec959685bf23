# SPDX-License-Identifier: Apache-2.0
"""Starting a host: its namespaces, its cables and the talk with its process 1."""

import os
import select
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, cast

from lab.cloud import CloudError, networks
from lab.settings import PATH

INIT = Path(__file__).with_name("host_init.sh")
# Most of a second is normal on a busy machine; fifty hosts at once take longer.
BOOT_LIMIT = 90.0
DISK = "1g"
OUTPUT_TAIL = 600


class Bootable(Protocol):
    """A host of any kind that can be started."""

    @property
    def hostname(self) -> str: ...

    @property
    def nics(self) -> Sequence[networks.Nic]: ...

    def command(self) -> list[str]:
        """What is run in the lab's namespaces: it talks as host_init.sh does."""

    def environment(self) -> dict[str, str]:
        """The variables that it gets."""


@dataclass(frozen=True)
class Machine:
    """What an ordinary host is made of.

    :ivar layers: file layers above the machine's own, topmost first.
    :ivar mount: an empty directory; what is mounted there only the host sees.
    :ivar masks: directories of the machine that the host must not see.
    :ivar visible: directory of the machine that it sees read-only.
    """

    hostname: str
    nics: Sequence[networks.Nic]
    layers: Sequence[Path]
    mount: Path
    masks: Sequence[Path]
    visible: Path

    def command(self) -> list[str]:
        """What is run in the lab's namespaces to start it."""
        namespaces = ["--fork", "--pid", "--mount", "--uts", "--ipc", "--net"]
        # host_init.sh makes its mounts private: unshare cannot do so in a chroot.
        return ["unshare", *namespaces, "--propagation", "unchanged", "sh", str(INIT)]

    def environment(self) -> dict[str, str]:
        """The variables that host_init.sh reads."""
        return {
            "PATH": PATH,
            "HOST_NAME": self.hostname,
            "HOST_LAYERS": ":".join(map(str, self.layers)),
            "HOST_MOUNT": str(self.mount),
            "HOST_DISK": DISK,
            "HOST_NET": networks.host_setup(self.nics),
            "HOST_ADDRESS": self.nics[0].address if self.nics else "",
            "HOST_MASKS": "\n".join(map(str, self.masks)),
            "HOST_VISIBLE": str(self.visible),
        }


def start(machine: Bootable, log: Path) -> int:
    """Start a host and wait until it is ready.

    The host is in a session of its own and outlives its starter.

    :param log: takes what the host says while it boots.
    :return: its process 1, as a number in the lab's pid namespace.
    :raises CloudError: it did not come up; nothing of it is left running.
    """
    deadline = time.monotonic() + BOOT_LIMIT
    with log.open("w") as output:
        process = subprocess.Popen(
            machine.command(),
            env=machine.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,
        )
    pid = 0
    try:
        # The types of subprocess do not express that both are pipes.
        go, said = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        with go, said:
            pid = int(_expect(said, "PID", deadline))
            networks.plug(machine.nics, pid)
            go.write(b"go\n")
            go.flush()
            _expect(said, "READY", deadline)
    except (CloudError, OSError, ValueError) as error:
        _abandon(process, pid)
        said_last = log.read_text(errors="replace")[-OUTPUT_TAIL:].strip()
        raise CloudError(
            f"Host {machine.hostname} did not start: {error}. {said_last}".strip()
        ) from error
    return pid


def _expect(output: IO[bytes], word: str, deadline: float) -> str:
    """The rest of the next line, which starts with a word."""
    left = max(0.0, deadline - time.monotonic())
    if not select.select([output], [], [], left)[0]:
        raise CloudError(f"no {word} within {BOOT_LIMIT:.0f} s")
    line = output.readline().decode(errors="replace")
    if not line.startswith(word):
        raise CloudError(f"it ended before {word}" if not line else line.strip())
    return line[len(word) :].strip()


def _abandon(process: subprocess.Popen[bytes], pid: int) -> None:
    for victim in (pid, process.pid):
        if victim:
            try:
                os.kill(victim, 9)
            except ProcessLookupError:
                continue
    process.wait(10)
