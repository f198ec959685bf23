# SPDX-License-Identifier: Apache-2.0
"""The advice to the operator when the end of a termination has failed."""

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt.hooks.v1 import driver
from tests.helpers.samples import parsed


@pytest.mark.parametrize(
    ("is_rollback", "verb"),
    [
        pytest.param(False, "`retry` continues", id="terminate"),
        pytest.param(True, "`rollback` continues", id="rollback of an instantiation"),
    ],
)
def test_the_verb_that_goes_on_and_what_fail_would_leave(is_rollback, verb):
    params = parsed()
    text = driver.terminate_advice(params, is_rollback).text
    assert text.startswith(verb)
    assert "Do not send `fail`" in text
    assert f"{params.ansible.directory} on {params.ansible.host}" in text
