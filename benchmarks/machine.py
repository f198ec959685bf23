# SPDX-License-Identifier: Apache-2.0
"""The machine that measures: what it is, and whether it is busy with something else."""

import os
import platform
from typing import Any

from tacker_k8s_mgmt.remote.timing import Backoff

#: A load average per core above which figures are not meaningful.
BUSY = 0.5
PATIENCE = 180  # seconds


def description() -> dict[str, Any]:
    """Cores, memory, load and software, for comparisons of figures."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(pages * size / 2**30, 1),
        "load_average": [round(one, 2) for one in os.getloadavg()],
        "python": platform.python_version(),
    }


def is_busy() -> bool:
    """Whether other work would show in the figures."""
    return os.getloadavg()[0] > BUSY * (os.cpu_count() or 1)


def wait_until_quiet(patience: float) -> bool:
    """Wait until the machine has nothing else to do; whether it came to that."""
    waiting = Backoff(patience, first=2, longest=15)
    while is_busy() and not waiting.spent():
        waiting.pause()
    return not is_busy()
