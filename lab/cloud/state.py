# SPDX-License-Identifier: Apache-2.0
"""The cloud's records: one JSON file behind one lock, shared by all Heat engines."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

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
