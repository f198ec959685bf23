# SPDX-License-Identifier: Apache-2.0
"""Heat: real API and engine; its servers and networks are the lab's own."""

from lab import command, environments
from lab.namespace import clean_environment
from lab.services import gunicorn, rabbitmq
from lab.services.process import Service
from lab.settings import ROOT, Settings

API = "heat-api"
ENGINE = "heat-engine"
SCHEMA_LIMIT = 300
SAID_LAST = "Starting engine_worker"
QUEUES = ("engine", "engine_worker")
# Resource plugins may be some requests behind when the engine is stopped.
PATIENCE = 3.0


def create_schema(settings: Settings) -> None:
    """The tables."""
    manage = environments.program(settings, "openstack", "heat-manage")
    command.run(
        [manage, "--config-file", str(settings.etc / "heat.conf"), "db_sync"],
        limit=SCHEMA_LIMIT,
        log=settings.log / f"{ENGINE}.log",
        env=clean_environment(),
    )


def api(settings: Settings) -> Service:
    """The API."""
    config = settings.etc / "heat.conf"
    return gunicorn.service(
        settings,
        API,
        "heat.wsgi.api:application",
        port="heat",
        arguments=["heat-api", "--config-file", str(config)],
        files=[config],
    )


def engine(settings: Settings) -> Service:
    """The engine, with the lab's resource plugins."""
    config = settings.etc / "heat.conf"
    program = environments.program(settings, "openstack", ENGINE)
    plugins = (ROOT / "lab" / "cloud").rglob("*.py")

    def consumers() -> list[int]:
        return rabbitmq.consumers(settings, *QUEUES)

    return Service(
        name=ENGINE,
        argv=(program, "--config-file", str(config)),
        ready=lambda said: SAID_LAST in said and all(consumers() or [0]),
        vacant=lambda: consumers() == [0] * len(QUEUES),
        environment={"PYTHONPATH": str(ROOT)},
        files=(config, *plugins),
        patience=PATIENCE,
    )
