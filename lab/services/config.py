# SPDX-License-Identifier: Apache-2.0
"""The services' configuration files, rendered from the templates in lab/etc."""

import re
import string
from pathlib import Path

from lab import environments
from lab.services import mirror
from lab.settings import (
    ADDRESS,
    IDENTITY_URL,
    PASSWORD,
    PORTS,
    REGION,
    ROOT,
    SOCKETS,
    SYSTEM_PYTHON,
    Settings,
    url,
)

TEMPLATES = Path(__file__).parents[1] / "etc"
WSGI = ROOT / "lab" / "wsgi"
DIRECTORIES = ("etc", "data", "log", "run", "cloud")


def values(settings: Settings) -> dict[str, str]:
    """What the templates may name."""
    named = {f"{name}_port": str(port) for name, port in PORTS.items()}
    named |= {f"{name}_url": url(name) for name in PORTS}
    return {
        **named,
        "address": ADDRESS,
        "cloud": str(settings.cloud),
        "data": str(settings.data),
        "etc": str(settings.etc),
        "identity_url": IDENTITY_URL,
        "images": str(mirror.root(settings) / "images"),
        "images_address": mirror.REGISTRY_ADDRESS,
        "openstack": str(environments.path(settings, "openstack")),
        "password": PASSWORD,
        "plugins": str(ROOT / "lab" / "cloud" / "heat_plugins"),
        "python": SYSTEM_PYTHON,
        "region": REGION,
        "run": str(settings.run),
        "sockets": str(SOCKETS),
    }


def render(template: str, named: dict[str, str]) -> str:
    """A template with its ``$names`` filled in.

    :raises KeyError: it names what there is not.
    """
    return string.Template(template).substitute(named)


def write(settings: Settings) -> None:
    """Write every configuration file, and make the directories that they name."""
    for name in DIRECTORIES:
        (settings.state / name).mkdir(parents=True, exist_ok=True)
    named = values(settings)
    for template in TEMPLATES.rglob("*"):
        if template.is_file():
            target = settings.etc / template.relative_to(TEMPLATES)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(render(template.read_text(), named))
    stock = environments.path(settings, "tacker") / "etc/tacker/api-paste.ini"
    paste = settings.etc / "tacker-api-paste.ini"
    paste.write_text(with_closed_sessions(stock.read_text()))


def with_closed_sessions(paste: str) -> str:
    """Tacker's paste file with the filter of wsgi/close_session.py in every pipeline.

    :raises ValueError: it is not as Tacker 16 has it.
    """
    found = re.compile(r"^(keystone = .*\bkeystonecontext)\b", re.MULTILINE)
    changed, count = found.subn(r"\1 close_session", paste)
    if not count:
        raise ValueError("no pipeline with keystonecontext in Tacker's api-paste.ini")
    return (
        f"{changed}\n[filter:close_session]\n"
        "paste.filter_factory = close_session:CloseSession.factory\n"
    )
