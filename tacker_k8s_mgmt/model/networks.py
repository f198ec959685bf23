# SPDX-License-Identifier: Apache-2.0
"""Addresses and networks that others write, and kubespray's default networks.

No other module reads them: Python also takes numbers for addresses, and keeps any text
after the ``%`` of an IPv6 address, line feeds and templates included.
"""

import re
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any

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

    :raises ValueError: it is no text of a network with a prefix length.
    """
    if isinstance(value, str) and "/" in value and "%" not in value:
        try:
            return ip_network(value.strip(), strict=False)
        except ValueError:
            pass
    raise ValueError("must be a network such as 10.233.64.0/18")
