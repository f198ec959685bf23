# SPDX-License-Identifier: Apache-2.0
"""The probe of the pod network, run as a node runs it."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.features.pod_network import probe

SOURCE = Path(probe.__file__).read_text()


def measure(
    *sides: tuple[Sequence[str], Sequence[str]],
    limit: float = 30,
    services: Iterable[tuple[str, int]] = (),
) -> list[Any]:
    """What probes print that run at the same time; standard error of one that fails.

    :param sides: addresses of each pod, and those of its counterparts.
    """
    answers: dict[str, Any] = {}

    def run(own: Sequence[str], others: Sequence[str]) -> None:
        request = {
            "own": list(own),
            "others": list(others),
            "services": [list(pair) for pair in services],
            "token": "t0ken",
            "limit": limit,
        }
        done = subprocess.run(
            [sys.executable, "-"],
            input=f"{SOURCE}\nmain({request!r})\n",
            capture_output=True,
            text=True,
            timeout=300,
        )
        answers[own[0]] = json.loads(done.stdout) if done.stdout else done.stderr

    threads = [threading.Thread(target=run, args=side) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[own[0]] for own, _ in sides]
