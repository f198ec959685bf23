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


class StillTime:
    """In the place of the module ``time``: only sleeping, or a test, moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
