# SPDX-License-Identifier: Apache-2.0
"""Tacker: server and conductor, with this project's driver in their environment."""

from collections.abc import Callable, Sequence
from pathlib import Path

from lab import command, environments
from lab.namespace import clean_environment
from lab.services import backends, rest
from lab.services.config import WSGI
from lab.services.process import Service
from lab.services.rest import Session
from lab.settings import (
    IDENTITY_URL,
    PASSWORD,
    PATH,
    PROJECT,
    USER,
    VIM,
    Settings,
    url,
)

SERVER = "tacker-server"
CONDUCTOR = "tacker-conductor"
SECOND = "tacker-conductor-2"
SCHEMA_LIMIT = 300
SAID_LAST = "Selected multiprocessing start method"
QUEUES = ("TACKER_CONDUCTOR", "TACKER_CONDUCTOR_V2")
# The conductor does not end by itself for a long time.
PATIENCE = 2.0
DIRECTORIES = ("packages", "files", "state", "second", "keys", "cache")


def create_schema(settings: Settings) -> None:
    """The tables."""
    manage = environments.program(settings, "tacker", "tacker-db-manage")
    config = settings.etc / "tacker.conf"
    command.run(
        [manage, "--config-file", str(config), "upgrade", "head"],
        limit=SCHEMA_LIMIT,
        log=settings.log / f"{SERVER}.log",
        env=clean_environment(),
    )


def server(settings: Settings) -> Service:
    """The API."""
    return _service(settings, SERVER, lambda _: rest.answers(url("tacker")))


def conductor(settings: Settings) -> Service:
    """The process that does the work of operations."""
    return _conductor(settings, CONDUCTOR, "lab")


def second_conductor(settings: Settings) -> Service:
    """One more, as if on another host: it shares no lock with the first."""
    return _conductor(settings, SECOND, "second", (settings.etc / "second.conf",))


def _conductor(
    settings: Settings, name: str, host: str, more: Sequence[Path] = ()
) -> Service:
    """A conductor.

    :param host: what its configuration calls its host.
    """
    # Those of the topics alone have consumers also while another conductor runs.
    queues = [f"{queue}.{host}" for queue in QUEUES]

    def consumers() -> list[int]:
        return backends.consumers(settings, *queues)

    return _service(
        settings,
        name,
        lambda said: SAID_LAST in said and all(consumers() or [0]),
        # RabbitMQ may notice late that one was killed. Until then the next one
        # looks ready before it has dealt with what that one left.
        vacant=lambda: consumers() == [0] * len(queues),
        program=CONDUCTOR,
        more=more,
    )


def register_vim() -> None:
    """Make the lab's Heat the default VIM, unless it is known."""
    session = Session(USER, PROJECT)
    vims = f"{url('tacker')}/v1.0/vims"
    if any(vim["name"] == VIM for vim in session.get(f"{vims}.json")["vims"]):
        return
    vim = {
        "name": VIM,
        "description": "The lab's OpenStack",
        "type": "openstack",
        "auth_url": IDENTITY_URL,
        "is_default": True,
        "vim_project": {"name": PROJECT, "project_domain_name": "Default"},
        "auth_cred": {
            "username": USER,
            "password": PASSWORD,
            "user_domain_name": "Default",
            "cert_verify": "False",
        },
    }
    session.post(f"{vims}.json", {"vim": vim})


def _service(
    settings: Settings,
    name: str,
    ready: Callable[[str], bool],
    *,
    vacant: Callable[[], bool] = lambda: True,
    program: str | None = None,
    more: Sequence[Path] = (),
) -> Service:
    """A process of Tacker's.

    :param program: default: the service's name.
    :param more: configuration that continues top of tacker.conf.
    """
    for directory in DIRECTORIES:
        (settings.data / "tacker" / directory).mkdir(parents=True, exist_ok=True)
    configs = (settings.etc / "tacker.conf", *more)
    options = [word for path in configs for word in ("--config-file", str(path))]
    paste = settings.etc / "tacker-api-paste.ini"
    # A driver's checksum is taken when the conductor starts.
    installed = environments.project_stamp(settings, environments.TACKER)
    return Service(
        name=name,
        argv=(environments.program(settings, "tacker", program or name), *options),
        ready=ready,
        vacant=vacant,
        environment={
            "PYTHONPATH": str(WSGI),
            # The v2 API runs helm on the conductor.
            "PATH": f"{settings.programs}:{PATH}",
            # Scripts of the v2 API do not get the conductor's configuration files.
            "TACKER_K8S_MGMT_CONFIG": ":".join(map(str, configs)),
        },
        files=(*configs, paste, installed),
        patience=PATIENCE,
    )
