# SPDX-License-Identifier: Apache-2.0
"""The cloud's records, and the servers that it has to fail with.

The records are one JSON file behind one lock, shared by all Heat engines.
"""

import contextlib
import fcntl
import fnmatch
import json
import os
from collections.abc import Iterator
from pathlib import Path

from lab.cloud import CloudError
from lab.cloud.addresses import Records

TABLES = ("networks", "subnets", "ports", "servers", "keypairs", "quotas", "other")


class State:
    """Networks, subnets, ports, servers and other resources of Heat by id; key pairs,
    and quotas that are not as usual.

    :param directory: made when absent.
    """

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._file = self._directory / "records.json"

    @contextlib.contextmanager
    def edit(self) -> Iterator[Records]:
        """The records, locked; saved when the block ends without an exception."""
        with open(self._directory / "records.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            records = self.read()
            yield records
            temporary = self._file.with_suffix(".tmp")
            temporary.write_text(json.dumps(records))
            os.replace(temporary, self._file)

    def read(self) -> Records:
        """The records as they were last saved; every table is present."""
        try:
            records: Records = json.loads(self._file.read_text())
        except FileNotFoundError:
            records = {}
        return {table: records.get(table, {}) for table in TABLES}


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
