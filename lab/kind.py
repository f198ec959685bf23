# SPDX-License-Identifier: Apache-2.0
"""Which kind of hosts a lab has, kept in its state directory.

Ordinary VMs are an sshd in namespaces. In a real lab they boot systemd from a Debian
root file system, so that the real containerd, kubelet and etcd run in them.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import LabError
from lab.settings import Settings

DEFAULT_MEMORY = 3 * 2**30
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Real:
    """The hosts of a real lab.

    :ivar memory: limit of each VM in bytes.
    """

    memory: int = DEFAULT_MEMORY


def size(text: str) -> int:
    """Bytes of a size such as ``3G`` or ``1536M``.

    :raises ValueError: it is no such size.
    """
    match = re.fullmatch(r"([1-9]\d*)([KMG]?)", text.upper())
    if not match:
        raise ValueError(f"{text} is no size such as 3G")
    return int(match[1]) * UNITS[match[2]]


def load(settings: Settings) -> Real | None:
    """The real hosts of a lab; None when its hosts are ordinary."""
    try:
        values = json.loads(_file(settings).read_text())
    except FileNotFoundError:
        return None
    return Real(**values)


def choose(settings: Settings, *, real: bool, memory: int | None) -> Real | None:
    """The kind of a lab that is started: as wanted for a new one, else as it was made.

    :param real: have VMs boot systemd; default: as before.
    :param memory: limit of such a VM in bytes; default: as before, else
        :data:`DEFAULT_MEMORY`.
    :raises LabError: the lab has hosts of another kind.
    """
    before = load(settings)
    if not settings.cloud.exists():
        if not real:
            _file(settings).unlink(missing_ok=True)
            return None
        before = Real(memory or DEFAULT_MEMORY)
        _file(settings).write_text(json.dumps(asdict(before)))
    wanted = before.memory if before else None
    if (real and not before) or (memory and memory != wanted):
        has = (
            f"boot systemd with {wanted} bytes of memory" if before else "are ordinary"
        )
        raise LabError(
            f"The VMs of the lab in {settings.state} {has}. For others, take it down"
            " first (python3 -m lab down) or use another --state",
            2,
        )
    return before


def _file(settings: Settings) -> Path:
    return settings.state / "real.json"
