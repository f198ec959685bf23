# SPDX-License-Identifier: Apache-2.0
"""Request bodies are taken and refused as by the installed Tacker's APIs."""

import copy
import functools
import inspect
import json
import random

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.api.validation import parameter_types, validators
from tacker.api.vnflcm.v1.controller import VnfLcmController
from tacker.common import exceptions
from tacker.sol_refactored.api.validator import SolSchemaValidator
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.controller.vnflcm_v2 import VnfLcmControllerV2

from tacker_k8s_mgmt.tools.csar import body as ours
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.tacker_api import APIS
from tests.contract import request_schemas as tackers
from tests.helpers.hostile import places

EVERY = [(api, name) for api, every in tackers.SCHEMAS.items() for name in every]
METHODS = {
    "v1": {name: name for name in tackers.SCHEMAS["v1"]} | {ours.MODIFY: "update"},
    "v2": {name: name for name in tackers.SCHEMAS["v2"]} | {ours.MODIFY: "update"},
}
CONTROLLERS = {"v1": VnfLcmController, "v2": VnfLcmControllerV2}


def test_the_schemas_are_those_of_the_installed_tacker():
    """Else ``python -m tests.contract.request_schemas`` writes them."""
    assert tackers.DATA.read_text() == tackers.text()


def applied(method):
    """The schemas that the decorators of a controller's method apply."""
    while method is not None:
        cells = inspect.getclosurevars(method).nonlocals
        if "request_body_schema" in cells:
            yield cells["request_body_schema"]
        method = cells.get("func") or getattr(method, "__wrapped__", None)


@pytest.mark.parametrize(("api", "operation"), EVERY)
def test_they_are_those_that_the_controller_applies(api, operation):
    method = getattr(CONTROLLERS[api], METHODS[api][operation])
    schema = tackers.SCHEMAS[api][operation]
    names_only = (api, operation) == ("v1", ours.MODIFY)
    assert list(applied(method)) == ([] if names_only else [schema])


@pytest.mark.parametrize("number", range(0, 0x11000, 0x1000))
def test_printable_characters_are_those_of_the_pattern(number):
    schema = {"pattern": parameter_types.valid_description_regex}
    theirs = validators._SchemaValidator(schema).validator
    own = ours.validator({"format": ours.PRINTABLE})
    for character in map(chr, range(number, number + 0x1000)):
        for text in (character, f"a{character}b"):
            assert own.is_valid(text) is theirs.is_valid(text), ascii(text)


# --- bodies that differ from good ones in one place

MAC = "fa:16:3e:00:00:01"
UUID = "fd374e20-60bb-4e56-bdb9-052e28185439"
ADDRESSES = [
    {"type": "IPV4", "fixedAddresses": ["192.0.2.1"], "subnetId": "s"},
    {"type": "IPV6", "fixedAddresses": ["2001:db8::1"]},
    {"type": "IPV4", "numDynamicAddresses": 1},
    {"type": "IPV6", "numDynamicAddresses": "2"},
]
ADDRESSES_V2 = [
    {"type": kind, "addressRange": {"minAddress": one, "maxAddress": other}}
    for kind, one, other in (
        ("IPV4", "192.0.2.1", "192.0.2.9"),
        ("IPV6", "2001:db8::1", "2001:db8::9"),
    )
]


def links(api):
    addresses = ADDRESSES + (ADDRESSES_V2 if api == "v2" else [])
    ethernet = {"macAddress": MAC, "ipAddresses": addresses, "segmentationId": "1"}
    protocol = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}
    config = {"linkPortId": "p", "cpInstanceId": "i", "cpProtocolData": [protocol]}
    cp = {"cpdId": "c", "cpConfig": {"c": config} if api == "v2" else [config]}
    handle = {"resourceId": "r", "vimConnectionId": "v", "vimLevelResourceType": "t"}
    port = {"id": "p", "resourceHandle": handle}
    return [{"id": "n", "resourceId": "n", "extCps": [cp], "extLinkPorts": [port]}]


def whole(api, operation):
    """A body with every attribute that the operation's schema knows."""
    pairs = {"text": "a", "number": 1.5, "list": [], "object": {}, "flag": True}
    vim = {"id": "v", "vimId": "v", "vimType": "T", "accessInfo": pairs, "extra": pairs}
    port = {"vnfLinkPortId": "p", "resourceHandle": {"resourceId": "r"}}
    managed = {"id": "m", "vnfVirtualLinkDescId": "d", "resourceId": "r"}
    known = {
        "additionalParams": pairs,
        "aspectId": "a",
        "cause": "c",
        "extensions": pairs,
        "extManagedVirtualLinks": [{**managed, "vnfLinkPort": [port]}],
        "extVirtualLinks": links(api),
        "flavourId": "f",
        "gracefulTerminationTimeout": 1,
        "healScript": "h",
        "instantiationLevelId": "l",
        "localizationLanguage": "en",
        "metadata": pairs,
        "numberOfSteps": 1,
        "terminationType": "GRACEFUL",
        "type": "SCALE_OUT",
        "vimConnectionInfo": {"v": vim} if api == "v2" else [vim],
        "vnfConfigurableProperties": pairs,
        "vnfInstanceDescription": "d",
        "vnfInstanceName": "n",
        "vnfPkgId": UUID,
        "vnfcInfoModifications": [{"id": "i", "vnfcConfigurableProperties": pairs}],
        "vnfcInstanceId": [UUID],
        "vnfdId": UUID,
    }
    return {k: known[k] for k in tackers.SCHEMAS[api][operation]["properties"]}


