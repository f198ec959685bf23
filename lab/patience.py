# SPDX-License-Identifier: Apache-2.0
"""How long to wait for something that a slow machine may take long for."""

import time
from collections.abc import Callable

#: Seconds after which something that still moves is taken for an endless loop.
LONGEST = 1800.0


class Patience:
    """Lasts as long as something moves.

    :param moved: what differs from one call to the next while something moves.
    :param silence: seconds without a difference after which it ends.
    :param longest: seconds after which it ends in any case.
    """

    def __init__(
        self,
        moved: Callable[[], object],
        silence: float,
        longest: float = LONGEST,
    ) -> None:
        self._moved = moved
        self._silence = silence
        self._last = moved()
        now = time.monotonic()
        self._end = now + silence
        self._latest = now + max(silence, longest)

    def is_over(self) -> bool:
        """Whether it makes no sense to wait longer."""
        now = time.monotonic()
        state = self._moved()
        if state != self._last:
            self._last = state
            self._end = now + self._silence
        return now > min(self._end, self._latest)
