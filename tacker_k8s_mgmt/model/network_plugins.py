"""Encapsulations of network plugins, and kubespray's variables for them.

Source: ``roles/network_plugin`` of the known releases of kubespray.
"""

from collections.abc import Mapping
from typing import Any

#: The supported encapsulations by plugin; the first is kubespray's default.
ENCAPSULATIONS: Mapping[str, tuple[str, ...]] = {
    "calico": ("vxlan", "ipip", "none"),
    "cilium": ("vxlan", "geneve"),
    "flannel": ("vxlan", "none"),
    "kube-ovn": ("geneve",),
    "weave": ("vxlan",),
}
#: The variable for the MTU of the pods' interfaces, by plugin.
MTU_VARIABLES: Mapping[str, str] = {
    "calico": "calico_mtu",
    "cilium": "cilium_mtu",
    "kube-ovn": "kube_ovn_mtu",
    "weave": "weave_mtu",
}
#: The variables that select an encapsulation, by plugin and encapsulation.
ENCAPSULATION_SETTINGS: Mapping[tuple[str, str], Mapping[str, Any]] = {
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
#: All variables that select an encapsulation.
ENCAPSULATION_VARIABLES = tuple(
    dict.fromkeys(name for names in ENCAPSULATION_SETTINGS.values() for name in names)
)
