# SPDX-License-Identifier: Apache-2.0
"""A control plane, with all that applications on its cluster need."""

from tacker_k8s_mgmt.remote.kubernetes import downloads
from tacker_k8s_mgmt.remote.kubernetes.application_records import ApplicationRecords
from tacker_k8s_mgmt.remote.kubernetes.charts import Charts
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.remote.kubernetes.workloads import Workloads
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.installation import Proxy


class ApplicationHost:
    """kubectl, Helm and curl on one control plane.

    :param session: with it; its user may use sudo.
    :param server: URL of the node's own API server.
    :param patience: seconds for the restart of an API server.
    :param proxy: of the nodes.
    """

    def __init__(
        self, session: Session, server: str, patience: float, proxy: Proxy | None
    ) -> None:
        client = KubeClient(session, server, patience)
        self.objects = Manifests(client)
        self.records = ApplicationRecords(client)
        self.workloads = Workloads(client)
        self.charts = Charts(session, server)
        self._session = session
        self._proxy = proxy

    def fetch(self, url: str, sha256: str) -> bytes:
        """Return the file at a URL; see :func:`~.downloads.fetch`."""
        options = {}
        if self._proxy and self._proxy.https_proxy:
            options["proxy"] = self._proxy.https_proxy.get_secret_value()
            options["noproxy"] = ",".join(self._proxy.no_proxy)
        return downloads.fetch(self._session, url, sha256, options)
