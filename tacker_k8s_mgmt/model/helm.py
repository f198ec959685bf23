# SPDX-License-Identifier: Apache-2.0
"""The login with which Tacker's v1 API runs Helm on the control planes."""

from dataclasses import dataclass

from pydantic import SecretStr

USER = "tacker-helm"
#: Its home, and the directory that Tacker puts charts into (``kubernetes_driver.py``).
CHARTS = "/var/tacker/helm"


@dataclass(frozen=True)
class HelmLogin:
    """The login, and the addresses at which Tacker uses it."""

    hosts: tuple[str, ...]
    password: SecretStr
