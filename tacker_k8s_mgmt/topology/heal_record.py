# SPDX-License-Identifier: Apache-2.0
"""The records of a heal, for its later hooks and for operations after a failure.

The files are in the cluster's directory, because the hooks may run in different
conductors. That of a heal of VNFCs has the names of the control plane that is rebuilt,
which is not in the inventory meanwhile; that of a heal of the whole VNF has the servers
that Heat is to replace.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.model.nodes import Node, Role

FILE_NAME = "healing.json"
WHOLE_FILE = "whole_heal.json"
_NAMES = ("name", "server_id", "ssh_address", "address", "etcd_member_name")


@dataclass(frozen=True)
class Healing:
    """A heal that is under way, or was given up.

    :param rebuilt: names of the nodes that Heat rebuilds.
    :param addresses: their addresses in the cluster, and those of nodes whose VMs had
        been replaced before; the new VMs keep them.
    :param not_ready: names of the nodes that were not Ready for another reason.
    :param plane: the control plane that is taken out, until it has joined again.
    :param first: it was the first control plane of the inventory, which another one has
        to become.
    :param balancer: id of the load balancer's server that is rebuilt, until the new one
        is complete; what it exposed is recorded.
    """

    rebuilt: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()
    plane: Node | None = None
    first: bool = False
    balancer: str = ""
    addresses: tuple[str, ...] = ()

    def ended(self) -> "Healing":
        """The record after the heal: only what is still out of the cluster."""
        return replace(self, rebuilt=(), not_ready=(), addresses=())

    def text(self) -> str:
        """The content of the file."""
        values: dict[str, Any] = {}
        if self.rebuilt or self.not_ready:
            values |= {"rebuilt": self.rebuilt, "not_ready": self.not_ready}
        if self.addresses:
            values["addresses"] = self.addresses
        if self.balancer:
            values["load_balancer"] = self.balancer
        if self.plane is not None:
            names = {name: getattr(self.plane, name) for name in _NAMES}
            values["control_plane"] = {**names, "first": self.first}
        return json.dumps(values, indent=2) + "\n"


def parse(text: str | None) -> Healing:
    """Parse a record file; an empty record without a file."""
    values = json_text.parse(text or "{}")
    healing = Healing(
        tuple(values.get("rebuilt", ())),
        tuple(values.get("not_ready", ())),
        balancer=values.get("load_balancer", ""),
        addresses=tuple(values.get("addresses", ())),
    )
    if not (plane := values.get("control_plane")):
        return json_text.checked(healing)
    node = Node(role=Role.CONTROL_PLANE, **{name: plane[name] for name in _NAMES})
    return json_text.checked(replace(healing, plane=node, first=plane["first"]))


@dataclass(frozen=True)
class WholeHeal:
    """A heal of the whole VNF that is under way, or was given up.

    :param former: ids of the servers that it replaces.
    :param cleared: whether the records of their cluster and its VIM are removed.
    :param addresses: of the nodes and the load balancer in the cluster, which the new
        VMs keep where Heat has kept their ports.
    """

    former: Collection[str] = ()
    cleared: bool = False
    addresses: Collection[str] = ()

    def text(self) -> str:
        """The content of the file."""
        values = {"former": sorted(self.former), "cleared": self.cleared}
        if self.addresses:
            values["addresses"] = sorted(self.addresses)
        return json.dumps(values, indent=2) + "\n"


def parse_whole(text: str) -> WholeHeal:
    """Parse a record file of a heal of the whole VNF."""
    values = json_text.parse(text)
    former, cleared = values["former"], values["cleared"]
    addresses = values.get("addresses", [])
    texts = (*former, *addresses)
    if not isinstance(cleared, bool) or not all(isinstance(s, str) for s in texts):
        raise TypeError("no record of a heal")
    return WholeHeal(frozenset(former), cleared, frozenset(addresses))
