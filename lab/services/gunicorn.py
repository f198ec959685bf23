# SPDX-License-Identifier: Apache-2.0
"""Web applications behind gunicorn, as wsgi/gunicorn_conf.py configures it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab import environments
from lab.services import rest
from lab.services.config import WSGI
from lab.services.process import Service
from lab.settings import ADDRESS, PORTS, Settings, url


def service(
    settings: Settings,
    name: str,
    application: str,
    *,
    port: str,
    arguments: Sequence[str],
    files: Sequence[Path],
    environment: Mapping[str, str] | None = None,
) -> Service:
    """A web application of the OpenStack environment.

    :param port: whose port it has.
    :param arguments: the command line that the application believes to have.
    """
    config = WSGI / "gunicorn_conf.py"
    gunicorn = environments.program(settings, "openstack", "gunicorn")
    bind = f"{ADDRESS}:{PORTS[port]}"
    return Service(
        name=name,
        argv=(gunicorn, "-c", str(config), "-b", bind, application),
        ready=lambda _: rest.answers(url(port)),
        environment={
            "PYTHONPATH": str(WSGI),
            "LAB_ARGUMENTS": "\n".join(arguments),
            **(environment or {}),
        },
        files=(config, *files),
        # It would wait for connections that clients keep open.
        patience=2.0,
    )
