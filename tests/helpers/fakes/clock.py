# SPDX-License-Identifier: Apache-2.0
"""A clock for operations that wait."""

from tacker_k8s_mgmt.remote.timing import Clock


class FakeClock(Clock):
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
