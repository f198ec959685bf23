# SPDX-License-Identifier: Apache-2.0
"""Network plugins of kubespray: a row for each, which is all that is known of it.

Sources: ``roles/network_plugin`` of the known releases of kubespray, and their
assertions about ``kube_network_plugin``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.model.versions import Minor

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