ODD = [
    *(None, True, 0, -1, 1.0, 1.5, 10**30, "", "x" * 255, "x" * 256, "x" * 1025),
    *([], {}, [None], [{}], {"": 1}, {"a$": "b"}, {"a\n": "b"}, {"k" * 1025: "b"}),
    *("IPV4", "IPV6", "SCALE_IN", "FORCEFUL", "a\n", "a\nb", "\x00", "\U0001f600", "٣"),
    *("0", "7", "192.0.2.1", "192.0.2.300", "0192.0.2.1", "2001:db8::1", "fe80::1%2"),
    *(MAC, MAC.upper(), MAC.replace(":", "-"), MAC.replace(":", ""), "fa:16:3e", "1:2"),
    *(UUID, UUID.upper(), UUID.replace("-", ""), f"urn:uuid:{UUID}", f"{{{UUID}}}"),
    *(f"{UUID}\n", f" {UUID}", UUID[:-1], f"{UUID[:-1]}g", "-".join(UUID)),
]

FORMATTED = [MAC, UUID, "192.0.2.1", "192.0.2.9", "2001:db8::1", "2001:db8::9", "2"]


def put(body, place, value):
    changed = {"": copy.deepcopy(body)}
    holder, steps = changed, ("", *place)
    for step in steps[:-1]:
        holder = holder[step]
    if value is ...:
        del holder[steps[-1]]
    else:
        holder[steps[-1]] = value
    return changed[""]


def at(body, place):
    return functools.reduce(lambda holder, step: holder[step], place, body)


def mutants(body):
    """The body with one place gone, odd or twice, and with pairs of these."""
    yield body
    draw = random.Random(26)  # noqa: S311
    where = [place for place in places(body) if place]
    for place in where:
        yield put(body, place, ...)
        has_format = at(body, place) in FORMATTED
        chosen = ODD if has_format else draw.sample(ODD, 10)
        yield from (put(body, place, odd) for odd in chosen)
    for _ in range(100):
        one = put(body, draw.choice(where), draw.choice([..., *ODD]))
        yield put(one, draw.choice([p for p in places(one) if p]), draw.choice(ODD))


@functools.cache
def tackers_validator(api, operation):
    kind = SolSchemaValidator if api == "v2" else validators._SchemaValidator
    return kind(tackers.SCHEMAS[api][operation])


def tacker_takes(api, operation, body):
    try:
        tackers_validator(api, operation).validate(body)
    except (exceptions.ValidationError, sol_ex.SolValidationError):
        return False
    return True


@pytest.mark.parametrize(("api", "operation"), EVERY)
def test_bodies_are_taken_as_by_tacker(api, operation):
    schema = ours.validator(ours.tackers()[api][operation])
    verdicts = set()
    for number, body in enumerate(mutants(whole(api, operation))):
        takes = tacker_takes(api, operation, body)
        verdicts.add(takes)
        assert schema.is_valid(body) is takes, body
        if not takes and number % 5 == 0:  # Each of them would take a minute.
            assert [*ours.problems(api, operation, body)], body
    names_only = (api, operation) == ("v1", ours.MODIFY)
    assert verdicts == ({True} if names_only else {True, False})


@pytest.mark.parametrize(("api", "operation"), EVERY)
def test_a_whole_body_is_of_its_operation(api, operation):
    assert tacker_takes(api, operation, whole(api, operation))
    assert ours.operation_of(whole(api, operation)) == operation


@pytest.mark.parametrize("api", APIS)
def test_samples_are_taken(api):
    for path in (parts.samples(APIS[api]) / "requests").iterdir():
        body = json.loads(path.read_text())
        operation = ours.operation_of(body)
        assert tacker_takes(api, operation, body)
        assert [*ours.problems(api, operation, body)] == []


@pytest.mark.parametrize(
    "text",
    ["a\n", "a\nb", "\u2028", "\ufffe", "\uffff", "\U0001f600", "\u00e9", "\x7f"],
)
def test_texts_of_a_description_are_those_of_tacker(text):
    """Their pattern is not kept as it is."""
    body = {"vnfdId": UUID, "vnfInstanceDescription": text}
    own = ours.validator(ours.tackers()["v1"][ours.CREATE])
    assert own.is_valid(body) is tacker_takes("v1", ours.CREATE, body)
