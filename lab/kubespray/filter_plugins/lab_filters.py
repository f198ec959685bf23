# SPDX-License-Identifier: Apache-2.0
"""Filters; for addresses kubespray uses netaddr, which is not needed here."""

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def is_network(text: str) -> bool:
    """Whether the text is a network range like ``10.233.0.0/18``."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return "/" in text


def overlaps(one: str, other: str) -> bool:
    """Whether two network ranges share an address."""
    networks = ipaddress.ip_network(one), ipaddress.ip_network(other)
    same_version = networks[0].version == networks[1].version
    return same_version and networks[0].overlaps(networks[1])


def first_address(network: str) -> str:
    """The first usable address, which the service ``kubernetes`` gets."""
    return str(ipaddress.ip_network(network)[1])


def not_booleans(pairs: Iterable[tuple[str, Any]]) -> list[str]:
    """The names of those (name, value) pairs whose value is no boolean."""
    return [name for name, value in pairs if not isinstance(value, bool)]


def strange_addresses(hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The hosts whose ``ip`` is none of their addresses, and what it is.

    :param hosts: the variables of each.
    """
    return [
        f"{host['inventory_hostname']} ({host['ip']})"
        for host in hosts
        if "ip" in host
        and host["ip"]
        not in host["ansible_all_ipv4_addresses"] + host["ansible_all_ipv6_addresses"]
    ]


def kubelet_certificate(node: str) -> dict[str, str]:
    """The certificates of a node's kubelet for ``lab_certificates``."""
    return {
        "name": f"kubelet-{node}",
        "common_name": f"system:node:{node}",
        "organization": "system:nodes",
    }


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "lab_is_network": is_network,
            "lab_overlaps": overlaps,
            "lab_first_address": first_address,
            "lab_kubelet_certificate": kubelet_certificate,
            "lab_not_booleans": not_booleans,
            "lab_strange_addresses": strange_addresses,
        }
