# SPDX-License-Identifier: Apache-2.0
"""One HTTPS request, and its overall limit."""

import http.client
import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from pydantic import SecretStr

from tacker_k8s_mgmt.model.vim import PersonAccess
from tacker_k8s_mgmt.remote import https
from tacker_k8s_mgmt.remote.timing import closing_after
from tacker_k8s_mgmt.tools.cli.base import NotDone
from tacker_k8s_mgmt.tools.cli.commands import cluster_access
from tests.helpers.kubeapi import make_certificate


@contextmanager
def server(tmp_path, *texts, pause=0.0):
    """A server that sends these texts, and its URL and certificate."""
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    place = socket.create_server(("127.0.0.1", 0))

    def answer():
        with suppress(OSError), context.wrap_socket(place.accept()[0], True) as one:
            asked.append(one.recv(10_000))
            if asked[0].startswith(b"POST"):
                one.recv(10_000)
            for text in texts:
                one.sendall(text)
                time.sleep(pause)

    asked = []
    with place:
        threading.Thread(target=answer, daemon=True).start()
        url = f"https://127.0.0.1:{place.getsockname()[1]}"
        yield url, certificate.read_text(), asked


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def test_what_is_asked_is_answered(tmp_path):
    with server(tmp_path, OK) as (url, ca, asked):
        assert https.ask(f"{url}/a/b?c=d", {"X": "y"}, "[]", ca_certificate=ca) == (
            200,
            b"{}",
        )
    first, *lines = asked[0].decode().split("\r\n")
    assert first == "POST /a/b?c=d HTTP/1.1"
    assert {"X: y", "Content-Type: application/json"} < set(lines)


def test_a_redirect_is_not_followed(tmp_path):
    away = b"HTTP/1.1 302 Found\r\nLocation: https://x/\r\nContent-Length: 0\r\n\r\n"
    with server(tmp_path, away) as (url, ca, asked):
        assert https.ask(url, {}, ca_certificate=ca)[0] == 302
    assert asked[0].startswith(b"GET / HTTP/1.1\r\n")


def test_an_answer_that_is_too_long_is_none(tmp_path):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n"
    with (
        server(tmp_path, head, b"x" * 1_048_577) as (url, ca, _),
        pytest.raises(https.TooLongError),
    ):
        https.ask(url, {}, ca_certificate=ca)


@pytest.mark.parametrize("ca", [None, ""])
def test_no_other_ca_is_trusted(tmp_path, ca):
    with (
        server(tmp_path, OK) as (url, _, asked),
        pytest.raises((ssl.SSLError, ValueError)),
    ):
        https.ask(url, {}, ca_certificate=ca)
    assert asked in ([], [b""])


TRICKLES = {
    "in its head": (b"HTTP/1.1 200 OK\r\n", *[b"x"] * 100),
    "in its body": (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", *[b"x"] * 98),
}


@pytest.mark.parametrize("texts", TRICKLES.values(), ids=TRICKLES)
def test_an_answer_that_trickles_ends_at_the_limit(tmp_path, texts):
    """Each byte comes in time, and the whole never does."""
    with server(tmp_path, *texts, pause=0.2) as (url, ca, _):
        begun = time.monotonic()
        with pytest.raises((OSError, http.client.HTTPException)):
            https.ask(url, {}, ca_certificate=ca, seconds=1.0)
        assert time.monotonic() - begun < 5


class TestOfAPerson:
    """``cluster kubeconfig`` checks the token that it writes."""

    def test_a_token_that_is_taken_is_good(self, tmp_path):
        with server(tmp_path, OK) as (url, ca, asked):
            cluster_access.verify(url, PersonAccess("a", SecretStr("t0ken"), "", ca))
        assert b"GET /api HTTP/1.1\r\n" in asked[0]
        assert b"Authorization: Bearer t0ken\r\n" in asked[0]

    @pytest.mark.parametrize(
        ("texts", "why"),
        [
            ([OK.replace(b"200 OK", b"401 X")], "does not take the new token: sta"),
            ([b"no HTTP at all\r\n"], "cannot be used: no HTTP at all"),
            ([], "cannot be used: Remote end closed connection"),
        ],
    )
    def test_what_does_not_take_it_is_an_error(self, tmp_path, texts, why):
        with (
            server(tmp_path, *texts) as (url, ca, _),
            pytest.raises(NotDone, match=why),
        ):
            cluster_access.verify(url, PersonAccess("a", SecretStr("t"), "", ca))

    def test_a_server_that_trickles_is_given_up(self, tmp_path, monkeypatch):
        monkeypatch.setattr(
            https, "closing_after", lambda _, end: closing_after(1.0, end)
        )
        texts = TRICKLES["in its head"]
        with server(tmp_path, *texts, pause=0.2) as (url, ca, _):
            begun = time.monotonic()
            with pytest.raises(NotDone, match="cannot be used"):
                cluster_access.verify(url, PersonAccess("a", SecretStr("t"), "", ca))
            assert time.monotonic() - begun < 5
