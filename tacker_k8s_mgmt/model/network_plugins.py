"""Network plugins: which encapsulations they have, and the variables that set them up.

Read off ``roles/network_plugin`` of the known releases of kubespray.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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
#: By plugin and encapsulation, the variables that choose it.
ENCAPSULATION_SETTINGS: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType(
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
#: Every variable that is set for an encapsulation.
ENCAPSULATION_VARIABLES = tuple(
    dict.fromkeys(name for names in ENCAPSULATION_SETTINGS.values() for name in names)
)
