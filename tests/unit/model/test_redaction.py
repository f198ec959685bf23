# SPDX-License-Identifier: Apache-2.0
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.model.redaction import SHORTEST, Redactor

AWKWARD = "p@ss/w\"ö r'd%+\\n"


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(AWKWARD, id="as-written"),
        pytest.param(quote(AWKWARD, safe=""), id="in-a-url"),
        pytest.param(quote(AWKWARD), id="in-a-path"),
        pytest.param(quote_plus(AWKWARD), id="in-a-form"),
        pytest.param(quote(AWKWARD, safe="").lower(), id="in-a-lower-case-url"),
        pytest.param(json.dumps(AWKWARD)[1:-1], id="in-json"),
        pytest.param(json.dumps(AWKWARD, ensure_ascii=False)[1:-1], id="in-utf-8-json"),
        pytest.param(repr(AWKWARD)[1:-1], id="in-a-python-repr"),
        pytest.param(AWKWARD.replace("'", "'\"'\"'"), id="in-a-shell-command"),
    ],
)
def test_a_secret_is_starred_in_every_form(form):
    assert Redactor([AWKWARD])(f"before {form} after") == "before *** after"


def test_the_longer_of_two_overlapping_secrets_wins():
    assert Redactor(["open", "opensesame"])("opensesame, open") == "***, ***"


@pytest.mark.parametrize("secret", ["", "a", "123"])
def test_short_secrets_do_not_turn_the_text_into_stars(secret):
    text = "a123: task failed at 123 s"
    assert Redactor([secret])(text) == text


def test_without_secrets_the_text_stays():
    assert Redactor([])("fatal: [w1]: FAILED!") == "fatal: [w1]: FAILED!"


def test_characters_with_a_meaning_in_patterns_are_literal():
    assert Redactor(["a.c*(["])("abc* a.c*([") == "abc* ***"


_plain = st.text(st.characters(exclude_characters="*"))


@given(
    st.text(st.characters(exclude_characters="*"), min_size=SHORTEST), _plain, _plain
)
def test_no_text_keeps_a_secret(secret, before, after):
    assert secret not in Redactor([secret])(f"{before}{secret}{after}")
