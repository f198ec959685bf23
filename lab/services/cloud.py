# SPDX-License-Identifier: Apache-2.0
"""The lab's cloud: hosts' file layers, the external network, the Ansible server."""

from lab import command
from lab.namespace import clean_environment
from lab.settings import ROOT, SYSTEM_PYTHON, Settings, places

LIMIT = 180


def prepare(settings: Settings) -> None:
    """Make what hosts need; what is there stays."""
    command.run(
        # The project's own sources are nothing that a host should see.
        [SYSTEM_PYTHON, "-m", "lab.cloud", "prepare", "--mask", str(ROOT)],
        limit=LIMIT,
        log=settings.log / "cloud.log",
        env={**clean_environment(), **places(settings)},
        cwd=ROOT,
    )
