# SPDX-License-Identifier: Apache-2.0
"""Variables for network plugins: encapsulation, MTU, network interface."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.option_types import NODES

_IPV6_HEADER_IS_LONGER = 20
_INTERFACE_VARIABLES = frozenset({"flannel_interface", "flannel_interface_regexp"})
# Numbers of octets of IPv4 addresses to compare: few, because new nodes have to match.
_PREFIX_OCTETS = (2, 3)


def pod_mtu(
    nic_mtus: Collection[int],
    plugin: str = network_plugins.DEFAULT,
    encapsulation: str | None = None,
    address_family: str = "ipv4",
) -> int:
    """The largest MTU of pods whose packets fit between any two nodes.

    :param nic_mtus: bytes, of each node's network interface in the cluster.
    :param encapsulation: None for the plugin's default.
    :raises ClusterError: no MTU is known, or too little is left for pods.
    """
    if not nic_mtus:
        raise ClusterError(
            detail="The MTU of the nodes' network interfaces is not known.",
            hint="Give cluster.network.mtu as a number.",
        )
    least = min(nic_mtus)
    left = least - _overhead(plugin, encapsulation, address_family)
    needed = 1280 if address_family == "ipv6" else 576
    if left < needed:
        raise ClusterError(
            detail=f"A node's network interface has an MTU of {least} bytes, which "
            f"leaves {left} for pods; {needed} are needed.",
            hint="Give the VMs' networks a larger MTU.",
        )
    return left


def _overhead(plugin: str, encapsulation: str | None, address_family: str) -> int:
    base = network_plugins.PLUGINS[plugin].encapsulation(encapsulation).overhead
    return base + (_IPV6_HEADER_IS_LONGER if address_family == "ipv6" and base else 0)


def variables(
    options: Cluster, address_family: str, nic_mtus: Collection[int]
) -> dict[str, Any]:
    """Variables for the encapsulation and the MTU of the network plugin.

    :param nic_mtus: see :func:`pod_mtu`; needed if the request has the MTU computed.
    """
    network, plugin = options.network, network_plugins.PLUGINS[options.network_plugin]
    built: dict[str, Any] = {}
    if network.encapsulation:
        built |= plugin.encapsulation(network.encapsulation).variables
    mtu = network.mtu
    if mtu == NODES:
        mtu = pod_mtu(nic_mtus, plugin.name, network.encapsulation, address_family)
    if isinstance(mtu, int):
        if plugin.subtracts_overhead:
            mtu += _overhead(plugin.name, network.encapsulation, address_family)
        built[plugin.mtu_variable] = mtu
    return built


def own_interface(
    variables: Mapping[str, Any], nodes: Sequence[Node]
) -> dict[str, str]:
    """The variable that makes flannel use the cluster's network on VMs with two.

    By default flannel uses the interface of the default route, on the external network,
    whose security groups block VXLAN. Other plugins use that of the node's address.

    :param variables: kubespray's; a user's choice of an interface takes precedence.
    :returns: empty if prefixes of the addresses do not distinguish the networks.
    """
    if (
        variables.get("kube_network_plugin") != "flannel"
        or _INTERFACE_VARIABLES & variables.keys()
    ):
        return {}
    if any(":" in node.address for node in nodes):
        return {}
    for octets in _PREFIX_OCTETS:
        inside = {tuple(node.address.split(".")[:octets]) for node in nodes}
        outside = {tuple(node.ssh_address.split(".")[:octets]) for node in nodes}
        if len(inside) == 1 and not inside & outside:
            # Without backslashes, as kubespray's template has it in a YAML string.
            prefix = "".join(f"{number}[.]" for number in inside.pop())
            return {"flannel_interface_regexp": f"^{prefix}"}
    return {}
