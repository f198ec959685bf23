# SPDX-License-Identifier: Apache-2.0
"""What the site reads of a VM, and what it gives to nodes."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Role, name_nodes
from tacker_k8s_mgmt.remote import node_registries, vms
from tacker_k8s_mgmt.remote.readonly_site import ReadOnlySite
from tacker_k8s_mgmt.remote.site import Site
from tests.helpers.fakes.nodes import machine
from tests.helpers.requests import changed_params, params
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


@pytest.mark.parametrize(("kind", "expected"), [(Site, 60.0), (ReadOnlySite, 0.0)])
def test_only_an_operation_waits_for_the_restart_of_an_api_server(kind, expected):
    site = mock.MagicMock(_options=SimpleNamespace(api_timeout=60))
    site._api_patience = lambda: kind._api_patience(site)
    *_, patience = kind.api_access(site, machine(Role.CONTROL_PLANE, 4))
    assert patience == expected


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


class TestNodesThatAreAsked:
    """As ``cluster check`` asks them, after a change of the workers' login."""

    NODES = name_nodes(
        [machine(Role.CONTROL_PLANE, 4), machine(Role.WORKER, 5)],
    )

    @pytest.fixture
    def site(self):
        written = inventory.render(self.NODES, params())
        changed = changed_params(worker_node={"password": "another-one"})

        def log_in(node, account):
            password = account.password.get_secret_value()
            return mock.MagicMock(__enter__=lambda _: f"{node.name} by {password}")

        site = mock.MagicMock(_params=changed)
        site.workdir = SimpleNamespace(read=lambda name: written)
        site._account = lambda *given: Site._account(site, *given)
        site._accounts = lambda: Site._accounts(site)
        site._vms.log_in = log_in
        return site

    def test_each_is_logged_in_to_as_the_inventory_has_it(self, site):
        found = ReadOnlySite.ask_each(site, self.NODES, lambda session, _: session)
        assert found == {n.name: f"{n.name} by n0de-secret" for n in self.NODES}

    def test_one_that_cannot_be_asked_is_left_out(self, site):
        plane, worker = self.NODES

        def ask(_, node):
            if node is worker:
                raise errors.RemoteError(detail="no")
            return 0.0

        assert ReadOnlySite.ask_each(site, self.NODES, ask) == {plane.name: 0.0}

    def test_without_nodes_nothing_is_read(self, site):
        assert ReadOnlySite.ask_each(site, (), lambda *_: 1) == {}
        site._keys.assert_not_called()
