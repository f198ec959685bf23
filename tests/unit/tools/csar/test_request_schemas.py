# SPDX-License-Identifier: Apache-2.0
"""What Tacker's schemas refuse of a request body is named with its place and reason."""

import pytest

from tacker_k8s_mgmt.tools.csar import body as request_schemas
from tacker_k8s_mgmt.tools.csar.body import read
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2

UUID = "fd374e20-60bb-4e56-bdb9-052e28185439"
SECRET = "s3cr3t-value"


def link(config):
    return {
        "id": "n",
        "resourceId": "n",
        "extCps": [{"cpdId": "c", "cpConfig": config}],
    }


def connected(addresses, api=V2):
    ethernet = {"ipAddresses": [addresses]}
    protocol = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}
    config = {"cpProtocolData": [protocol]}
    return {"extVirtualLinks": [link({"c": config} if api is V2 else [config])]}


ADDRESS = "extVirtualLinks.0.extCps.0.cpConfig.c.cpProtocolData.0.ipOverEthernet"
REFUSED = {
    "several at once": (
        V2,
        {"flavourId": 7, "instantiationLevelId": "", "extVirtualLinks": [{}]},
        "extVirtualLinks.0.extCps: is missing",
        "extVirtualLinks.0.id: is missing",
        "extVirtualLinks.0.resourceId: is missing",
        "flavourId: must be text",
        "instantiationLevelId: must not be empty",
    ),
    "below external connection points": (
        V2,
        connected({"type": "IPV4", "fixedAddresses": ["2001:db8::1"]}),
        f"{ADDRESS}.ipAddresses.0.fixedAddresses.0: must be an IPv4 address",
    ),
    "alternatives": (
        V2,
        connected({"type": "IPV6"}),
        f"{ADDRESS}.ipAddresses.0: must have exactly one of numDynamicAddresses, "
        "fixedAddresses, addressRange",
    ),
    "both alternatives": (
        V1,
        connected({"type": "IPV4", "fixedAddresses": [], "numDynamicAddresses": 1}, V1),
        "extVirtualLinks.0.extCps.0.cpConfig.0.cpProtocolData.0.ipOverEthernet."
        "ipAddresses.0: must have exactly one of numDynamicAddresses, "
        "fixedAddresses",
    ),
    "no address": (
        V2,
        {
            "extVirtualLinks": [
                link(
                    {
                        "c": {
                            "cpProtocolData": [
                                {
                                    "layerProtocol": "IP_OVER_ETHERNET",
                                    "ipOverEthernet": {},
                                }
                            ]
                        }
                    }
                )
            ]
        },
        f"{ADDRESS}: must have one of macAddress, ipAddresses",
    ),
    "a long value": (
        V1,
        {"flavourId": "simple", "additionalParams": {"user_data": "x" * 1025}},
        "additionalParams.user_data: must have at most 1024 characters",
    ),
    "a name": (
        V2,
        {"metadata": {"a$b": "text"}},
        "metadata.a$b: its name must match ^[a-zA-Z0-9-_:. /]{1,1024}$",
    ),
    "a VIM": (
        V2,
        {"flavourId": "s", "vimConnectionInfo": {"one": {"vimId": None}}},
        "vimConnectionInfo.one.vimId: must be text",
        "vimConnectionInfo.one.vimType: is missing",
    ),
    "numbers and choices": (
        V2,
        {"type": "OUT", "aspectId": "a", "numberOfSteps": 0},
        "numberOfSteps: must be at least 1",
        "type: must be SCALE_OUT or SCALE_IN",
    ),
    "a UUID": (
        V1,
        {"vnfcInstanceId": ["workerNode-1"]},
        "vnfcInstanceId.0: must be a UUID",
    ),
    "too many": (
        V1,
        {
            "flavourId": "s",
            "vimConnectionInfo": [
                {"id": "a", "vimType": "T"},
                {"id": "b", "vimType": "T"},
            ],
        },
        "vimConnectionInfo: must have no more entries than 1",
    ),
    "no description": (
        V1,
        {"vnfdId": UUID, "vnfInstanceDescription": "a\x07"},
        "vnfInstanceDescription: must have printable characters only",
    ),
    "parameters of a heal": (
        V1,
        {"cause": "x", "additionalParams": []},
        "additionalParams: must be a structure with attributes",
    ),
    "a change of package": (
        V2,
        {"vnfdId": UUID, "additionalParams": {"upgrade_type": "x"}},
        "additionalParams.upgrade_type: must be RollingUpdate",
        "additionalParams.vdu_params: is missing",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_every_problem_has_its_place_and_reason(case):
    api, body, *expected = REFUSED[case]
    assert sorted(read(body, api).problems) == expected


EVERY = [
    (api, operation)
    for api, every in request_schemas.tackers().items()
    for operation in every
]


def subschemas(value):
    """Every schema in a schema."""
    yield value
    for key, inner in value.items():
        if key in ("properties", "patternProperties"):
            for one in inner.values():
                yield from subschemas(one)
        elif key in ("anyOf", "oneOf"):
            for one in inner:
                yield from subschemas(one)
        elif isinstance(inner, dict) and key != "const":
            yield from subschemas(inner)


ALTERNATIVES = {"anyOf", "oneOf", "if", "then", "else"}
INNER = {"properties", "patternProperties", "items", "const", "additionalProperties"}


def test_there_is_a_sentence_for_every_keyword_and_format():
    found = [
        one
        for api, operation in EVERY
        for one in subschemas(request_schemas.tackers()[api][operation])
    ]
    keywords = set().union(*found) - ALTERNATIVES - INNER - {"required"}
    assert keywords == set(request_schemas._SENTENCES)
    formats = {one["format"] for one in found if "format" in one}
    assert formats == set(request_schemas._FORMATS)
    checked = request_schemas.validator({}).format_checker.checkers
    assert formats == set(checked)
    closed = [one for one in found if "additionalProperties" in one]
    assert {one["additionalProperties"] for one in closed} == {True, False}
    for one in found:  # Alternatives are of attributes, or of types.
        branches = (*one.get("anyOf", ()), *one.get("oneOf", ()))
        assert len({"required" in branch for branch in branches}) < 2
        assert all("required" in branch or "type" in branch for branch in branches)


@pytest.mark.parametrize(("api", "operation"), EVERY)
def test_no_value_is_in_what_is_said(api, operation):
    names = request_schemas.tackers()[api][operation]["properties"]
    odd = [SECRET * 200, [SECRET], {"key": SECRET * 200}, {"$": SECRET}, [[SECRET]]]
    for value in odd:
        body = dict.fromkeys(names, value)
        said = [text for _, text in request_schemas.problems(api, operation, body)]
        assert said or (api, operation) == ("v1", request_schemas.MODIFY)
        assert SECRET not in " ".join(said)
