# SPDX-License-Identifier: Apache-2.0
"""A journal in memory."""

from typing import Any

from tacker_k8s_mgmt.journal import Journal


class FakeJournal(Journal):
    """Records in a list."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def record(self, event: str, **fields: Any) -> None:
        self.records.append({"event": event, **fields})
