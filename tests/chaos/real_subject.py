# SPDX-License-Identifier: Apache-2.0
"""A cluster of a campaign in the real laboratory, with what it is used for."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.chaos import catalogue
from tests.chaos.subject import Subject
from tests.chaos.work import Work
from tests.real.laboratory import RealLab, RealLabV2


class RealSubject(Subject):
    """It carries workloads, which have to be left alone."""

    kind = catalogue.REAL
    labs = (RealLab, RealLabV2)
    variables: Mapping[str, Any] = {}
    drain: Mapping[str, Any] = {"timeout": 90}
    #: Flannel isolates none.
    tenant: Mapping[str, Any] = {"isolated": False}

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._work: Work | None = None
        self._another = False
        self.checks = (self.workloads_run, self.no_write_lost)

    def put_to_use(self) -> None:
        """Let workloads run on it, unless they do."""
        if self._work and self.cluster.uid == self._work.uid:
            self._work.find()
        else:
            unasked = self._work is not None and not self.replaced
            self._leave()
            self._another = unasked
            excused = lambda: self.disrupted or self.replaced  # noqa: E731
            self._work = Work(self.cluster, self.lab.scratch, excused)
        self.replaced = False

    def changes(self, fault: str, cured: str) -> dict[str, Any]:
        """Nothing: what new nodes download is at fault."""
        return {}

    def workloads_run(self, _: Subject) -> Iterator[str]:
        """All replicas, and an agent on every worker that is not in maintenance."""
        if self._work:
            yield from self._work.missing()

    def no_write_lost(self, _: Subject) -> Iterator[str]:
        """What was acknowledged is there."""
        if self._another:
            yield "it is another cluster, though nothing was to replace it"
        if self._work:
            yield from self._work.lost()

    def incidents(self) -> list[str]:
        """Operations that have stopped more pods than their budget allows."""
        return self._work.broken_budgets() if self._work else []

    def renew(self) -> None:
        """Give up the VNF instance with its workloads, and have another one."""
        self._leave()
        super().renew()

    def close(self) -> None:
        """Terminate and delete what there is."""
        self._leave()
        super().close()

    def _leave(self) -> None:
        if self._work:
            self._work.end()
        self._work = None
        self._another = False
