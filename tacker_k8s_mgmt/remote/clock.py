# SPDX-License-Identifier: Apache-2.0
"""The real clock of the operations."""

import time


class SystemClock:
    """The real :class:`tacker_k8s_mgmt.lifecycle.ports.Clock`."""

    def now(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Pause this thread."""
        time.sleep(seconds)
