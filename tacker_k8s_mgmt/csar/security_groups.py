# SPDX-License-Identifier: Apache-2.0
"""What the security groups of a Base HOT admit to its ports.

Only what the templates say themselves is judged: groups that are there before, rules of
their own (``OS::Neutron::SecurityGroupRule``) and values without a default may admit
anything, and so they do here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.model.tree import dig, mapping, sequence
from tacker_k8s_mgmt.topology import base_hot

_RULE = "OS::Neutron::SecurityGroupRule"
_BY_GROUP = "remote_group_id"


class SecurityGroups:
    """The security groups of the ports.

    :param values: of the Base HOT's parameters.
    """

    def __init__(self, base: base_hot.BaseHot, values: Mapping[str, Any]) -> None:
        self._top, self._values = base.top.resources, values
        self._ports = {r.name: r for r in base.resources() if r.type == base_hot.PORT}
        self._is_open = any(one["type"] == _RULE for one in self._top.values())

    def names(self, port: str) -> tuple[str, ...]:
        """The groups of a port; empty if they are not known, or none are named."""
        if port not in self._ports:
            return ()
        groups = _flat(self._ports[port].properties.get("security_groups"))
        names = tuple(str(dig(group, "get_resource")) for group in groups)
        return names if all(name in self._top for name in names) else ()

    def admit(self, port: str, number: int, peer: str | networks.Address) -> bool:
        """Whether a port gets TCP packets of a peer.

        :param number: the TCP port.
        :param peer: another port, by its name, or an address that is no VM's.
        """
        names = self.names(port)
        if self._is_open or not names:
            return True
        return any(
            self._has_port(rule, number) and self._has_peer(name, rule, peer)
            for name in names
            for rule in self._rules(name)
        )

    def _rules(self, group: str) -> Iterator[Mapping[str, Any]]:
        """The rules of a group for what comes in."""
        for rule in sequence(dig(self._top, group, "properties", "rules")):
            given = base_hot.filled(dict(mapping(rule)), self._values)
            if given.get("direction", "ingress") == "ingress":
                yield given

    @staticmethod
    def _has_port(rule: Mapping[str, Any], number: int) -> bool:
        if str(rule.get("protocol") or "any").lower() not in ("any", "tcp", "6"):
            return isinstance(rule.get("protocol"), Mapping)
        low, high = rule.get("port_range_min"), rule.get("port_range_max")
        if low is None:
            return True
        try:
            return int(low) <= number <= int(low if high is None else high)
        except (TypeError, ValueError):
            return True

    def _has_peer(
        self, group: str, rule: Mapping[str, Any], peer: str | networks.Address
    ) -> bool:
        if rule.get("remote_mode") == _BY_GROUP:
            # Without an id, the group's own members.
            given = rule.get(_BY_GROUP) or {"get_resource": group}
            admitted = dig(given, "get_resource")
            if not isinstance(peer, str):
                return admitted not in self._top
            members = self.names(peer)
            return admitted not in self._top or not members or admitted in members
        prefix = rule.get("remote_ip_prefix")
        if isinstance(peer, str) or prefix is None:
            return True
        try:
            return peer in networks.network(prefix)
        except ValueError:
            return True


def _flat(value: Any) -> list[Any]:
    """A list, without lists in it; a parameter may stand for several groups."""
    if not isinstance(value, list):
        return [] if value is None else [value]
    return [one for inner in value for one in _flat(inner)]
