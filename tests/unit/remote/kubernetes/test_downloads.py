# SPDX-License-Identifier: Apache-2.0
"""Files of applications from a real HTTPS server, read by curl over SSH."""

import base64
import contextlib
import hashlib
import http.server
import re
import shutil
import ssl
import threading
from typing import ClassVar

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubernetes import downloads

CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(not CURL, reason="no curl on PATH")

CHART = b"a chart"
DIGEST = hashlib.sha256(CHART).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the chart, and what is none.

    :cvar moves: where the redirection leads.
    """

    moves = ""

    def do_GET(self) -> None:
        if self.path == "/moved.tgz":
            self.send_response(302)
            self.send_header("Location", self.moves)
            self.end_headers()
        elif self.path == "/chart.tgz":
            self._send(CHART)
        elif self.path == "/endless.tgz":
            # Without a length, which curl would refuse at once.
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bytes(100))
        else:
            self.send_error(404)

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


class Proxy(http.server.BaseHTTPRequestHandler):
    """Lets nobody through, and keeps the logins that it was given."""

    logins: ClassVar[list[str]] = []

    def do_CONNECT(self) -> None:
        self.logins.append(self.headers["Proxy-Authorization"])
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextlib.contextmanager
def serving(server):
    """Serve as long as the block runs; the address."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(api_certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*api_certificate)
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.socket = context.wrap_socket(
        served.socket, server_side=True, do_handshake_on_connect=False
    )
    with serving(served) as address:
        yield address


@pytest.fixture
def proxy():
    Proxy.logins.clear()
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)) as address:
        yield address


@pytest.fixture
def trusting(sshd, api_certificate):
    """A node whose authorities signed the server's certificate."""
    certificate, _ = api_certificate
    sshd.program("curl", f'exec {CURL} --cacert {certificate} "$@"')


def refusal(session, url, digest=DIGEST, proxy=None):
    with pytest.raises(errors.RemoteError) as caught:
        downloads.fetch(session, url, digest, proxy or {})
    text = str(caught.value)
    assert text.startswith(f"{url} cannot be used, as 127.0.0.1 reads it: ")
    return text


@pytest.mark.usefixtures("trusting")
class TestTrusted:
    def test_file_is_what_its_digest_says(self, session, server):
        url = f"https://{server}/chart.tgz"
        assert downloads.fetch(session, url, DIGEST, {}) == CHART

    def test_another_file_is_refused(self, session, server):
        text = refusal(session, f"https://{server}/chart.tgz", digest="0" * 64)
        assert f"its SHA-256 is {DIGEST}, not {'0' * 64}" in text

    def test_file_that_is_not_there(self, session, server):
        assert "404" in refusal(session, f"https://{server}/other.tgz")

    def test_redirection_is_followed_over_tls_only(self, session, server, monkeypatch):
        url = f"https://{server}/moved.tgz"
        monkeypatch.setattr(Handler, "moves", f"https://{server}/chart.tgz")
        assert downloads.fetch(session, url, DIGEST, {}) == CHART
        monkeypatch.setattr(Handler, "moves", f"http://{server}/chart.tgz")
        assert "Protocol" in refusal(session, url)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("chart.tgz", "Maximum file size exceeded"),
            ("endless.tgz", r"Maximum file size exceeded|more than 5 bytes"),
        ],
    )
    def test_large_file_is_refused_with_and_without_its_length(
        self, session, server, monkeypatch, name, reason
    ):
        monkeypatch.setattr(downloads, "LARGEST", 5)
        assert re.search(reason, refusal(session, f"https://{server}/{name}"))

    def test_login_of_the_proxy_reaches_it_and_nothing_else(
        self, session, server, sshd, proxy
    ):
        login = 'me:p"w\\ö'
        options = {"proxy": f"http://{login}@{proxy}", "noproxy": ""}
        text = refusal(session, f"https://{server}/chart.tgz", proxy=options)
        assert "403" in text
        (given,) = Proxy.logins
        assert base64.b64decode(given.removeprefix("Basic ")).decode() == login
        assert "me:" not in text + " ".join(sshd.commands)

    def test_nothing_is_left_on_the_node(self, session, server, sshd):
        before = sorted(sshd.home.rglob("*"))
        downloads.fetch(session, f"https://{server}/chart.tgz", DIGEST, {})
        assert sorted(sshd.home.rglob("*")) == before


def test_server_without_a_certificate_of_an_authority(session, server):
    assert "certificate" in refusal(session, f"https://{server}/chart.tgz")
