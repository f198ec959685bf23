# SPDX-License-Identifier: Apache-2.0
"""MariaDB and RabbitMQ, which the services of OpenStack stand on."""

import socket
import subprocess

from lab import command, environments
from lab.packages import RABBITMQ
from lab.services.config import WSGI
from lab.services.process import Service
from lab.settings import ADDRESS, PORTS, Settings

DATABASE = "mariadb"
INIT_LIMIT = 120


def create_mariadb(settings: Settings) -> None:
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
    log = settings.log / f"{DATABASE}.log"
    command.run(["mariadb-install-db", *options], limit=INIT_LIMIT, log=log)


def mariadb(settings: Settings) -> Service:
    """The server."""
    config = settings.etc / "my.cnf"
    return Service(
        name=DATABASE,
        argv=("mariadbd", f"--defaults-file={config}"),
        ready=lambda _: _accepts(),
        files=(config,),
        patience=15.0,
    )


def _accepts() -> bool:
    """Whether the server greets; the port alone is open earlier."""
    try:
        with socket.create_connection(
            (ADDRESS, PORTS[DATABASE]), timeout=2
        ) as connection:
            return len(connection.recv(5)) == 5
    except OSError:
        return False


BROKER = "rabbitmq"
NODE = "lab@127.0.0.1"
DISTRIBUTION_PORT = "25672"
LOOK_LIMIT = 30


def rabbitmq(settings: Settings) -> Service:
    """The broker; called without Debian's wrapper, which insists on system places."""
    home = settings.data / "rabbitmq"
    home.mkdir(exist_ok=True)
    erlang = [
        "-kernel inet_dist_use_interface {127,0,0,1}",
        # As few threads as do, and none that spin while they wait for work.
        "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
    ]
    return Service(
        name=BROKER,
        argv=(RABBITMQ,),
        # Said when everything is started; the port is open earlier.
        ready=lambda said: "Server startup complete" in said,
        environment={
            "HOME": str(home),
            "RABBITMQ_NODENAME": NODE,
            # An address as its host: not every machine knows localhost.
            "RABBITMQ_USE_LONGNAME": "true",
            "RABBITMQ_CONFIG_FILE": str(settings.etc / "rabbitmq"),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(home / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_DIST_PORT": DISTRIBUTION_PORT,
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(erlang),
            "ERL_EPMD_ADDRESS": ADDRESS,
        },
        files=(settings.etc / "rabbitmq.conf",),
        patience=15.0,
    )


def consumers(settings: Settings, *queues: str) -> list[int]:
    """How many consumers each of the queues has.

    :returns: nothing while the broker does not answer.
    """
    python = environments.program(settings, "tacker", "python")
    broker = f"{ADDRESS}:{PORTS[BROKER]}"
    argv = [python, str(WSGI / "consumers.py"), broker, *queues]
    try:
        result = subprocess.run(
            argv, capture_output=True, timeout=LOOK_LIMIT, check=True
        )
    except subprocess.SubprocessError:
        return []
    return [int(line) for line in result.stdout.split()]
