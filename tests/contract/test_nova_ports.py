# SPDX-License-Identifier: Apache-2.0
"""What Nova makes of ports when their server is deleted, by its own function.

Nova cannot be imported here without what it needs, so its function is taken from its
source.
"""

import ast
import typing
from unittest import mock

import pytest

from lab import environments
from lab.settings import from_environment
from tests.helpers.fakes.heat_site import unbound
from tests.helpers.samples import port


@pytest.fixture(scope="module")
def unbind():
    place = environments.path(from_environment(), environments.SCHEMAS)
    (path,) = place.glob("lib/python*/site-packages/nova/network/neutron.py")
    (function,) = (
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == "_unbind_ports"
    )
    module = ast.Module(body=[function], type_ignores=[])
    names = {
        "ty": typing,
        "constants": mock.Mock(BINDING_HOST_ID="host", BINDING_PROFILE="profile"),
        "exception": mock.Mock(PortNotFound=KeyError),
        "neutron_client_exc": mock.Mock(PortNotFoundClient=KeyError),
        "get_binding_profile": lambda _: {},
        "LOG": mock.Mock(),
    }
    exec(compile(module, str(path), "exec"), names)  # noqa: S102  Nova's own text
    return names["_unbind_ports"]


def test_ports_that_nova_did_not_create_are_as_the_fake_has_them(unbind):
    client = mock.Mock()
    unbind(mock.MagicMock(), None, ["port"], mock.MagicMock(), client)
    ((port_id, body), _) = client.update_port.call_args
    assert port_id == "port"
    usual = port("stack", "w_nic", "server", "10.10.0.5")
    changed = unbound(usual).attributes
    assert {name: body["port"][name] for name in ("device_id", "device_owner")} == {
        name: changed[name] for name in ("device_id", "device_owner")
    }
    assert changed["fixed_ips"] == usual.attributes["fixed_ips"]
    assert "fixed_ips" not in body["port"]
