# SPDX-License-Identifier: Apache-2.0
"""Network plugins of kubespray, and the networks and versions that they depend on.

A plugin is a row, which is all that is known of it. Sources: ``roles/network_plugin``
of the known releases of kubespray, and their assertions about ``kube_network_plugin``.

Addresses and networks that others write are read only here: Python also takes numbers
for addresses, and keeps any text after the ``%`` of an IPv6 address, line feeds and
templates included. Version numbers are read as far as they are compared here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any

#: A minor release, such as (2, 31).
Minor = tuple[int, int]


def numbers(version: str) -> tuple[int, ...]:
    """The leading number of each part: 2.18.0rc1 is (2, 18, 0), v1.31.9 (1, 31, 9)."""
    return tuple(int(part) for part in re.findall(r"(?:^v?|\.)(\d{1,9})", version))


def minor(version: str) -> Minor:
    """The first two numbers, 0 for each that is missing."""
    first, second, *_ = (*numbers(version), 0, 0)
    return first, second


def tag(release: Minor) -> str:
    """A minor release as in git tags: v2.31."""
    return f"v{release[0]}.{release[1]}"


#: The default of ``kube_network_plugin`` in all releases.
DEFAULT = "calico"
#: Pods' packets have the pods' addresses outside the node, too.
NO_ENCAPSULATION = "none"


@dataclass(frozen=True)
class Encapsulation:
    """How a plugin carries pods' packets between nodes.

    :param overhead: bytes before the pod's IP packet, over IPv4.
    :param variables: those that select it; none if the plugin has no other.
    :param has_ipv6: whether it carries IPv6.
    """

    name: str
    overhead: int
    variables: Mapping[str, Any] = field(default_factory=dict)
    has_ipv6: bool = True


_UNKNOWN = Encapsulation("", 0)


@dataclass(frozen=True)
class Plugin:
    """A network plugin.

    :param name: the value of ``kube_network_plugin``.
    :param encapsulations: the supported ones, kubespray's default first.
    :param mtu_variable: for the MTU of the pods' interfaces; "" if it cannot be set.
    :param subtracts_overhead: whether the plugin takes the overhead off that MTU.
    :param since: the first release that has the plugin; (0, 0): all known ones.
    :param until: the last release that has it; None: it is still there.
    :param policies: whether it enforces NetworkPolicies, as kubespray sets it up; None:
        that depends on what the operator brings along.
    :param policy_variable: for turning that off; "" if there is none.
    """

    name: str
    encapsulations: tuple[Encapsulation, ...] = ()
    mtu_variable: str = ""
    subtracts_overhead: bool = False
    since: Minor = (0, 0)
    until: Minor | None = None
    policies: bool | None = True
    policy_variable: str = ""

    def encapsulation(self, name: str | None = None) -> Encapsulation:
        """The encapsulation of this name, without one kubespray's default.

        :returns: one with the name "" and no overhead if the plugin has no such one.
        """
        found = (one for one in self.encapsulations if name in (None, one.name))
        return next(found, _UNKNOWN)


def _calico(
    backend: str, *, vxlan: str = "Never", ipip: str = "Never", **others: str
) -> Mapping[str, str]:
    return {
        "calico_network_backend": backend,
        "calico_vxlan_mode": vxlan,
        "calico_ipip_mode": ipip,
        **others,
    }


# VXLAN and Geneve: 20 bytes of the outer IP header, 8 of UDP, 8 of their own, 14 of the
# pod's Ethernet header.
_UDP_TUNNEL = 50

_ROWS = (
    Plugin(
        "calico",
        (
            Encapsulation("vxlan", _UDP_TUNNEL, _calico("vxlan", vxlan="Always")),
            Encapsulation("ipip", 20, _calico("bird", ipip="Always"), has_ipv6=False),
            Encapsulation(
                NO_ENCAPSULATION, 0, _calico("bird", calico_vxlan_mode_ipv6="Never")
            ),
        ),
        "calico_mtu",
        policy_variable="enable_network_policy",
    ),
    Plugin(
        "cilium",
        (
            Encapsulation("vxlan", _UDP_TUNNEL, {"cilium_tunnel_mode": "vxlan"}),
            Encapsulation("geneve", _UDP_TUNNEL, {"cilium_tunnel_mode": "geneve"}),
        ),
        "cilium_mtu",
        subtracts_overhead=True,
    ),
    Plugin(
        "flannel",
        (
            Encapsulation("vxlan", _UDP_TUNNEL, {"flannel_backend_type": "vxlan"}),
            Encapsulation(NO_ENCAPSULATION, 0, {"flannel_backend_type": "host-gw"}),
        ),
        policies=False,
    ),
    Plugin(
        "kube-ovn",
        # With options in the Geneve header; kube-ovn reserves as much by default.
        (Encapsulation("geneve", 100, {"kube_ovn_network_type": "geneve"}),),
        "kube_ovn_mtu",
        policy_variable="kube_ovn_enable_np",
    ),
    # Its --overlay-type is "subnet": it encapsulates only between subnets.
    Plugin(
        "kube-router",
        (Encapsulation(NO_ENCAPSULATION, 0),),
        policy_variable="kube_router_run_firewall",
    ),
    Plugin("weave", (Encapsulation("vxlan", _UDP_TUNNEL),), "weave_mtu", until=(2, 28)),
    Plugin("macvlan", policies=False),
    *(Plugin(name, policies=None) for name in ("cloud", "cni", "custom_cni")),
    Plugin("none", since=(2, 27), policies=None),
)
#: The plugins by name.
PLUGINS: Mapping[str, Plugin] = {plugin.name: plugin for plugin in _ROWS}
#: All variables that select an encapsulation.
ENCAPSULATION_VARIABLES = tuple(
    dict.fromkeys(
        name
        for plugin in _ROWS
        for one in plugin.encapsulations
        for name in one.variables
    )
)
#: The variable for the MTU of the pods' interfaces, by plugin.
MTU_VARIABLES: Mapping[str, str] = {
    plugin.name: plugin.mtu_variable for plugin in _ROWS if plugin.mtu_variable
}


def offered(release: Minor) -> frozenset[str]:
    """The names of the plugins that a release of kubespray has."""
    return frozenset(
        plugin.name
        for plugin in _ROWS
        if plugin.since <= release <= (plugin.until or release)
    )


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

#: By address family, in all releases of kubespray.
PODS = {"ipv4": "10.233.64.0/18", "ipv6": "fd85:ee78:d8a6:8607::1:0/112"}
SERVICES = {"ipv4": "10.233.0.0/18", "ipv6": "fd85:ee78:d8a6:8607::1000/116"}

# A network interface of Linux, as far as its name needs no quotes anywhere.
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")


def address(value: Any) -> Address:
    """Read an address that is written as a text.

    :raises ValueError: it is none, or has a zone (``%eth0``).
    """
    if isinstance(value, str) and "%" not in value:
        try:
            return ip_address(value.strip())
        except ValueError:
            pass
    raise ValueError("must be an IP address")


def zoned_address(value: Any) -> Address:
    """Read the address of a host, which may have a zone if it is link-local.

    :returns: the address without its zone.
    :raises ValueError: it is none, or the zone is not the name of an interface.
    """
    if not isinstance(value, str):
        raise ValueError("must be an IP address")
    text, separator, zone = value.partition("%")
    # Blanks around a whole text are its reader's, but these are inside of it.
    found = address(text if not separator or text.strip() == text else "")
    if separator and not (
        found.version == 6 and found.is_link_local and _INTERFACE.fullmatch(zone)
    ):
        raise ValueError("must be an IP address")
    return found


def _unmapped(found: Address) -> Address:
    """The IPv4 address of one that IPv6 writes as ``::ffff:192.0.2.1``."""
    return (isinstance(found, IPv6Address) and found.ipv4_mapped) or found


def is_placeholder(found: Address) -> bool:
    """Whether an address is that of no one host."""
    return _unmapped(found).is_unspecified or _unmapped(found).is_multicast


def shortest(text: str) -> str:
    """The one spelling of an address, however it is written.

    :raises ValueError: as of :func:`address`.
    """
    return str(_unmapped(address(text)))


def network(value: Any) -> Network:
    """Read a network, without its host bits.

    :raises ValueError: it is not a text of a network with a prefix length.
    """
    if isinstance(value, str) and "/" in value and "%" not in value:
        try:
            return ip_network(value.strip(), strict=False)
        except ValueError:
            pass
    raise ValueError("must be a network such as 10.233.64.0/18")
