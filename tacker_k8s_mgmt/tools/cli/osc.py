# SPDX-License-Identifier: Apache-2.0
"""The commands as a plugin of ``openstack``: ``openstack vnf k8s cluster check``.

``openstack`` imports the modules of all its plugins at each start, so this one imports
a command only when it is used.
"""

import argparse
import importlib.metadata
import re
from typing import Any

from tacker_k8s_mgmt.tools.cli import commands


class Plugin:
    """Makes a command, in place of its class.

    :param name: the command's, with an underscore in place of its blank and hyphens.
    """

    def __init__(self, name: str) -> None:
        targets = {
            re.sub("[ -]", "_", command): target
            for command, target in commands.COMMANDS.items()
        }

        self._point = importlib.metadata.EntryPoint(name, targets[name], "")

    def __call__(self, app: Any, app_args: argparse.Namespace | None) -> Any:
        return self._point.load()(app, app_args)


def __getattr__(name: str) -> Plugin:
    if name.startswith("_"):
        raise AttributeError(name)
    return Plugin(name)
