# SPDX-License-Identifier: Apache-2.0
"""What the site reads of a VM, and what it gives to nodes."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tacker_k8s_mgmt.remote import node_registries, vms
from tacker_k8s_mgmt.remote.site import Site
from tests.helpers.samples import parsed


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ('[{},{"ifname":"eth0","mtu":1450,"addr_info":[]}]', 1450),
        ("[{}]", 0),
        ("", 0),
        ("sh: ip: not found", 0),
    ],
)
def test_the_mtu_of_a_nodes_interface(links, expected):
    assert vms.nic_mtu(links) == expected


REGISTRY = {"connection_type": 0, "server": "r.example.org:5000"}
NAMED = {**REGISTRY, "hosts_string": "192.0.2.9 r.example.org"}


@pytest.mark.parametrize(
    ("registries", "entries", "asked"),
    [([NAMED], ("192.0.2.9 r.example.org",), 2), ([REGISTRY], (), 1), ([], (), 1)],
)
def test_members_are_asked_without_a_private_registry_too(
    monkeypatch, registries, entries, asked
):
    """They may have a name that an earlier request wanted; new nodes have none."""
    placed = []
    monkeypatch.setattr(
        node_registries, "place", lambda session, *what: placed.append(what)
    )
    site = mock.MagicMock(
        _params=parsed({"private_registry_connection_info": registries}),
        registry_certificates=dict,
        workdir=SimpleNamespace(read=lambda name: None),
    )
    nodes: Any = [SimpleNamespace(server_id="member"), SimpleNamespace(server_id="new")]
    Site.trust_registries(site, nodes, {"member"})
    assert placed == [({}, entries)] * asked
    Site.trust_registries(site, [], {"member"})
    assert len(placed) == asked
