# SPDX-License-Identifier: Apache-2.0
"""Barbican: keeps the secrets of Kubernetes VIMs, which Tacker stores nowhere else."""

from lab.services import gunicorn
from lab.services.process import Service
from lab.settings import Settings

NAME = "barbican"


def service(settings: Settings) -> Service:
    """The API, on a database file of its own that it makes at its first start."""
    # It looks for its configuration below the home directory and takes no arguments.
    home = settings.etc / "barbican"
    return gunicorn.service(
        settings,
        NAME,
        "barbican_api:application",
        port="barbican",
        arguments=["barbican-api"],
        # A second writer does not wait for SQLite: its request fails.
        environment={"HOME": str(home), "LAB_THREADS": "1"},
        files=[home / ".barbican" / "barbican.conf"],
    )
