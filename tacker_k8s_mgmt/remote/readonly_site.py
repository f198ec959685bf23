# SPDX-License-Identifier: Apache-2.0
"""The read-only site of a VNF instance, for ``cluster check`` and ``cluster plan``."""

import abc
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Count, Node
from tacker_k8s_mgmt.remote import vms
from tacker_k8s_mgmt.remote.ansible.cluster_directory import ClusterDirectory
from tacker_k8s_mgmt.remote.site import PARALLEL_LOGINS, Site
from tacker_k8s_mgmt.remote.ssh.known_hosts import (
    HostKeys,
    ReadOnlyKeyFile,
    RecordedKeys,
)
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.status.facts import HealCommands

Answer = TypeVar("Answer")


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


class UnwrittenFiles:
    """A cluster's directory whose writes are kept in memory.

    It precedes :class:`ClusterDirectory` among the bases.

    :ivar written: the texts by the names of the files.
    """

    written: dict[str, str]

    def read(self, name: str) -> str | None:
        """Return what was written, or else the file's text."""
        if name in self.written:
            return self.written[name]
        return super().read(name)  # type: ignore[misc,no-any-return]

    def write(self, name: str, content: str) -> bool:
        """Keep it; return whether that changed anything."""
        try:
            changed = self.read(name) != content
        except errors.DamagedFile:
            changed = True
        self.written[name] = content
        return changed


class _Directory(UnwrittenFiles, ClusterDirectory):
    """The cluster's directory, read only."""

    def claim(self) -> None:
        """See :meth:`ClusterDirectory.claim`; it is only looked at.

        :raises OwnershipError: it belongs to another VNF instance.
        """
        self._refuse_foreign()


class ReadOnlySite(Site):
    """A read-only site: no host key is learnt, and nothing is written.

    What an operation writes into the cluster's directory is kept in memory; it gets no
    lock.

    Among the bases of a subclass it precedes the site of the API. Two threads may share
    it if only one of them uses Tacker's database.
    """

    key_file = ReadOnlyKeyFile

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._reading = threading.Lock()
        self._failure: errors.RemoteError | None = None
        self._written: dict[str, str] = {}

    @property
    def workdir(self) -> ClusterDirectory:
        """The cluster's directory on the Ansible server, read only."""
        directory = self._params.ansible.directory
        found = _Directory(self._server.get(), directory, self._vnf_id)
        found.written = self._written
        return found

    def lock(self, patience: float | None = None, within: float = 0.0) -> None:
        """Take no lock, so that no operation is kept waiting."""

    @abc.abstractmethod
    def counts(self) -> Sequence[Count]:
        """Return each group's number of VMs, in Heat and in Tacker's records."""

    def clocks_of(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Return how far the clocks of nodes are ahead, in seconds, by their names.

        A node that cannot be asked is left out.
        """
        return self.ask_each(nodes, lambda host, node: vms.read(host, node).ahead)

    def ask_each(
        self, nodes: Sequence[Node], ask: Callable[[Session, Node], Answer]
    ) -> Mapping[str, Answer]:
        """Return what *ask* returns of nodes, in parallel, by the nodes' names.

        :param ask: gets a session with the node as the inventory has its login; a node
            for which it raises ``RemoteError``, or which cannot be logged in to, is
            left out.
        :raises RemoteError: the host keys or the inventory cannot be read.
        """
        if not nodes:
            return {}
        self._keys()
        accounts = self._accounts()

        def answer(node: Node) -> tuple[Answer, ...]:
            try:
                with self._vms.log_in(node, accounts(node)) as session:
                    return (ask(session, node),)
            except errors.RemoteError:
                return ()

        with ThreadPoolExecutor(PARALLEL_LOGINS) as pool:
            found = zip(nodes, pool.map(answer, nodes), strict=True)
            return {node.name: one for node, answers in found for one in answers}

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
