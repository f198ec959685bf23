# SPDX-License-Identifier: Apache-2.0
"""Whatever a request holds: a model or one whole ParamError, and no secret in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.text import Redactor
from tests.helpers.param_samples import MISSING, WRONG
from tests.helpers.param_strategies import (
    KEYS,
    LISTED_SECRETS,
    MANY,
    MARKER,
    OPTION_SECRETS,
    PASSWORDS,
    attributes,
    bodies,
    outcome,
    passwords,
    values,
    with_option,
)
from tests.helpers.samples import REMOVED, changed, read, request, updated


@given(values)
def test_any_value_at_all_is_read_or_refused(value):
    made, problems = outcome(reader.RequestReader().read, request(value))
    assert made is None
    assert bool(problems) == (value is not None)


@MANY
@given(bodies())
def test_no_secret_is_in_a_problem_a_warning_or_the_models_text(body):
    made, problems = outcome(read, request(body))
    assert made or problems
    assert MARKER not in f"{made!r} {made} {problems}"


@MANY
@given(bodies(), bodies())
def test_nor_when_a_later_request_changes_them(stored, change):
    made, problems = outcome(updated, request(stored), request(change))
    assert made or problems
    assert MARKER not in f"{made!r} {made} {problems}"


@given(passwords, st.sampled_from(PASSWORDS))
def test_every_password_is_among_the_secrets(password, name):
    made, problems = outcome(read, request(changed({name: password})))
    if made:
        assert password in made.secrets()
    else:
        assert problems[0] == f"{name}: must not contain control characters"


@given(passwords, st.sampled_from(sorted(OPTION_SECRETS)))
def test_every_secret_of_an_option_is_among_them_too(secret, name):
    made, problems = outcome(read, request(changed(with_option(name, secret))))
    if made:
        assert secret in made.secrets()
        assert MARKER not in repr(made)
    else:
        assert problems[0].startswith(f"{name}: must ")


@given(passwords, st.sampled_from(sorted(LISTED_SECRETS)))
def test_and_every_secret_of_a_registry(secret, name):
    item = {**LISTED_SECRETS[name], "password": secret}
    made, problems = outcome(read, request(changed({name: [item]})))
    if made:
        assert secret in made.secrets()
        assert MARKER not in repr(made)
    else:
        assert problems[0].startswith(f"{name}.0.password: must ")


@given(st.sampled_from(KEYS), st.binary(min_size=40, max_size=400))
def test_every_line_of_a_key_is_among_the_secrets(name, content):
    lines = [content.hex()[place : place + 64] for place in range(0, 400, 64)]
    body = "\n".join(line for line in lines if line)
    text = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    made, _ = outcome(read, request(changed({name: text})))
    shown = Redactor(made.secrets())(f"before {text} after")
    assert not [line for line in body.splitlines() if len(line) > 3 and line in shown]


# One cause, one problem: these do not touch each other.
CAUSES = {
    name: (value, f"{name}: {expected}")
    for name, value, expected in WRONG
    if "." in name and expected and "is deleted with" not in expected
} | {
    name: (REMOVED, f"{name}: is missing")
    for name in MISSING
    if name.partition(".")[2] in ("ssh_cp_name", "script_path", "ssh_username")
}


@MANY
@given(st.lists(st.sampled_from(sorted(CAUSES)), min_size=1, unique=True))
def test_every_problem_is_reported_whatever_else_is_wrong(chosen):
    body = changed({name: CAUSES[name][0] for name in chosen})
    _, (*found, _, _, _) = outcome(read, request(body))
    expected = [CAUSES[name][1] for name in chosen]
    assert len(found) == len(expected)
    for text in expected:
        assert [problem for problem in found if problem.startswith(text)], text


@pytest.mark.parametrize("name", sorted(attributes()))
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(f"{MARKER}\0!", id="text"),
        pytest.param([MARKER], id="list"),
        pytest.param(json.loads("[" * 500 + "]" * 500), id="deep"),
    ],
)
def test_a_password_in_the_wrong_place_is_refused_and_not_shown(name, value):
    made, problems = outcome(read, request(changed({name: value})))
    assert made is None
    # Of a list, it is the item that is wrong.
    starts = (f"{name}: ", f"{name}.0: ")
    assert any(problem.startswith(starts) for problem in problems)
    assert MARKER not in "".join(problems)
