# SPDX-License-Identifier: Apache-2.0
"""The cluster as a Kubernetes VIM in the VNF instance (v2 API).

Tacker's v2 API has no registry that a hook could write to; a VIM is an entry of
``vimConnectionInfo``. Tacker uses the first entry as the VIM of the VNF itself
(``vnf_instance_utils.py``, ``select_vim_info``), so the cluster's comes last. MariaDB
keeps the order of keys in a JSON column; MySQL sorts them by length in bytes, then by
the bytes. So its key is the longest. It is identified by its ``vimId``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt.hooks.v2 import identities
from tacker_k8s_mgmt.hooks.v2.request import cluster_vim_id
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.model.cluster import ClusterAccess, ClusterIdentity
from tacker_k8s_mgmt.status.facts import Vim

VIM_TYPE = "ETSINFV.KUBERNETES.V_1"


class Connections:
    """The VIMs of one VNF instance.

    :param instance: the VNF instance, as Tacker passes it; changed in place.
    :param state_path: where it is recorded which cluster it is; "" for nowhere.
    """

    def __init__(self, instance: dict[str, Any], state_path: str = "") -> None:
        self._instance = instance
        self._state_path = state_path
        self._vim_id = cluster_vim_id(instance["id"])

    def name_taken(self, name: str, tenant: str = "") -> bool:
        """False: in the v2 API, VIMs may have the same name."""
        return False

    def helm_password(self) -> None:
        """None: Tacker runs Helm on its conductor, with the VIM's token."""

    def move_helm(self, hosts: Sequence[str]) -> bool:
        """False: there is no login for Helm."""
        return False

    def register(self, spec: ports.VimSpec) -> str:
        """Name the cluster in the VNF instance.

        A tenant's VIM is not kept: the request of a CNF has all of its data.

        :returns: the VIM's id, always the same for one VNF instance; "" for a tenant's.
        """
        if spec.tenant:
            return ""
        self.remove()
        if self._state_path:
            known = ClusterIdentity(spec.auth_url, spec.ca_certificate, spec.uid)
            identities.write(self._state_path, self._instance["id"], known)
        infos = self._instance["vimConnectionInfo"] = self._infos
        infos[_longest(f"k8s_{spec.name}", infos)] = {
            "vimId": self._vim_id,
            "vimType": VIM_TYPE,
            "interfaceInfo": {
                "endpoint": spec.auth_url,
                "ssl_ca_cert": spec.ca_certificate,
            },
            "accessInfo": {"bearer_token": spec.token.get_secret_value()},
        }
        return self._vim_id

    def settle(self) -> None:
        """Make the key of the cluster's entry, if there is one, sort last.

        Earlier releases gave it a shorter key, and a request may have added a longer
        one since.
        """
        for name in self._ours():
            entry = self._infos.pop(name)
            self._infos[_longest(name, self._infos)] = entry

    def in_use(self, tenant: str | None = None) -> bool:
        """False: the v2 API does not know whether another VNF runs on the cluster."""
        return False

    def registered(self) -> tuple[Vim, ...]:
        """The cluster's entry, if there is one. Changes nothing.

        A user may have written it: whatever has no address is none.
        """
        found = ((name, self.entry(name)) for name in self._ours())
        return tuple(
            Vim(self._vim_id, name, str(entry["interfaceInfo"]["endpoint"]), True)
            for name, entry in found
            if entry
        )

    def entry(self, name: str = "") -> Mapping[str, Any]:
        """The cluster's entry, or the one of a name; empty if it has no address."""
        for key in (name,) if name else self._ours():
            interface = self._infos[key].get("interfaceInfo")
            if isinstance(interface, Mapping) and interface.get("endpoint"):
                entry: Mapping[str, Any] = self._infos[key]
                return entry
        return {}

    def of_tenants(self) -> None:
        """None: see :meth:`register`."""

    def has_login(self, tenant: str, access: ClusterAccess) -> bool:
        """False: see :meth:`register`."""
        return False

    def remove_tenant(self, tenant: str) -> None:
        """Nothing: see :meth:`register`."""

    def remove(self) -> bool:
        """Remove the cluster from the VNF instance.

        :returns: False when it was not there.
        """
        if self._state_path:
            identities.remove(self._state_path, self._instance["id"])
        ours = self._ours()
        for name in ours:
            del self._infos[name]
        return bool(ours)

    def _ours(self) -> list[str]:
        infos = self._infos
        return [
            name
            for name, info in infos.items()
            if isinstance(info, Mapping) and info.get("vimId") == self._vim_id
        ]

    @property
    def _infos(self) -> dict[str, Any]:
        return self._instance.get("vimConnectionInfo") or {}


def _longest(name: str, others: Iterable[str]) -> str:
    """Lengthen a key, if need be, until it is longer than every other."""
    longest = max((len(other.encode()) for other in others), default=0)
    return name.ljust(longest + 1, "_")
