"""Network plugins: how they carry packets, and what that costs of the MTU.

Read off ``roles/network_plugin`` of the known releases of kubespray.
"""

import json
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.model.kubespray_releases import DEFAULT_NETWORK_PLUGIN
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.option_types import NODES

#: By plugin, the encapsulations that can be chosen; the first is kubespray's default.
ENCAPSULATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "calico": ("vxlan", "ipip", "none"),
        "cilium": ("vxlan", "geneve"),
        "flannel": ("vxlan", "none"),
        "kube-ovn": ("geneve",),
        "weave": ("vxlan",),
    }
)
#: By plugin, the variable with the MTU of the pods' interfaces.
MTU_VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "calico": "calico_mtu",
        "cilium": "cilium_mtu",
        "kube-ovn": "kube_ovn_mtu",
        "weave": "weave_mtu",
    }
)
_ENCAPSULATION_VARIABLES: Mapping[tuple[str, str], Mapping[str, Any]] = (
    MappingProxyType(
        {
            ("calico", "vxlan"): {
                "calico_network_backend": "vxlan",
                "calico_vxlan_mode": "Always",
                "calico_ipip_mode": "Never",
            },
            ("calico", "ipip"): {
                "calico_network_backend": "bird",
                "calico_vxlan_mode": "Never",
                "calico_ipip_mode": "Always",
            },
            ("calico", "none"): {
                "calico_network_backend": "bird",
                "calico_vxlan_mode": "Never",
                "calico_vxlan_mode_ipv6": "Never",
                "calico_ipip_mode": "Never",
            },
            ("cilium", "vxlan"): {"cilium_tunnel_mode": "vxlan"},
            ("cilium", "geneve"): {"cilium_tunnel_mode": "geneve"},
            ("flannel", "vxlan"): {"flannel_backend_type": "vxlan"},
            ("flannel", "none"): {"flannel_backend_type": "host-gw"},
            ("kube-ovn", "geneve"): {"kube_ovn_network_type": "geneve"},
        }
    )
)
#: Every variable that :func:`variables` may set for an encapsulation.
ENCAPSULATION_VARIABLES = tuple(
    dict.fromkeys(name for names in _ENCAPSULATION_VARIABLES.values() for name in names)
)
# Bytes that stand before the pod's own IP packet. VXLAN and Geneve: the outer IP
# header, 8 of UDP, 8 of their own, 14 of the pod's Ethernet frame.
_OVERHEAD = {"vxlan": 50, "geneve": 50, "ipip": 20, "none": 0}
# kube-ovn puts options into the header of Geneve, and leaves as much by itself.
_KUBE_OVN = 100
_IPV6_HEADER_IS_LONGER = 20


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
    used = encapsulation or ENCAPSULATIONS.get(plugin, ("none",))[0]
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
    """kubespray's variables for the network plugin.

    :param nic_mtus: see :func:`pod_mtu`; used where the request says so.
    """
    network, plugin = options.network, options.network_plugin
    built: dict[str, Any] = {}
    if network.plugin:
        built["kube_network_plugin"] = plugin
    if network.encapsulation:
        built |= _ENCAPSULATION_VARIABLES.get((plugin, network.encapsulation), {})
    mtu = network.mtu
    if mtu == NODES:
        mtu = pod_mtu(nic_mtus, plugin, network.encapsulation, address_family)
    if isinstance(mtu, int):
        # Cilium's is that of the interface below; it leaves room for itself.
        below = _overhead(plugin, network.encapsulation, address_family)
        built[MTU_VARIABLES[plugin]] = mtu + (below if plugin == "cilium" else 0)
    return built
