# SPDX-License-Identifier: Apache-2.0
"""Lists of the parameters that a VNF instance's metadata replace."""

import json

import pytest

from tacker_k8s_mgmt.request import reader
from tests.helpers.samples import (
    SIMPLE,
    camelised,
    changed,
    read,
    refused,
    request,
    updated,
)

GIVEN = changed({"tenants": [{"name": "blue"}]})


def names(metadata, given=GIVEN):
    made = read(request(given), metadata=metadata)
    assert made.metadata_problems == ()
    return [tenant.name for tenant in made.tenants]


def problems(metadata):
    made = read(request(GIVEN), metadata=metadata)
    # Those of the request hold.
    assert made.tenants == read(request(GIVEN)).tenants
    return made.metadata_problems


@pytest.mark.parametrize("metadata", [{}, {"k8s_tenants": None}, {"owner": "us"}])
def test_without_an_entry_those_of_the_request_hold(metadata):
    assert names(metadata) == ["blue"]


@pytest.mark.parametrize("written", [json.dumps, lambda value: value])
@pytest.mark.parametrize("given", [SIMPLE, GIVEN, camelised(GIVEN)])
def test_an_entry_replaces_the_whole_list(written, given):
    assert names({"k8s_tenants": written([{"name": "red"}])}, given) == ["red"]
    assert names({"k8s_tenants": written([])}, given) == []


def test_later_requests_and_kept_parameters_have_it_too():
    metadata = {"k8s_tenants": '[{"name": "red"}]'}
    change = request({"drain": {"timeout": 60}})
    for made in (
        updated(request(GIVEN), change, metadata=metadata),
        updated(request(GIVEN), None, metadata=metadata),
        reader.RequestReader(metadata=metadata).with_former_secrets(request(GIVEN), []),
    ):
        assert [tenant.name for tenant in made.tenants] == ["red"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[{", "k8s_tenants: is text, but not JSON"),
        ("{}", "k8s_tenants: must be a list"),
        (7, "k8s_tenants: must be a list"),
        ('[{"nam": "red"}]', "k8s_tenants.0.nam: is not a known attribute"),
        ('[{"name": "Red"}]', "k8s_tenants.0.name: must be the name of a namespace"),
        ('["red"]', "k8s_tenants.0: must be a structure"),
    ],
)
def test_what_is_wrong_is_no_fault_of_the_parameters(value, expected):
    assert problems({"k8s_tenants": value})[0].startswith(expected)


def test_wrong_parameters_are_refused_with_the_problems_of_both():
    body = request(changed({"vim_name": 7}))
    assert refused(read, body, metadata={"k8s_tenants": "["}) == (
        "k8s_tenants: is text, but not JSON",
        "vim_name: must be text",
    )


def test_lists_are_checked_by_themselves_too():
    wrong = [{"name": "Blue", "quota": {"pods": "x"}}, {"colour": 1}]
    assert reader.problems({"k8s_tenants": wrong, "owner": 1}) == [
        "k8s_tenants.1.colour: is not a known attribute",
        "k8s_tenants.0.name: must be the name of a namespace: 1 to 48 lower-case "
        "letters, digits and '-', with a letter or digit at both ends",
        "k8s_tenants.0.quota.pods: must be a quantity such as 4, 500m or 8Gi",
        "k8s_tenants.1.name: is missing",
    ]
    assert reader.problems({"k8s_tenants": '[{"name": "blue"}]'}) == []
    assert reader.problems({}) == []
