# SPDX-License-Identifier: Apache-2.0
"""Texts with JSON in requests and metadata, which end no parser."""

import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.request import cnf_exposure, reader
from tests.helpers import hostile

TEXTS = [
    hostile.DEEP_JSON,
    '{"a":' * 200_000,
    "[NaN]",
    "[Infinity]",
    "[-Infinity]",
    "[1e999]",
    "[-1e999]",
    "{",
    "",
    hostile.ESCAPES,
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
def test_texts_that_harm_a_parser_are_problems(text):
    for entry in (reader.TENANTS, reader.APPLICATIONS):
        (problem,) = reader.problems({entry: text})
        assert problem == f"{entry}: is text, but not JSON"
    with pytest.raises(errors.ExposureParamError, match="is text, but not JSON"):
        cnf_exposure.parse(text)


@pytest.mark.parametrize("text", ["[1, 1.5, -2e3]", '{"a": [null, true, "b"]}', "7"])
def test_other_texts_are_read_as_ever(text):
    assert untrusted.parse_json(text) == json.loads(text)
    assert untrusted.parse_json(text.encode()) == json.loads(text)
