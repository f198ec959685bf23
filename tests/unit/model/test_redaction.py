# SPDX-License-Identifier: Apache-2.0
import ast
import base64
import html
import json
import textwrap
import time
from urllib.parse import quote, quote_plus

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.text import SHORTEST, Redactor, in_url, without_login
from tests import tree

NESTED = "'\"'\"'"
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
        pytest.param(AWKWARD.replace("'", "'\\''"), id="in-a-shells-trace"),
        pytest.param(AWKWARD.replace("'", "''"), id="in-yaml"),
        pytest.param(json.dumps(json.dumps(AWKWARD))[3:-3], id="in-json-in-json"),
        pytest.param(base64.b64encode(AWKWARD.encode()).decode()[:22], id="in-base64"),
        pytest.param(
            AWKWARD.replace("'", NESTED).replace("'", NESTED),
            id="in-a-shell-of-a-shell",
        ),
        pytest.param(quote(quote(AWKWARD, safe="")), id="in-a-url-in-a-url"),
        pytest.param(json.dumps(AWKWARD).replace("/", "\\/")[1:-1], id="in-php-json"),
        pytest.param(json.dumps(AWKWARD).replace("f6", "F6")[1:-1], id="in-java-json"),
        pytest.param(repr(AWKWARD.encode())[2:-1], id="in-python-bytes"),
        pytest.param(ascii(AWKWARD)[1:-1], id="in-python-ascii"),
        pytest.param(html.escape(AWKWARD), id="in-html"),
        pytest.param(AWKWARD.replace("'", "&#39;").replace('"', "&#34;"), id="in-go"),
    ],
)
def test_a_secret_is_starred_in_every_form(form):
    assert Redactor([AWKWARD])(f"before {form} after") == "before *** after"


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("http://u:p@ssword@proxy:3128", {"p@ssword", "ssword"}),
        ("http://u:p%40ssword@proxy", {"p%40ssword", "p@ssword", "ssword"}),
        ("https://user:pass/word@host", {"pass/word", "pass", "word"}),
        ("https://user:pass@host:word", {"pass@host:word", "pass", "word"}),
        ("https://token@host/x", {"token"}),
        ("user:p@ssword@proxy:3128", {"p@ssword", "ssword"}),
        ("https://token:@host/x", {"token"}),
        ("https://ghp_0123456789abcdef:x-oauth@h", {"ghp_0123456789abcdef", "x-oauth"}),
        ("https://host/x?a=1&sig=abcdef&X-Amz-Security-Token=xyz1", {"abcdef", "xyz1"}),
        ("https://u:password@h\u2100st and http://[u:other@x", {"password", "other"}),
    ],
)
def test_secrets_in_urls(url, secrets):
    assert secrets <= set(in_url(url))
    assert not [one for one in secrets if one in without_login(url)]
    assert "user" not in in_url(url)


@pytest.mark.parametrize(
    "text",
    [
        "https://host:6443/path?page=2",
        "http://registry:5000/x@sha256:abcdef",
        "https://[fd00::1]:6443",
        "https://{{ host }}:{{ port }}/x",
        "git@example.org:x/y",
        "https://example.org/x/@v/list",
        "https://example.org/go/@v/list?by=me@example.org",
    ],
)
def test_what_has_no_secret_stays(text):
    assert not list(in_url(text))
    assert without_login(text) == text


def test_what_go_escapes_in_json():
    # As kubectl quotes an object in its annotation.
    assert Redactor(["pass<&>word"])('{"a": "pass\\u003c\\u0026\\u003eword"}') == (
        '{"a": "***"}'
    )


LONG = "Z1e2d3c4-b5a6 öüü/W1v2u3t4 s5r6q7p8 " * 2 + "and-a-very-long-word" * 4


@pytest.mark.parametrize("before", ["", "a", "ab", "[WARNING]: no login with "])
@pytest.mark.parametrize("secret", [LONG, "hunter2-hunter2", "two words  of it"])
def test_no_line_of_a_secret_is_left_where_a_text_is_wrapped(secret, before):
    document = json.dumps({"auths": {"h": {"auth": _base64(f"u:{secret}")}}})
    texts = {
        # Ansible's warnings are wrapped thus.
        "ansible": "\n".join(textwrap.wrap(f"{before}{secret} is wrong", 20)),
        "in json": json.dumps(
            "\n".join(textwrap.wrap(f"{before}{secret} is wrong", 20))
        ),
        "joined": f"{before}{' '.join(secret.split())}",
        "yaml": yaml.safe_dump({before: secret}, width=20),
        "yaml, quoted": yaml.safe_dump({before: secret}, default_style='"', width=20),
        "base64": base64.encodebytes(f"{before}{secret}".encode()).decode(),
        "a registry's secret": base64.encodebytes(document.encode()).decode(),
    }
    for name, text in texts.items():
        shown = Redactor([secret])(text)
        assert "***" in shown, name
        # What is at its ends in base64, and what is around it.
        left = [part for part in text.split() if len(part) > 40 and part in shown]
        assert not left, name
        assert not [
            word for word in secret.split() if len(word) > 4 and word in shown
        ], name


def _base64(text):
    return base64.b64encode(text.encode()).decode()


def test_a_megabyte_with_the_lines_of_a_key_takes_no_time():
    lines = [base64.b64encode(bytes([n]) * 48).decode() for n in range(50)]
    text = f"{lines[7]} " + "TASK [x] ok: AZaz+/0 " * 50_000
    began = time.process_time()
    assert Redactor(lines)(text).startswith("*** TASK")
    assert time.process_time() - began < 5


def test_lines_of_a_secret_file_are_secrets():
    assert Redactor(["first line\nx\nlast line"])("x: last line") == "x: ***"


def test_lines_from_eight_characters_on_are_secrets():
    redact = Redactor(["12345678\nabcdefg\n"])
    assert redact("a 12345678 b abcdefg c") == "a *** b abcdefg c"


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


def _cuts(node):
    """Whether a call redacts what another one has cut or made one line of."""
    called = [ast.unparse(one.func) for one in (node, *node.args) if _is_call(one)]
    return (
        called[0].endswith("redact")
        and called[1:] != []
        and called[1].rpartition(".")[2] in ("last_lines", "in_line", "printable")
    )


def _is_call(node):
    return isinstance(node, ast.Call)


def test_a_text_is_redacted_before_it_is_cut():
    """In a part of a secret nobody recognises it."""
    found = {
        name
        for name in tree.files()
        if name.startswith("tacker_k8s_mgmt/") and name.endswith(".py")
        for node in ast.walk(ast.parse((tree.ROOT / name).read_text()))
        if _is_call(node) and _cuts(node)
    }
    assert not found
