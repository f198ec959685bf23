# SPDX-License-Identifier: Apache-2.0
"""Keystone, Heat and Barbican: what is run, and how one sees that it is ready."""

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import command, environments
from lab.namespace import clean_environment
from lab.services import backends, rest
from lab.services.config import WSGI
from lab.services.process import Service
from lab.services.rest import Session
from lab.settings import (
    ADDRESS,
    IDENTITY_URL,
    PASSWORD,
    PORTS,
    PROJECT,
    REGION,
    ROOT,
    USER,
    Settings,
    url,
)


def gunicorn(
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


KEYSTONE = "keystone"
SCHEMA_LIMIT = 300
KEY_REPOSITORIES = ("fernet-keys", "credential-keys")


def keystone_directory(settings: Settings) -> Path:
    """Where the keys are."""
    return settings.data / "keystone"


def create_keystone_keys(settings: Settings) -> None:
    """The keys of tokens and credentials: a staged one and a primary one each.

    ``keystone-manage`` writes the same, but takes seconds to do so.
    """
    for name in KEY_REPOSITORIES:
        repository = keystone_directory(settings) / name
        repository.mkdir(parents=True, mode=0o700)
        for number in ("0", "1"):
            key = repository / number
            key.touch(mode=0o600)
            key.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))


def create_keystone_schema(settings: Settings) -> None:
    """The tables, and the first user with an endpoint for Keystone itself."""
    manage = environments.program(settings, "openstack", "keystone-manage")
    common = [manage, "--config-file", str(settings.etc / "keystone.conf")]
    log = settings.log / f"{KEYSTONE}.log"
    env = {
        **clean_environment(),
        "OS_BOOTSTRAP_PASSWORD": PASSWORD,
        "OS_BOOTSTRAP_USERNAME": "admin",
        "OS_BOOTSTRAP_PROJECT_NAME": "admin",
        "OS_BOOTSTRAP_ROLE_NAME": "admin",
        "OS_BOOTSTRAP_SERVICE_NAME": "keystone",
        "OS_BOOTSTRAP_REGION_ID": REGION,
        "OS_BOOTSTRAP_PUBLIC_URL": IDENTITY_URL,
        "OS_BOOTSTRAP_INTERNAL_URL": IDENTITY_URL,
        "OS_BOOTSTRAP_ADMIN_URL": IDENTITY_URL,
    }
    for verb in ("db_sync", "bootstrap"):
        command.run([*common, verb], limit=SCHEMA_LIMIT, log=log, env=env)


def keystone(settings: Settings) -> Service:
    """The API."""
    return gunicorn(
        settings,
        KEYSTONE,
        "keystone.wsgi.api:application",
        port="keystone",
        arguments=["keystone"],
        environment={"OS_KEYSTONE_CONFIG_DIR": str(settings.etc)},
        files=[settings.etc / "keystone.conf"],
    )


BARBICAN = "barbican"


def barbican(settings: Settings) -> Service:
    """The API, on a database file of its own that it makes at its first start."""
    # It looks for its configuration below the home directory and takes no arguments.
    home = settings.etc / "barbican"
    return gunicorn(
        settings,
        BARBICAN,
        "barbican_api:application",
        port="barbican",
        arguments=["barbican-api"],
        # A second writer does not wait for SQLite: its request fails.
        environment={"HOME": str(home), "LAB_THREADS": "1"},
        files=[home / ".barbican" / "barbican.conf"],
    )


HEAT_API = "heat-api"
HEAT_ENGINE = "heat-engine"
HEAT_SAID_LAST = "Starting engine_worker"
HEAT_QUEUES = ("engine", "engine_worker")
# Resource plugins may be some requests behind when the engine is stopped.
HEAT_PATIENCE = 3.0


def create_heat_schema(settings: Settings) -> None:
    """The tables."""
    manage = environments.program(settings, "openstack", "heat-manage")
    command.run(
        [manage, "--config-file", str(settings.etc / "heat.conf"), "db_sync"],
        limit=SCHEMA_LIMIT,
        log=settings.log / f"{HEAT_ENGINE}.log",
        env=clean_environment(),
    )


