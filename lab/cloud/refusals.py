# SPDX-License-Identifier: Apache-2.0
"""Servers that the cloud neither builds nor deletes, as when hypervisors are ill."""

import fnmatch
from pathlib import Path

from lab.cloud import CloudError


class Refusals:
    """The names of servers that are refused, as shell patterns.

    :param state: the cloud's state directory.
    """

    def __init__(self, state: Path) -> None:
        self._file = state / "refused"

    def check(self, name: str) -> None:
        """See that a server may be built.

        :raises CloudError: it is refused.
        """
        if self.concern(name):
            raise CloudError(f"No valid host was found for {name}")

    def concern(self, server: str) -> bool:
        """Whether the server of this name is among them."""
        return any(fnmatch.fnmatchcase(server, pattern) for pattern in self._patterns())

    def add(self, pattern: str) -> None:
        """Refuse the servers of these names from now on."""
        self._write({*self._patterns(), pattern})

    def remove(self, pattern: str) -> None:
        """Build them again.

        :raises CloudError: they were not refused.
        """
        patterns = self._patterns()
        if pattern not in patterns:
            listed = ", ".join(sorted(patterns)) or "none"
            raise CloudError(f"{pattern} is not refused; these are: {listed}", 2)
        self._write(patterns - {pattern})

    def _patterns(self) -> set[str]:
        try:
            return set(self._file.read_text().splitlines())
        except FileNotFoundError:
            return set()

    def _write(self, patterns: set[str]) -> None:
        self._file.write_text("".join(f"{pattern}\n" for pattern in sorted(patterns)))
