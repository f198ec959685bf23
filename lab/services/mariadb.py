# SPDX-License-Identifier: Apache-2.0
"""MariaDB: the databases of Keystone, Heat and Tacker."""

import socket
from pathlib import Path

from lab import command
from lab.services.process import Service
from lab.settings import ADDRESS, PORTS, Settings

NAME = "mariadb"
INIT_LIMIT = 120


def directory(settings: Settings) -> Path:
    """Where the databases are."""
    return settings.data / "mysql"


def create(settings: Settings) -> None:
    """Make a data directory without databases of the lab."""
    options = [
        f"--defaults-file={settings.etc / 'my.cnf'}",
        "--user=root",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
        # The lab's host name is in no DNS, and nothing here depends on it.
        "--force",
    ]
    log = settings.log / f"{NAME}.log"
    command.run(["mariadb-install-db", *options], limit=INIT_LIMIT, log=log)


def service(settings: Settings) -> Service:
    """The server."""
    config = settings.etc / "my.cnf"
    return Service(
        name=NAME,
        argv=("mariadbd", f"--defaults-file={config}"),
        ready=lambda _: _accepts(),
        files=(config,),
        patience=15.0,
    )


def _accepts() -> bool:
    """Whether the server greets; the port alone is open earlier."""
    try:
        with socket.create_connection((ADDRESS, PORTS[NAME]), timeout=2) as connection:
            return len(connection.recv(5)) == 5
    except OSError:
        return False
