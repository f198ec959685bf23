# SPDX-License-Identifier: Apache-2.0
"""What every process of the lab is started with, seen by looking again and again."""

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

PAUSE = 0.01  # seconds
PROC = Path("/proc")


class Watch:
    """Looks for texts in arguments and environments, from ``with`` on.

    Processes of the hosts are seen from the lab as well.

    :param pause: seconds between two looks.
    :ivar programs: names of the programs that were seen.
    :ivar found: program and text of each occurrence.
    """

    def __init__(self, texts: Sequence[str], pause: float = PAUSE) -> None:
        self._pause = pause
        self._texts = [text.encode() for text in texts]
        self._known: dict[str, bytes] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.programs: set[str] = set()
        self.found: set[tuple[str, str]] = set()

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.is_set():
            for entry in PROC.iterdir():
                if entry.name.isdigit():
                    # It may have ended.
                    with contextlib.suppress(OSError):
                        self._look(entry)
            time.sleep(self._pause)

    def _look(self, entry: Path) -> None:
        arguments = (entry / "cmdline").read_bytes()
        # The same number again, but not the same program: a new environment, too.
        if self._known.get(entry.name) == arguments:
            return
        self._known[entry.name] = arguments
        everything = arguments + b"\0" + (entry / "environ").read_bytes()
        # Of a script it is the second word.
        words = [word.decode(errors="replace") for word in arguments.split(b"\0")]
        self.programs |= {Path(word).name for word in words[:2]}
        self.found |= {
            (words[0], text.decode()) for text in self._texts if text in everything
        }
