# SPDX-License-Identifier: Apache-2.0
"""``etcd``: one member, configured as by kubespray, until it is stopped."""

import os
import signal
import sys
import threading
from pathlib import Path

from .errors import EtcdError
from .node import Node, configuration

ENV_FILE = Path("/etc/etcd.env")
_LOOK_UP = 0.5  # seconds


def environment(path: Path) -> dict[str, str]:
    """The variables of a systemd ``EnvironmentFile``."""
    lines = path.read_text().splitlines() if path.exists() else []
    pairs = [line.partition("=") for line in lines if line and line[0] != "#"]
    return {name: value for name, _, value in pairs}


def main() -> int:
    told_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_stop.set())
    try:
        node = Node(configuration({**environment(ENV_FILE), **os.environ}))
    except EtcdError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"member {node.member.id:x} serves", flush=True)
    while not told_to_stop.wait(_LOOK_UP):
        if node.member.stopped.is_set():
            print("the member has been permanently removed from the cluster")
            return 0
    node.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
