# SPDX-License-Identifier: Apache-2.0
"""Addresses and networks that others write."""

import ast
from pathlib import Path

import pytest

from tacker_k8s_mgmt.model import network_plugins
from tests import tree
from tests.helpers import source

ZONES = (
    "x\n10.9.9.9 ssh-ed25519 AAAA",
    "x,10.9.9.9",
    "a b",
    "$(id)`id`;id|id&",
    "'\"",
    "\x1b[2J",
    "a\0b",
    "{{ lookup('pipe', 'id') }}",
    "eth0\n",
    "eth0%1",
    "fe80::2",
    "[x]:22",
    "*",
    "-oProxyCommand=id",
    "a" * 16,
    "",
    "é",
)


@pytest.mark.parametrize("zone", [*ZONES, "eth0"], ids=repr)
@pytest.mark.parametrize("start", ["fe80::1", "2001:db8::1", "::ffff:192.0.2.1", "::"])
def test_text_after_an_address_is_no_part_of_it(start, zone):
    with pytest.raises(ValueError, match="must be an IP address"):
        network_plugins.address(f"{start}%{zone}")
    for written in (f"{start}%{zone}/64", f"{start}/64%{zone}", f"{start}%{zone}/"):
        with pytest.raises(ValueError, match="must be a network"):
            network_plugins.network(written)
    if zone != "eth0" or start != "fe80::1":
        with pytest.raises(ValueError, match="must be an IP address"):
            network_plugins.zoned_address(f"{start}%{zone}")


@pytest.mark.parametrize("zone", ["eth0", "bond0.100", "br-ex", "2", "wlp3s0_1"])
def test_a_link_local_host_may_have_an_interface(zone):
    assert str(network_plugins.zoned_address(f"fe80::1%{zone}")) == "fe80::1"


@pytest.mark.parametrize(
    "blank",
    ["\n", "\r", " ", "\t", "\x0b", "\x1c", "\x85", "\u2028", "\u3000"],
    ids=repr,
)
def test_no_blank_is_inside_of_a_zoned_address(blank):
    for text in (
        f"fe80::1{blank}%eth0",
        f"{blank}fe80::1%eth0",
        f"fe80::1%eth0{blank}",
    ):
        with pytest.raises(ValueError, match="must be an IP address"):
            network_plugins.zoned_address(text)


def test_ipv4_within_ipv6_is_the_same_host():
    assert network_plugins.shortest("::ffff:192.0.2.1") == "192.0.2.1"
    assert network_plugins.shortest("2001:DB8:0::1") == "2001:db8::1"
    for text in ("::", "0.0.0.0", "::ffff:0.0.0.0", "::ffff:224.0.0.1", "ff02::1"):
        assert network_plugins.is_placeholder(network_plugins.address(text)), text
    assert not network_plugins.is_placeholder(
        network_plugins.address("::ffff:192.0.2.1")
    )


@pytest.mark.parametrize("value", [None, 1, True, 10.5, b"\x7f\0\0\1", ["::1"], ""])
def test_what_is_no_text_is_no_address(value):
    for read in (
        network_plugins.address,
        network_plugins.zoned_address,
        network_plugins.network,
    ):
        with pytest.raises(ValueError, match="must be a"):
            read(value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("10.1.2.3/8", "10.0.0.0/8"),
        (" 10.0.0.0/255.0.0.0\n", "10.0.0.0/8"),
        ("FD00:0::5/64", "fd00::/64"),
    ],
)
def test_a_network_has_one_spelling(written, meant):
    assert str(network_plugins.network(written)) == meant


def _readers(path: Path) -> set[str]:
    """What a module takes from the libraries that read addresses as they like."""
    found = set()
    for node in ast.walk(source.module(path)):
        if isinstance(node, ast.ImportFrom) and node.module in ("ipaddress", "netaddr"):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & {"ipaddress", "netaddr"}
    return found


def test_no_other_module_of_the_driver_reads_them():
    readers = {}
    for name in tree.files():
        if not name.startswith("tacker_k8s_mgmt/") or not name.endswith(".py"):
            continue
        if found := _readers(tree.ROOT / name):
            readers[name] = found
    own = readers.pop("tacker_k8s_mgmt/model/network_plugins.py")
    assert {"ip_address", "ip_network"} <= own
    # It checks MAC addresses as Tacker does.
    assert readers.pop("tacker_k8s_mgmt/tools/csar/body.py") == {"netaddr"}
    assert readers == {}
