# SPDX-License-Identifier: Apache-2.0
"""Texts with JSON in requests and metadata, which end no parser."""

import pytest

from tacker_k8s_mgmt import errors
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
