# SPDX-License-Identifier: Apache-2.0
"""The cluster as a Kubernetes VIM in the VNF instance (v2 API), and whose it is.

Tacker's v2 API has no registry that a hook could write to; a VIM is an entry of
``vimConnectionInfo``. Tacker uses the first entry as the VIM of the VNF itself
(``vnf_instance_utils.py``, ``select_vim_info``), so the cluster's comes last. MariaDB
keeps the order of keys in a JSON column; MySQL sorts them by length in bytes, then by
the bytes. So its key is the longest. It is identified by its ``vimId``.

Users write ``vimConnectionInfo`` and metadata of their VNF instances as they like, so
nothing there proves whose cluster an API is. So this conductor records which cluster a
VNF instance is, in files below its state path that are the driver's alone.
"""

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tacker_k8s_mgmt.files import replacing
from tacker_k8s_mgmt.hooks.v2.call import cluster_vim_id
from tacker_k8s_mgmt.model.vim import ClusterAccess, ClusterIdentity, Vim, VimSpec

_DIRECTORY = "clusters"


def read(state_path: str, vnf_id: str) -> ClusterIdentity | None:
    """Return what is recorded of a cluster; None for nothing that can be read."""
    try:
        text = _path(state_path, vnf_id).read_text(encoding="utf-8")
        return TypeAdapter(ClusterIdentity).validate_json(text)
    except (OSError, ValueError):
        return None


def write(state_path: str, vnf_id: str, identity: ClusterIdentity) -> None:
    """Record a cluster.

    :raises OSError: it cannot be written.
    """
    path = _path(state_path, vnf_id)
    os.makedirs(path.parent, mode=0o700, exist_ok=True)
    with replacing(path, mode=0o600) as new:
        new.write_text(json.dumps(asdict(identity)), encoding="utf-8")


def remove(state_path: str, vnf_id: str) -> None:
    """Remove what is recorded of a cluster, if there is anything."""
    _path(state_path, vnf_id).unlink(missing_ok=True)


def _path(state_path: str, vnf_id: str) -> Path:
    return Path(state_path, _DIRECTORY, f"{uuid.UUID(vnf_id)}.json")


VIM_TYPE = "ETSINFV.KUBERNETES.V_1"


class VimEntry:
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

    def update_helm_hosts(self, hosts: Sequence[str]) -> bool:
        """False: there is no login for Helm."""
        return False

    def register(self, spec: VimSpec) -> str:
        """Name the cluster in the VNF instance.

        A tenant's VIM is not kept: the request of a CNF has all of its data.

        :returns: the VIM's id, always the same for one VNF instance; "" for a tenant's.
        """
        if spec.tenant:
            return ""
        self.remove()
        if self._state_path:
            known = ClusterIdentity(spec.auth_url, spec.ca_certificate, spec.uid)
            write(self._state_path, self._instance["id"], known)
        infos = self._instance["vimConnectionInfo"] = self._infos
        infos[_longest(f"k8s_{spec.name}", infos)] = {
            "vimId": self._vim_id,
            "vimType": VIM_TYPE,
            "interfaceInfo": {
                "endpoint": spec.auth_url,
                "ssl_ca_cert": spec.ca_certificate,
            },
            "accessInfo": {"bearer_token": spec.token.get_secret_value()},
            **({"extra": spec.extra} if spec.extra else {}),
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

    def users(self, tenant: str | None = None) -> tuple[str, ...]:
        """None: the v2 API does not know whether another VNF runs on the cluster."""
        return ()

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
            remove(self._state_path, self._instance["id"])
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
