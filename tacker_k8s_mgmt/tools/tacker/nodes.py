# SPDX-License-Identifier: Apache-2.0
"""Which VNFC a node's name means, by Tacker's record and Nova's.

The driver names a node after its role and its address in the cluster, which it keeps
when it is rebuilt (:func:`tacker_k8s_mgmt.model.nodes.name_nodes`). Nova knows the
addresses of each server, Tacker the server of each VNFC.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.model.network_plugins import address
from tacker_k8s_mgmt.model.nodes import ROLES, Role, role_of
from tacker_k8s_mgmt.tools.cloud.facts import Server
from tacker_k8s_mgmt.tools.tacker.records import Instance, Vnfc

#: As `cluster show` calls it.
BALANCER = "load balancer"
_SHOWN = 4  # names of a VM with many addresses


@dataclass(frozen=True)
class Member:
    """A VM of a cluster.

    :param server: None if Nova does not show it to this user.
    """

    vnfc: Vnfc
    server: Server | None

    @property
    def names(self) -> frozenset[str]:
        """All that it may be called."""
        own = {self.vnfc.id, self.vnfc.server, *self.nodes}
        own |= {self.server.name} if self.server else set()
        return frozenset(own - {""})

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names that its node may have: one for each address of the server."""
        role = role_of(self.vnfc.vdu)
        if role is Role.LOAD_BALANCER:
            return (BALANCER,)
        roles = [role] if role else [r for r, spec in ROLES.items() if spec.groups]
        addresses = self.server.addresses if self.server else ()
        return tuple(f"{r.value}-{text}" for r in roles for text in _dashed(addresses))

    @property
    def title(self) -> str:
        """What it is called in texts."""
        named = " or ".join(self.nodes[:_SHOWN]) or "not in Nova"
        return f"{named} ({self.vnfc.vdu}, VNFC {self.vnfc.id})"


def _dashed(addresses: Sequence[str]) -> Iterator[str]:
    for text in addresses:
        try:
            yield re.sub("[.:]", "-", address(text).exploded)
        except ValueError:
            continue


def members(instance: Instance, servers: Sequence[Server]) -> tuple[Member, ...]:
    """The VMs of a cluster."""
    known = {server.id: server for server in servers}
    return tuple(Member(vnfc, known.get(vnfc.server)) for vnfc in instance.vnfcs)


def find(
    instance: Instance, names: Sequence[str], servers: Callable[[], Sequence[Server]]
) -> tuple[Member, ...]:
    """The VMs with these names, each once, in their order.

    :param names: of nodes, or of servers in Nova, or ids of servers or VNFCs.
    :param servers: asks Nova; not called where ids are enough.
    :raises TackerError: a name means no VM or several.
    """
    known = members(instance, ())
    by_id = {name for member in known for name in member.names}
    if not by_id.issuperset(names):
        known = members(instance, servers())
    found = [_the_one(name, known, instance) for name in names]
    return tuple(dict.fromkeys(found))


def _the_one(name: str, known: Sequence[Member], instance: Instance) -> Member:
    found = [member for member in known if name in member.names]
    if len(found) == 1:
        return found[0]
    which = "is several VMs" if found else "is no VM"
    listed = "; ".join(member.title for member in found or known) or "none"
    missing = not found and any(member.server is None for member in known)
    hint = (
        "Nova does not show all of Tacker's servers to this user: name the VM by its "
        "VNFC, as `tacker-k8s-mgmt cluster show` prints it."
        if missing
        else "Name it by its VNFC or its server."
        if found
        else "`tacker-k8s-mgmt cluster show` prints the names."
    )
    raise TackerError(
        detail=f"{name} {which} of {instance.title}; there are: {listed}.", hint=hint
    )
