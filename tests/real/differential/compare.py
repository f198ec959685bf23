# SPDX-License-Identifier: Apache-2.0
"""Runs the rows at both sites at once and tells where they differ."""

import fnmatch
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.real.differential.rows import Row, comparable, flat
from tests.real.differential.site import Site


@dataclass(frozen=True)
class Accepted:
    """A difference that is meant to be.

    :param row: pattern of the names of rows.
    :param path: pattern of what differs there.
    :param items: of two lists, those that only one of them has; else anything differs.
    :param is_of_time: a matter of how fast the real one is, so they may agree.
    """

    row: str
    path: str
    reason: str
    items: frozenset[str] = frozenset()
    is_of_time: bool = False


@dataclass(frozen=True)
class Difference:
    """One value that is not the same at both sites."""

    row: str
    path: str
    real: Any
    emulator: Any

    def __str__(self) -> str:
        lines = (
            f"{self.row} | {self.path}",
            f"    real:     {self.real!r}",
            f"    emulator: {self.emulator!r}",
        )
        return "\n".join(lines)

    def is_meant(self, one: Accepted) -> bool:
        """Whether it is the difference that is accepted."""
        matches = fnmatch.fnmatchcase
        if not (matches(self.row, one.row) and matches(self.path, one.path)):
            return False
        return not one.items or self._is_about(one.items)

    def _is_about(self, items: frozenset[str]) -> bool:
        lists = isinstance(self.real, list) and isinstance(self.emulator, list)
        return lists and set(self.real) ^ set(self.emulator) <= items


def _see(site: Site, rows: Sequence[Row], seen: dict[str, Any]) -> None:
    for row in rows:
        try:
            seen[row.name] = comparable(row.see(site))
        except Exception as error:  # the other rows are worth seeing all the same
            seen[row.name] = {"raised": f"{site.name}: {error!r}"}


def run(sites: Sequence[Site], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What each site showed in each row."""
    seen: list[dict[str, Any]] = [{} for _ in sites]
    threads = [
        threading.Thread(target=_see, args=(site, rows, found))
        for site, found in zip(sites, seen, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def differences(real: dict[str, Any], emulator: dict[str, Any]) -> list[Difference]:
    """Every value that is not the same."""
    found = []
    for row in real:
        values, others = dict(flat(real[row])), dict(flat(emulator[row]))
        for path in values | others:
            one, other = values.get(path), others.get(path)
            if one != other:
                found.append(Difference(row, path, one, other))
    return found
