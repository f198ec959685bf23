"""The site of a VNF instance as somebody sees it who only looks."""

import abc
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.ssh import session
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, RecordedKeys
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.status.facts import Count


class NoSuchInstance(Exception):
    """This API of Tacker has no VNF instance of this id."""


@dataclass(frozen=True)
class Instance:
    """A VNF instance that is a cluster.

    :param operation: its operation that is not over, in words; "" if there is none.
    """

    vnf_id: str
    name: str
    operation: str
    params: InstallParams
    view: "SeenSite"


class SeenSite(Site):
    """A site to look at: no host key is learnt, and nothing is written anywhere.

    The class of an API's site comes after it among the bases. Two threads may share
    it, if one of them alone uses Tacker's database.
    """

    key_file = server.ReadOnlyKeyFile

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._reading = threading.Lock()
        self._silent: errors.RemoteError | None = None

    @abc.abstractmethod
    def counts(self) -> Sequence[Count]:
        """How many VMs each group has, in Heat and as Tacker takes it to be."""

    def _api_patience(self) -> float:
        # An API server that refuses is what is to be seen.
        return 0.0

    def _connect_server(self) -> session.Session:
        # It is waited for once, however many ask for it.
        if self._silent is not None:
            raise self._silent
        try:
            return super()._connect_server()
        except errors.RemoteError as error:
            self._silent = error
            raise

    def _keys(self) -> HostKeys:
        with self._reading:
            if self._node_keys is None:
                known = self._recorded()
                self._node_keys = RecordedKeys(known.text(), known.label)
            return self._node_keys

    def _recorded(self) -> HostKeys:
        try:
            return super()._keys()
        except errors.SpoiledFile:
            raise
        except errors.RemoteError as error:
            host = self._params.ansible.host
            raise errors.RemoteError(
                detail="The host keys of the VMs are recorded on the Ansible server "
                f"{host}, which could not be asked."
            ) from error