def heat_api(settings: Settings) -> Service:
    """The API."""
    config = settings.etc / "heat.conf"
    return gunicorn(
        settings,
        HEAT_API,
        "heat.wsgi.api:application",
        port="heat",
        arguments=["heat-api", "--config-file", str(config)],
        files=[config],
    )


def heat_engine(settings: Settings) -> Service:
    """The engine, with the lab's resource plugins."""
    config = settings.etc / "heat.conf"
    program = environments.program(settings, "openstack", HEAT_ENGINE)
    plugins = (ROOT / "lab" / "cloud").rglob("*.py")

    def consumers() -> list[int]:
        return backends.consumers(settings, *HEAT_QUEUES)

    return Service(
        name=HEAT_ENGINE,
        argv=(program, "--config-file", str(config)),
        ready=lambda said: HEAT_SAID_LAST in said and all(consumers() or [0]),
        vacant=lambda: consumers() == [0] * len(HEAT_QUEUES),
        environment={"PYTHONPATH": str(ROOT)},
        files=(config, *plugins),
        patience=HEAT_PATIENCE,
    )


HEAT_DOMAIN = "heat"
HEAT_DOMAIN_ADMIN = "heat_domain_admin"
# Keystone itself has made the others.
ROLES = ("heat_stack_owner", "heat_stack_user", "creator")
# Name, project and roles beside admin.
USERS = (
    ("heat", "service", ("service",)),
    ("tacker", "service", ("service",)),
    ("barbican", "service", ("service",)),
    (USER, PROJECT, ("heat_stack_owner", "creator")),
)
SERVICES = (
    ("heat", "orchestration", f"{url('heat')}/v1/%(project_id)s"),
    ("barbican", "key-manager", url("barbican")),
    ("images", "image", url("images")),
    ("compute", "compute", f"{url('compute')}/v2.1"),
    ("network", "network", url("network")),
    ("tacker", "nfv-orchestration", url("tacker")),
)


def create_identities() -> None:
    """Fill a Keystone that was only bootstrapped."""
    keystone = _Keystone()
    roles = keystone.ids("roles") | {n: keystone.new("role", name=n) for n in ROLES}
    projects = {
        name: keystone.new("project", name=name, domain_id="default")
        for name in ("service", PROJECT)
    }
    for name, project, extra in USERS:
        user = keystone.new_user(name, "default", projects[project])
        for role in ("admin", *extra):
            keystone.grant("projects", projects[project], user, roles[role])
    domain = keystone.new("domain", name=HEAT_DOMAIN)
    owner = keystone.new_user(HEAT_DOMAIN_ADMIN, domain)
    keystone.grant("domains", domain, owner, roles["admin"])
    for name, kind, address in SERVICES:
        service = keystone.new("service", name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            keystone.new(
                "endpoint",
                service_id=service,
                region_id=REGION,
                interface=interface,
                url=address,
            )


class _Keystone:
    def __init__(self) -> None:
        self._session = Session("admin", "admin")

    def ids(self, kind: str) -> dict[str, str]:
        """What there is of a kind, by name."""
        rows = self._session.get(f"{IDENTITY_URL}/{kind}")[kind]
        return {row["name"]: row["id"] for row in rows}

    def new(self, kind: str, **attributes: Any) -> str:
        """Create something; its id."""
        made = self._session.post(f"{IDENTITY_URL}/{kind}s", {kind: attributes})
        return str(made[kind]["id"])

    def new_user(self, name: str, domain: str, project: str | None = None) -> str:
        return self.new(
            "user",
            name=name,
            password=PASSWORD,
            domain_id=domain,
            default_project_id=project,
        )

    def grant(self, kind: str, scope: str, user: str, role: str) -> None:
        self._session.put(f"{IDENTITY_URL}/{kind}/{scope}/users/{user}/roles/{role}")
