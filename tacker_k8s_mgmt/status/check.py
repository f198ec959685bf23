# SPDX-License-Identifier: Apache-2.0
"""The result of one check, a row of a report."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """The result of one check.

    :param where: file, host or path.
    :param findings: one sentence each, with what to do about it.
    :param skipped: why it was not checked, "" if it was.
    """

    name: str
    where: str
    findings: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def result(self) -> str:
        """In words, for the table."""
        if self.skipped:
            return f"not checked: {self.skipped}"
        count = len(self.findings)
        return f"{count} problem{'s' if count > 1 else ''}" if count else "good"
