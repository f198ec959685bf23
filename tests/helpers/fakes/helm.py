# SPDX-License-Identifier: Apache-2.0
"""Helm on the control planes of the fake site."""

from pydantic import SecretStr

from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.model.vim import ClusterAccess
from tests.helpers.fakes.state import SiteState


class FakeHelmHost:
    """A VM that has the login, and charts, once it was prepared and they were restored.

    They are gone with the VM: ``site.helm_hosts`` knows them by server id.
    """

    def __init__(self, site: SiteState, node: Node) -> None:
        self._site = site
        self._server = node.server_id

    def prepare(self, password: SecretStr, access: ClusterAccess) -> bool:
        self._site.touch("helm.prepare")
        is_new = self._server not in self._site.helm_hosts
        self._site.helm_hosts.setdefault(self._server, "")
        return is_new

    def verify(self, password: SecretStr) -> None:
        self._site.touch("helm.verify")

    def charts(self) -> str:
        self._site.touch("helm.charts")
        return self._site.helm_hosts[self._server]

    def restore(self, charts: str) -> None:
        self._site.helm_hosts[self._server] = charts
