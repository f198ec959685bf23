# SPDX-License-Identifier: Apache-2.0
"""Keystone: users, tokens and the catalogue of services."""

import base64
import os
from pathlib import Path

from lab import command, environments
from lab.namespace import clean_environment
from lab.services import gunicorn
from lab.services.process import Service
from lab.settings import IDENTITY_URL, PASSWORD, REGION, Settings

NAME = "keystone"
SCHEMA_LIMIT = 300
KEY_REPOSITORIES = ("fernet-keys", "credential-keys")


def directory(settings: Settings) -> Path:
    """Where the keys are."""
    return settings.data / "keystone"


def create_keys(settings: Settings) -> None:
    """The keys of tokens and credentials: a staged one and a primary one each.

    ``keystone-manage`` writes the same, but takes seconds to do so.
    """
    for name in KEY_REPOSITORIES:
        repository = directory(settings) / name
        repository.mkdir(parents=True, mode=0o700)
        for number in ("0", "1"):
            key = repository / number
            key.touch(mode=0o600)
            key.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))


def create_schema(settings: Settings) -> None:
    """The tables, and the first user with an endpoint for Keystone itself."""
    manage = environments.program(settings, "openstack", "keystone-manage")
    common = [manage, "--config-file", str(settings.etc / "keystone.conf")]
    log = settings.log / f"{NAME}.log"
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


def service(settings: Settings) -> Service:
    """The API."""
    return gunicorn.service(
        settings,
        NAME,
        "keystone.wsgi.api:application",
        port="keystone",
        arguments=["keystone"],
        environment={"OS_KEYSTONE_CONFIG_DIR": str(settings.etc)},
        files=[settings.etc / "keystone.conf"],
    )
