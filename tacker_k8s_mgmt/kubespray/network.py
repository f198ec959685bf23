"""Network plugins: how they carry packets, and what that costs of the MTU."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.kubespray_releases import DEFAULT_NETWORK_PLUGIN
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.option_types import NODES

# Bytes that stand before the pod's own IP packet. VXLAN and Geneve: the outer IP
# header, 8 of UDP, 8 of their own, 14 of the pod's Ethernet frame.
_OVERHEAD = {"vxlan": 50, "geneve": 50, "ipip": 20, "none": 0}
# kube-ovn puts options into the header of Geneve, and leaves as much by itself.
_KUBE_OVN = 100
_IPV6_HEADER_IS_LONGER = 20
_CHOSEN = frozenset({"flannel_interface", "flannel_interface_regexp"})
# How many octets of IPv4 addresses are compared: few, for new nodes have to match, too.
_TELLING_OCTETS = (2, 3)


def pod_mtu(
    nic_mtus: Collection[int],
    plugin: str = DEFAULT_NETWORK_PLUGIN,
    encapsulation: str | None = None,
    address_family: str = "ipv4",
) -> int:
    """The largest MTU of pods with which no packet between any two nodes is too large.

    :param nic_mtus: bytes, of every node's network interface in the cluster.
    :param encapsulation: None for the plugin's default.
    :raises ClusterError: no MTU is known, or too little is left.
    """
    if not nic_mtus:
        raise ClusterError(
            detail="The MTU of the nodes' network interfaces is not known.",
            hint="Give cluster.network.mtu as a number.",
        )
    least, left = (
        min(nic_mtus),
        min(nic_mtus) - _overhead(plugin, encapsulation, address_family),
    )
    needed = 1280 if address_family == "ipv6" else 576
    if left < needed:
        raise ClusterError(
            detail=f"A node's network interface has an MTU of {least} bytes, which "
            f"leaves {left} for pods; {needed} are needed.",
            hint="Give the VMs' networks a larger MTU.",
        )
    return left


def _overhead(plugin: str, encapsulation: str | None, address_family: str) -> int:
    used = encapsulation or network_plugins.ENCAPSULATIONS.get(plugin, ("none",))[0]
    base = _KUBE_OVN if plugin == "kube-ovn" else _OVERHEAD[used]
    longer = _IPV6_HEADER_IS_LONGER if address_family == "ipv6" and base else 0
    return base + longer


def nic_mtu(links: str) -> int:
    """The MTU in what ``ip -j addr show to ADDRESS`` printed; 0: it is not there."""
    try:
        found = [link["mtu"] for link in json.loads(links) if "mtu" in link]
    except (ValueError, TypeError):
        return 0
    return int(found[0]) if found else 0


def variables(
    options: Cluster, address_family: str, nic_mtus: Collection[int]
) -> dict[str, Any]:
    """Variables for the encapsulation and the MTU of the network plugin.

    :param nic_mtus: see :func:`pod_mtu`; used where the request says so.
    """
    network, plugin = options.network, options.network_plugin
    built: dict[str, Any] = {}
    if network.encapsulation:
        chosen = (plugin, network.encapsulation)
        built |= network_plugins.ENCAPSULATION_SETTINGS.get(chosen, {})
    mtu = network.mtu
    if mtu == NODES:
        mtu = pod_mtu(nic_mtus, plugin, network.encapsulation, address_family)
    if isinstance(mtu, int):
        # Cilium's is that of the interface below; it leaves room for itself.
        below = _overhead(plugin, network.encapsulation, address_family)
        own = mtu + (below if plugin == "cilium" else 0)
        built[network_plugins.MTU_VARIABLES[plugin]] = own
    return built


def own_interface(
    variables: Mapping[str, Any], nodes: Iterable[Node]
) -> dict[str, str]:
    """What makes flannel use the cluster's network where a VM has two.

    By itself flannel takes the interface of the default route, which is that of the
    external network: its security groups let no VXLAN pass. The other plugins take the
    interface of the node's address.

    :param variables: kubespray's; the user's own choice of an interface counts.
    :returns: nothing where the beginning of the addresses does not tell the two apart.
    """
    if variables.get("kube_network_plugin") != "flannel" or _CHOSEN & variables.keys():
        return {}
    known = list(nodes)
    if any(":" in node.address for node in known):
        return {}
    for octets in _TELLING_OCTETS:
        inside = {_octets(node.address, octets) for node in known}
        outside = {_octets(node.ssh_address, octets) for node in known}
        if len(inside) == 1 and not inside & outside:
            # In a YAML string of kubespray's template, so without a backslash.
            beginning = "".join(f"{number}[.]" for number in inside.pop())
            return {"flannel_interface_regexp": f"^{beginning}"}
    return {}


def _octets(address: str, count: int) -> tuple[str, ...]:
    return tuple(address.split(".")[:count])
