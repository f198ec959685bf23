# SPDX-License-Identifier: Apache-2.0
"""The record of a campaign: what happened, and when, as JSON lines."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.chaos import plan

#: The events of a record.
CAMPAIGN, STEP, REQUEST, FAULT, MENDED = (
    *("campaign", "step", "request", "fault", "fixed"),
)
STATE, ERROR, VERB, ACTION, FINDING = "state", "error", "verb", "action", "finding"
VIOLATION, OUTCOME, END = "violation", "outcome", "end"
#: The moment of a fault did not come.
MISSED = "missed"


class Record:
    """Appends events to a file, each with its time and the number of its step.

    Usable from several threads.

    :param tell: gets each event, too.
    """

    def __init__(
        self,
        path: Path,
        tell: Callable[[dict[str, Any]], None] = lambda event: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self.step = 0

    def add(self, event: str, **fields: Any) -> None:
        """Append an event."""
        now = round(self._clock(), 3)
        line = {"time": now, "event": event, "step": self.step, **fields}
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._tell(line)


def read(path: Path) -> list[dict[str, Any]]:
    """The events of a record.

    :raises ValueError: it is none.
    """
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def steps(events: Iterable[dict[str, Any]]) -> Iterator[plan.Step]:
    """What a record's campaign did, to do it again."""
    for event in events:
        if event["event"] == STEP:
            yield plan.of_document(event["plan"])


def clusters(events: Iterable[dict[str, Any]]) -> list[str]:
    """The clusters of a record's campaign, in their order."""
    return list(dict.fromkeys(step.cluster for step in steps(events)))
