# SPDX-License-Identifier: Apache-2.0
"""Addresses as documents have them, and kubespray's default networks."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

#: By address family, in all releases of kubespray.
PODS = {"ipv4": "10.233.64.0/18", "ipv6": "fd85:ee78:d8a6:8607::1:0/112"}
SERVICES = {"ipv4": "10.233.0.0/18", "ipv6": "fd85:ee78:d8a6:8607::1000/116"}


def address(value: Any) -> IPv4Address | IPv6Address:
    """An address that is written as a text.

    :raises ValueError: it is none. Python also takes a number for one, and True.
    """
    if not isinstance(value, str):
        raise ValueError("must be an IP address")
    try:
        return ip_address(value.strip())
    except ValueError:
        raise ValueError("must be an IP address") from None
