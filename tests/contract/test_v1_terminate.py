"""What the end of a termination tells the operator when it has failed."""

import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker_k8s_mgmt.hooks.v1 import terminate
from tests.helpers.samples import parsed


@pytest.mark.parametrize(
    ("request_", "verb"),
    [
        pytest.param(types.SimpleNamespace(), "`retry` goes on", id="terminate"),
        pytest.param(None, "`rollback` goes on", id="rollback of an instantiation"),
    ],
)
def test_the_verb_that_goes_on_and_what_fail_would_leave(request_, verb):
    params = parsed()
    text = terminate.advice(params, request_).failed
    assert text.startswith(verb)
    assert "Do not send `fail`" in text
    assert f"{params.ansible.directory} on {params.ansible.host}" in text
