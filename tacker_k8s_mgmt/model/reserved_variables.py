# SPDX-License-Identifier: Apache-2.0
"""Variables of kubespray that a request may not set, because this driver does."""

from collections.abc import Mapping

#: Variables that this driver sets, with what a user can do instead. Extra variables
#: override the inventory on every host, so ``ip`` would give all nodes one address.
RESERVED: Mapping[str, str] = {
    "kube_pods_subnet": "use master_node.pod_cidr",
    "kube_service_addresses": "use master_node.cluster_cidr",
    "ipv4_stack": "use address_family",
    "http_proxy": "use proxy.http_proxy",
    "https_proxy": "use proxy.https_proxy",
    "no_proxy": "use proxy.no_proxy",
    "additional_no_proxy": "use proxy.no_proxy",
    "no_proxy_exclude_workers": "it is set when there is a proxy",
    "supplementary_addresses_in_ssl_keys": "it is made from the VMs' addresses",
    "loadbalancer_apiserver": "use external_lb_param",
    "kube_apiserver_port": "it is 6443; external_lb_param.api_port is free",
    "kube_override_hostname": "nodes have the names of the inventory",
    "kube_config_dir": "admin.conf is looked for in /etc/kubernetes",
    **dict.fromkeys(
        (
            *("ip", "access_ip", "ip6", "access_ip6"),
            *("etcd_member_name", "tacker_server_id"),
            *("tacker_aspect_id", "tacker_compute_host"),
        ),
        "it is set for each node in the inventory",
    ),
    **dict.fromkeys(
        (
            *("node", "reset_nodes", "allow_ungraceful_removal"),
            *("skip_confirmation", "delete_nodes_confirmation"),
            "reset_confirmation",
        ),
        "it belongs to the removal of a node",
    ),
    **dict.fromkeys(
        ("kube_control_plane", "kube_node", "etcd", "calico_rr", "k8s_cluster"),
        "it is a group of the inventory",
    ),
}

#: Further ones with address_family ipv6; with ipv4 they make a dual-stack cluster.
RESERVED_IPV6: Mapping[str, str] = {
    "ipv6_stack": "use address_family",
    "enable_dual_stack_networks": "use address_family",
    "kube_pods_subnet_ipv6": "use master_node.pod_cidr",
    "kube_service_addresses_ipv6": "use master_node.cluster_cidr",
}


def reserved(variable: str, address_family: str = "ipv4") -> str:
    """Why a user may not set a variable and what to do instead; "" if allowed."""
    if variable.startswith("ansible_"):
        return "it tells Ansible how to reach the nodes"
    if address_family == "ipv6" and variable in RESERVED_IPV6:
        return RESERVED_IPV6[variable]
    return RESERVED.get(variable, "")
