# SPDX-License-Identifier: Apache-2.0
"""The read-only site of a VNF instance, for ``cluster check``."""

import abc
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Count, Node
from tacker_k8s_mgmt.remote import vms
from tacker_k8s_mgmt.remote.site import PARALLEL_LOGINS, Site
from tacker_k8s_mgmt.remote.ssh.known_hosts import (
    HostKeys,
    ReadOnlyKeyFile,
    RecordedKeys,
)
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.status.facts import HealCommands


class NoSuchInstance(Exception):
    """This API of Tacker has no VNF instance of this id."""


@dataclass(frozen=True)
class OpenCluster:
    """A VNF instance that is a cluster.

    :param operation: its unfinished operation, as text; "" if there is none.
    :param metadata: of the VNF instance.
    :param heals: the commands that heal it.
    """

    vnf_id: str
    name: str
    operation: str
    params: ClusterRequest
    view: "ReadOnlySite"
    metadata: Mapping[str, Any]
    heals: HealCommands


class ReadOnlySite(Site):
    """A read-only site: no host key is learnt, and nothing is written.

    Among the bases of a subclass it precedes the site of the API. Two threads may share
    it if only one of them uses Tacker's database.
    """

    key_file = ReadOnlyKeyFile

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._reading = threading.Lock()
        self._failure: errors.RemoteError | None = None

    @abc.abstractmethod
    def counts(self) -> Sequence[Count]:
        """Return each group's number of VMs, in Heat and in Tacker's records."""

    def clocks_of(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Return how far the clocks of nodes are ahead, in seconds, by their names.

        A node that cannot be asked is left out.
        """
        if not nodes:
            return {}
        self._keys()

        def ahead(node: Node) -> float | None:
            try:
                with self._vms.open(node) as session:
                    return vms.read(session, node).ahead
            except errors.RemoteError:
                return None

        with ThreadPoolExecutor(PARALLEL_LOGINS) as pool:
            found = zip(nodes, pool.map(ahead, nodes), strict=True)
            return {node.name: far for node, far in found if far is not None}

    def _api_patience(self) -> float:
        # An API server that refuses connections is a result, so do not wait for it.
        return 0.0

    def _connect_server(self) -> Session:
        # A failed login is not repeated, because several checks need the server.
        if self._failure is not None:
            raise self._failure
        try:
            return super()._connect_server()
        except errors.RemoteError as error:
            self._failure = error
            raise

    def _keys(self) -> HostKeys:
        with self._reading:
            if not isinstance(self._node_keys, RecordedKeys):
                try:
                    known = super()._keys()
                except errors.DamagedFile:
                    raise
                except errors.RemoteError as error:
                    host = self._params.ansible.host
                    raise errors.RemoteError(
                        detail="The host keys of the VMs are recorded on the Ansible "
                        f"server {host}, which could not be asked."
                    ) from error
                self._node_keys = RecordedKeys(known.text(), known.label)
            return self._node_keys
