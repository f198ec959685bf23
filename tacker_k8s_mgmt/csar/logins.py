# SPDX-License-Identifier: Apache-2.0
"""Ways to log in to the VMs of a Base HOT, and the logins of a request.

A stock cloud image admits only what it gets at its first start: the key of a key pair,
what user data say, or Nova's password.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tacker_k8s_mgmt.model.tree import dig, sequence
from tacker_k8s_mgmt.request.accounts import Account
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import base_hot
from tacker_k8s_mgmt.topology.vm_selectors import vm_selectors

_KEY, _USER_DATA, _ADMIN_PASS = "key_name", "user_data", "admin_pass"
#: What has to be in user data to have sshd accept passwords.
_PASSWORDS = "ssh_pwauth"
_FLOATING_IP = "OS::Neutron::FloatingIP"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class _Servers:
    """The servers of a VDU.

    :param points: names of their ports and floating IPs.
    :param ways: the properties for a login that are not empty.
    """

    vdu: str
    points: frozenset[str]
    ways: Mapping[str, Any]

    def refuse(self, account: Account) -> str:
        """Why those of a stock image would refuse a login; "" if they may admit it."""
        if account.private_key:
            if self.ways.keys() & {_KEY, _USER_DATA}:
                return ""
            return f"{self.vdu} gets no public key, without {_KEY} and {_USER_DATA}"
        data = self.ways.get(_USER_DATA, "")
        admits = not isinstance(data, str) or _PASSWORDS in data
        if not account.password or _ADMIN_PASS in self.ways or (data and admits):
            return ""
        return f"{self.vdu} accepts no passwords without {_PASSWORDS} in {_USER_DATA}"


def of_package(base: base_hot.BaseHot) -> Iterator[str]:
    """The warning that VMs of a stock image would admit no login.

    A request may still give what the templates leave empty.
    """
    closed = sorted(servers.vdu for servers in _servers(base) if not servers.ways)
    if not closed:
        return
    remedy = f"give the servers a {_KEY}"
    if _KEY in base.top.parameters:
        remedy = f"build it with --key-name, or give additionalParams.{_KEY}"
    yield (
        f"{base.top.name}: {', '.join(closed)}: there is no {_KEY}, {_USER_DATA} or "
        f"{_ADMIN_PASS}, so VMs of a stock cloud image admit no login; {remedy}"
    )


def of_request(
    base: base_hot.BaseHot, additional: Mapping[str, Any], params: InstallParams
) -> Iterator[str]:
    """Warnings about logins that VMs of a stock image would refuse.

    :param additional: the request's ``additionalParams``.
    """
    every = {
        point: servers
        for servers in _servers(base, additional)
        for point in servers.points
    }
    for selector in vm_selectors(params):
        servers, account = every.get(selector.ssh_cp), params.account(selector.role)
        if servers and (why := servers.refuse(account)):
            yield (
                f"{selector.attribute}: a stock cloud image refuses this login: {why}"
            )


def _servers(
    base: base_hot.BaseHot, additional: Mapping[str, Any] = _NOTHING
) -> Iterator[_Servers]:
    defaults = {
        name: schema["default"]
        for name, schema in base.top.parameters.items()
        if "default" in schema
    }
    resources = list(base.resources(parameters={**defaults, **additional}))
    floating = {
        dig(resource.properties, "port_id", "get_resource"): resource.name
        for resource in resources
        if resource.type == _FLOATING_IP
    }
    for resource in resources:
        if resource.type == base_hot.SERVER:
            networks = sequence(resource.properties.get("networks"))
            ports = {str(dig(entry, "port", "get_resource")) for entry in networks}
            points = ports | {floating[port] for port in ports & floating.keys()}
            ways = {
                name: resource.properties[name]
                for name in (_KEY, _USER_DATA, _ADMIN_PASS)
                if resource.properties.get(name)
            }
            yield _Servers(resource.name, frozenset(points), ways)
