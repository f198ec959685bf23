# SPDX-License-Identifier: Apache-2.0
"""Waits for an operation: a line for each state, with the time that has passed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.hooks.instance_view import FAILED_TEMP
from tacker_k8s_mgmt.model.timeline import in_words
from tacker_k8s_mgmt.tools.tacker import records
from tacker_k8s_mgmt.tools.tacker.client import Refused, Silent, Tacker
from tacker_k8s_mgmt.tools.tacker.records import Api, Occurrence

#: Seconds between two questions.
PAUSE = 3.0
#: Seconds without an answer, after which no more is asked.
PATIENCE = 900.0
#: Seconds in which Tacker shows an operation whose request it has taken, or begins
#: what it was asked for. The v1 API shows a modification only when a conductor has it.
START = 60.0
ENDED = frozenset({*("COMPLETED", FAILED_TEMP), *(records.FAILED, records.ROLLED_BACK)})
_UNAVAILABLE = (500, 502, 503, 504)


@dataclass
class Waiting:
    """Waits for one operation.

    :param say: gets each line.
    :param before: its mark when a verb was sent for it; None for a new operation.
    """

    tacker: Tacker
    api: Api
    operation: str
    say: Callable[[str], None]
    before: tuple[str, str] | None = None
    _begun: float = field(default_factory=lambda: time.monotonic())
    _state: str = ""

    def end(self) -> Occurrence:
        """The operation in the state in which it waits for someone, or is over.

        :raises TackerError: Tacker does not show it, has not begun it, or does not
            answer for long.
        """
        while True:
            found = self._shown()
            if found and found.mark != self.before:
                self.before = None
                self._tell(found)
                if found.state in ENDED:
                    return found
            elif self._passed() > START:
                raise TackerError(detail=self._not_begun(found))
            time.sleep(PAUSE)

    def _not_begun(self, found: Occurrence | None) -> str:
        if found is None:
            return f"Tacker does not show the operation {self.operation}."
        return (
            f"Tacker has taken the request, but {records.listed([found])} as before: "
            "it has refused it when it looked closer."
        )

    def _tell(self, found: Occurrence) -> None:
        if found.state != self._state:
            self._state = found.state
            self.say(f"{found.state} after {in_words(self._passed())}")

    def _shown(self) -> Occurrence | None:
        """The operation; asked again while Tacker does not answer."""
        path = f"{self.api.operations}/{self.operation}"
        silent_since: float | None = None
        while True:
            try:
                row = self.tacker.document(path, self.api.version)
                return records.occurrence(self.api, row)
            except (Silent, Refused) as error:
                if isinstance(error, Refused):
                    if error.status == 404 and self._state == "":
                        return None
                    if error.status not in _UNAVAILABLE:
                        raise
                now = time.monotonic()
                if silent_since is None:
                    silent_since = now
                    self.say(f"{error} Asking again.")
                if now - silent_since > PATIENCE:
                    raise
                time.sleep(PAUSE)

    def _passed(self) -> float:
        return time.monotonic() - self._begun
