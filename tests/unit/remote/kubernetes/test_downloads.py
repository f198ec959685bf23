# SPDX-License-Identifier: Apache-2.0
"""Files of applications from a real HTTPS server, read by curl over SSH."""

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tacker_k8s_mgmt
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications import host as downloads
from tacker_k8s_mgmt.features.applications.host import ApplicationHost
from tacker_k8s_mgmt.request.applications import SourceFile
from tacker_k8s_mgmt.request.installation import Proxy
from tests.helpers import web_server
from tests.helpers.web_server import CHART

CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(not CURL, reason="no curl on PATH")

DIGEST = hashlib.sha256(CHART).hexdigest()


@pytest.fixture
def server(api_certificate):
    files = map(str, api_certificate)
    with web_server.running("--certificate", *files) as address:
        yield address


@pytest.fixture
def logins(tmp_path):
    """The file with those that the proxy was given."""
    return tmp_path / "logins"


@pytest.fixture
def proxy(logins):
    with web_server.running("--logins", str(logins)) as address:
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
    start, sign, _ = url.partition("?")
    shown = f"{start}?***" if sign else start
    assert text.startswith(f"{shown} cannot be used, as 127.0.0.1 reads it: ")
    return text


@pytest.mark.usefixtures("trusting")
class TestTrusted:
    def test_another_file_is_refused(self, session, server):
        text = refusal(session, f"https://{server}/chart.tgz", digest="0" * 64)
        assert f"its SHA-256 is not {'0' * 64}" in text
        # That of an answer from inside is not for the request to know.
        assert DIGEST not in text

    def test_brackets_and_braces_are_one_url(self, session, server):
        url = f"https://{server}/chart{{1,2}}[1-3].tgz"
        assert downloads.fetch(session, url, DIGEST, {}) == CHART

    def test_no_more_is_written_than_the_limit(
        self, session, server, sshd, monkeypatch, api_certificate, tmp_path
    ):
        # As a curl does that watches no size without a length.
        sshd.program(
            "curl",
            f"grep -v max-filesize | {CURL} --cacert {api_certificate[0]} "
            f'"$@"; code=$?; stat -c %s "$4" >{tmp_path}/written; exit $code',
        )
        monkeypatch.setattr(downloads, "LARGEST", 1024 * 1024)
        text = refusal(session, f"https://{server}/large.tgz")
        assert "it has more than 1048576 bytes" in text
        assert int((tmp_path / "written").read_text()) == 1024 * 1024 + 512

    def test_as_much_as_the_limit_is_taken(self, session, server, monkeypatch):
        monkeypatch.setattr(downloads, "LARGEST", len(CHART))
        url = f"https://{server}/chart.tgz"
        assert downloads.fetch(session, url, DIGEST, {}) == CHART
        monkeypatch.setattr(downloads, "LARGEST", len(CHART) - 1)
        assert "Maximum file size exceeded" in refusal(session, url)

    def test_file_that_is_not_there(self, session, server):
        assert "404" in refusal(session, f"https://{server}/other.tgz")

    def test_redirection_is_followed_over_tls_only(self, session, server):
        url = f"https://{server}/moved.tgz?to={{}}://{server}/chart.tgz"
        assert downloads.fetch(session, url.format("https"), DIGEST, {}) == CHART
        assert "Protocol" in refusal(session, url.format("http"))

    @pytest.mark.parametrize(
        "to",
        [
            *("file:///etc/passwd", "ftp://{}/", "gopher://{}/_x", "scp://{}/x"),
            *("http://{}/chart.tgz", "dict://{}/x", "smtp://{}"),
        ],
    )
    def test_a_redirection_leads_to_no_other_scheme(self, session, server, to):
        url = f"https://{server}/moved.tgz?to={to.format(server)}"
        assert "Protocol" in refusal(session, url)

    def test_redirections_in_a_circle_end(self, session, server):
        text = refusal(session, f"https://{server}/circle.tgz")
        assert "Maximum (5) redirects" in text

    def test_a_server_that_trickles_is_given_up(self, session, server, monkeypatch):
        monkeypatch.setattr(downloads, "_LIMIT", 1.5)
        assert "timed out" in refusal(session, f"https://{server}/slow.tgz").lower()

    @pytest.mark.parametrize("path", ["chart.tgz", "other.tgz", "circle.tgz"])
    def test_no_query_is_in_an_error_or_a_command(self, session, server, sshd, path):
        url = f"https://{server}/{path}?a=b&c=s3cret-1234#s3cret-1234"
        text = refusal(session, url, digest="0" * 64)
        assert "s3cret" not in text + " ".join(sshd.commands)
        file = SourceFile(url=url, sha256=DIGEST)
        assert file.title == f"https://{server}/{path}?***"

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
        self, session, server, sshd, proxy, logins
    ):
        login = 'me:p"w\\ö'
        options = {"proxy": f"http://{login}@{proxy}", "noproxy": ""}
        text = refusal(session, f"https://{server}/chart.tgz", proxy=options)
        assert "403" in text
        (given,) = logins.read_text().splitlines()
        assert base64.b64decode(given.removeprefix("Basic ")).decode() == login
        assert "me:" not in text + " ".join(sshd.commands)

    @pytest.mark.parametrize("no_proxy", ["", "127.0.0.1"])
    def test_an_applications_file_comes_through_the_proxy_of_the_nodes(
        self, session, server, proxy, logins, no_proxy
    ):
        given = Proxy(https_proxy=f"http://me:secret@{proxy}", no_proxy=no_proxy)
        host = ApplicationHost(session, "https://192.0.2.4:6443", 0, given)
        url = f"https://{server}/chart.tgz"
        if no_proxy:
            assert host.fetch(url, DIGEST) == CHART
            assert not logins.exists()
            return
        # The proxy lets nothing through.
        with pytest.raises(errors.RemoteError, match="403"):
            host.fetch(url, DIGEST)
        (login,) = logins.read_text().splitlines()
        assert base64.b64decode(login.removeprefix("Basic ")) == b"me:secret"

    @pytest.mark.parametrize("given", [None, Proxy(http_proxy="http://192.0.2.9:1")])
    def test_an_applications_file_without_a_proxy_for_https(
        self, session, server, given
    ):
        host = ApplicationHost(session, "https://192.0.2.4:6443", 0, given)
        assert host.fetch(f"https://{server}/chart.tgz", DIGEST) == CHART

    def test_nothing_is_left_on_the_node(self, session, server, sshd):
        before = sorted(sshd.home.rglob("*"))
        downloads.fetch(session, f"https://{server}/chart.tgz", DIGEST, {})
        assert sorted(sshd.home.rglob("*")) == before


@pytest.mark.parametrize("shell", [["sh"], ["bash", "--posix"], ["dash"]], ids=str)
def test_shells_count_the_limit_in_the_same_blocks(shell, tmp_path):
    if not shutil.which(shell[0]):
        pytest.skip(f"no {shell[0]}")
    # The command after "exec" is curl; here it is one that writes on.
    script = downloads._LIMITED.replace("curl --config - --output", "cp /dev/zero")
    done = subprocess.run(
        [*shell, "-c", script, "sh", "4", str(tmp_path / "file")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert (tmp_path / "file").stat().st_size == 4 * 512


def test_every_curl_takes_its_url_as_it_is():
    root = Path(tacker_k8s_mgmt.__file__).parent
    users = [
        path
        for path in root.rglob("*.py")
        if re.search(r"curl\b.*--config", path.read_text())
    ]
    assert {path.name for path in users} >= {"host.py", "server.py"}
    assert not [path for path in users if "globoff" not in path.read_text()]


def test_server_without_a_certificate_of_an_authority(session, server):
    assert "certificate" in refusal(session, f"https://{server}/chart.tgz")
