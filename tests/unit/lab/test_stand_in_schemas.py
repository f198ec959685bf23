# SPDX-License-Identifier: Apache-2.0
"""The stand-ins of Nova and Neutron answer with documents that the real ones have."""

import copy
import json
import subprocess
import sys

import jsonschema
import pytest

from lab import environments
from lab.services import compute, network, stand_in
from lab.settings import from_environment
from tests.tree import ROOT

KEY_PAIR = {"name": "lab", "public_key": "ssh-ed25519 AAAA lab"}
MADE = {
    "networks": {"net": {"id": "net", "name": "internal"}},
    "subnets": {
        "subnet": {
            "id": "subnet",
            "name": "internal",
            "network_id": "net",
            "cidr": "10.10.0.0/24",
            "gateway_ip": "10.10.0.1",
            "ip_version": 4,
        }
    },
    "ports": {},
    "servers": {},
    "keypairs": {"lab": KEY_PAIR},
}
#: Up to which openstacksdk asks for an answer, by the path: Nova's name of its schema.
NOVA = {
    "/v2.1/flavors": ("flavors", "detail_response_v261"),
    "/v2.1/flavors/detail": ("flavors", "detail_response_v261"),
    "/v2.1/flavors/2": ("flavors", "show_response_v261"),
    "/v2.1/os-keypairs": ("keypairs", "index_response_v22"),
    "/v2.1/limits": ("limits", "index_response_v257"),
}
#: The attributes that Neutron shows of networks and subnets, and their kinds.
NEUTRON = """
import json
from neutron_lib.api.definitions import (
    external_net, network, network_mtu, port_security, subnet)
found = {
    kind: {
        name: attribute.get("convert_to").__name__ if "convert_to" in attribute else ""
        for module in (network, subnet, external_net, network_mtu, port_security)
        for name, attribute in module.RESOURCE_ATTRIBUTE_MAP.get(kind, {}).items()
        if attribute["is_visible"]
    }
    for kind in ("networks", "subnets")
}
print(json.dumps(found))
"""
KINDS = {"convert_to_boolean": bool, "convert_to_int": int}


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """What Heat's plugins have made."""
    monkeypatch.setattr(stand_in, "records", lambda: MADE)


def printed(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def nova():
    place = environments.path(from_environment(), environments.SCHEMAS)
    (package,) = place.glob("lib/python*/site-packages/nova")
    program = ROOT / "tests" / "helpers" / "nova_schemas.py"
    return printed(sys.executable, str(program), str(package.parent))


@pytest.fixture(scope="module")
def neutron():
    python = environments.program(from_environment(), "openstack", "python")
    return printed(python, "-c", NEUTRON)


def faults(document, schema):
    formats = jsonschema.FormatChecker(["ipv4", "ipv6"])
    validator = jsonschema.Draft4Validator(schema, format_checker=formats)
    errors = validator.iter_errors(document)
    return [f"{list(error.path)}: {error.message}" for error in errors]


@pytest.mark.parametrize("path", NOVA)
def test_nova_would_answer_alike(nova, path):
    module, name = NOVA[path]
    status, document = compute.answer(path, {})
    # As it is sent: a list where Python has a tuple.
    document = json.loads(json.dumps(document))
    assert status == 200
    assert faults(document, nova[module][name]) == []
    assert faults({**document, "more": 1}, nova[module][name])


def test_nova_shows_of_servers_what_is_listed(nova, monkeypatch):
    """Nova shows more of each, which nobody reads in a lab."""
    port = {"id": "p", "address": "10.10.0.5", "network_id": "n", "mac": "fa:16:3e::1"}
    row = {"id": "s", "name": "vm", "status": "ACTIVE", "ports": ["p", "gone"]}
    made = {**MADE, "ports": {"p": port}, "servers": {"s": row}}
    monkeypatch.setattr(stand_in, "records", lambda: made)
    _, document = compute.answer("/v2.1/servers/detail", {})
    assert len(document["servers"]) == 1
    schema = copy.deepcopy(nova["servers"]["detail_response"])
    schema["properties"]["servers"]["items"].pop("required")
    assert faults(document, schema) == []
    document["servers"][0]["addresses"]["n"][0].pop("version")
    assert faults(document, schema)


@pytest.mark.parametrize("kind", ["networks", "subnets"])
def test_neutron_has_each_attribute(neutron, kind):
    _, document = network.answer(f"/v2.0/{kind}", {})
    rows = document[kind]
    assert len(rows) == 2
    for row in rows:
        assert row.keys() <= neutron[kind].keys()
        for name, value in row.items():
            assert isinstance(value, KINDS.get(neutron[kind][name], object)), name
