# SPDX-License-Identifier: Apache-2.0
"""What the Ansible server reaches: gateways by its routes, mirrors by the real curl."""

import base64
import socket
from http.server import BaseHTTPRequestHandler

import pytest

from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.ansible.server import Target
from tests.helpers.openstack_cloud import served
from tests.helpers.samples import parsed

SECRET = "m1rror-s3cret"
LOGIN = f"bob:{SECRET}"


class Web:
    """An HTTP server that notes what it was asked for.

    :ivar status: of the next answers.
    """

    def __init__(self):
        self.status = 200
        self.asked = []
        self.url = self.place = ""

    def handler(self):
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                web.asked.append((self.path, dict(self.headers)))
                self.send_response(web.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                """Nothing goes to the test's output."""

        return Handler


@pytest.fixture
def web():
    made = Web()
    with served(made.handler()) as made.url:
        made.place = made.url.removeprefix("http://")
        yield made


class TestTargets:
    def urls(self, **values):
        return [target.url for target in server.targets(parsed(values))]

    def test_none(self):
        assert self.urls() == []

    def test_mirrors_and_registries(self):
        cluster = {
            "offline": {
                "files_repo": "http://files.example.org/",
                "registry_host": "images.example.org/k8s",
            },
            "registries": [
                {
                    "prefix": "docker.io",
                    "mirrors": ["https://m1.example.org", "http://m2.example.org"],
                    "skip_tls_verify": True,
                },
                {"prefix": "own.example.org:5000"},
            ],
        }
        found = list(server.targets(parsed({"cluster": cluster})))
        assert found == [
            Target("http://files.example.org"),
            Target("https://images.example.org/v2/", True),
            Target("https://m1.example.org/v2/", True, verifies=False),
            Target("http://m2.example.org/v2/", True, verifies=False),
            Target("https://own.example.org:5000/v2/", True),
        ]

    def test_a_registry_host_with_settings_of_its_own_is_asked_as_they_say(self):
        host = "own.example.org:5000"
        registry = {"prefix": host, "mirrors": [f"http://{host}"]}
        cluster = {"offline": {"registry_host": host}, "registries": [registry]}
        assert self.urls(cluster=cluster) == [f"http://{host}/v2/"]

    def test_in_variables_and_as_the_kubeadm_drivers_have_them(self):
        variables = {
            "files_repo": "http://files.example.org",
            "registry_host": "images.example.org",
        }
        private = [{"connection_type": "0", "server": "old.example.org"}]
        assert self.urls(
            kubespray_vars=variables, private_registry_connection_info=private
        ) == [
            "http://files.example.org",
            "https://images.example.org/v2/",
            "http://old.example.org/v2/",
        ]

    def test_a_private_registry_whose_name_only_the_nodes_know(self):
        private = {
            "connection_type": 1,
            "server": "r.example.org:5000",
            "certificate_path": "ca.crt",
            "hosts_string": "fd00::4 r.example.org other",
        }
        params = parsed({"private_registry_connection_info": [private]})
        (target,) = server.targets(params)
        assert target == Target(
            "https://r.example.org:5000/v2/",
            True,
            verifies=False,
            known_as=(("r.example.org", "fd00::4"),),
        )
        lines = list(server._config(params, target))
        assert 'resolve = "r.example.org:5000:[fd00::4]"' in lines


class TestMirror:
    @pytest.mark.parametrize(
        ("status", "is_registry", "text"),
        [
            (200, False, ""),
            (404, False, ""),
            (401, True, ""),
            (404, True, "is no registry of images (HTTP 404)"),
            (503, False, "HTTP 503. Correct the address or the proxy"),
            (407, False, "HTTP 407"),
        ],
    )
    def test_answers(self, session, web, status, is_registry, text):
        web.status = status
        why = server.mirror(session, parsed({}), Target(f"{web.url}/v2/", is_registry))
        assert (text in why) if text else why == ""
        assert [path for path, _ in web.asked] == ["/v2/"]

    def test_a_login_is_sent_and_shown_nowhere(self, session, sshd, web):
        target = Target(f"http://{LOGIN}@{web.place}/files")
        assert SECRET not in target.shown
        web.status = 500
        why = server.mirror(session, parsed({}), target)
        ((_, headers),) = web.asked
        sent = headers["Authorization"].split()[1]
        assert base64.b64decode(sent).decode() == LOGIN
        assert SECRET not in why
        assert not any(SECRET in command for command in sshd.commands)

    def test_through_the_nodes_proxy(self, session, sshd, web):
        proxy = {"http_proxy": f"http://{LOGIN}@{web.place}"}
        params = parsed({"proxy": proxy})
        target = Target("http://mirror.example.org/files")
        assert server.mirror(session, params, target) == ""
        ((path, headers),) = web.asked
        assert path == "http://mirror.example.org/files"
        assert "Proxy-Authorization" in headers
        assert not any(SECRET in command for command in sshd.commands)

    def test_around_the_proxy(self, session, web):
        proxy = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
        assert server.mirror(session, parsed({"proxy": proxy}), Target(web.url)) == ""

    def test_the_servers_own_proxy_is_not_the_nodes(self, session, sshd, web):
        sshd.variables = {"http_proxy": "http://127.0.0.1:9"}
        assert server.mirror(session, parsed({}), Target(web.url)) == ""

    def test_nobody_listens(self, session):
        why = server.mirror(session, parsed({}), Target("http://127.0.0.1:9/"))
        assert "127.0.0.1 gets no answer from http://127.0.0.1:9/" in why
        assert "connect" in why

    def test_brackets_and_braces_are_one_url(self, session, web):
        target = Target(f"{web.url}/{{a,b}}[1-3]")
        assert server.mirror(session, parsed({}), target) == ""
        assert [path for path, _ in web.asked] == ["/{a,b}[1-3]"]

    def test_a_server_without_an_answer(self, session, monkeypatch):
        monkeypatch.setattr(server, "_ANSWER", 1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            target = Target(f"http://127.0.0.1:{silent.getsockname()[1]}/")
            why = server.mirror(session, parsed({}), target)
        assert "timed out after" in why

    def test_a_reason_with_a_secret(self, session, sshd, monkeypatch):
        sshd.program("curl", f"echo 'curl: (5) no proxy {SECRET}' >&2; exit 5")
        monkeypatch.setattr(session, "redact", lambda text: text.replace(SECRET, "***"))
        why = server.mirror(session, parsed({}), Target("http://127.0.0.1:9"))
        assert "no proxy ***. Correct" in why

    @pytest.mark.parametrize(
        "url", ["http://[::1", "http://h:port/", 'http://h/\nurl = "http://i/"', "//[/"]
    )
    def test_what_is_no_url_is_a_problem(self, session, sshd, url):
        why = server.mirror(session, parsed({}), Target(url))
        assert why.startswith("it must be a URL")
        assert "curl" not in " ".join(sshd.commands)

    @pytest.mark.parametrize(
        "url", ["file:///etc/hostname", "gopher://127.0.0.1:9/_x", "dict://127.0.0.1/x"]
    )
    def test_no_file_of_the_server_is_read_and_no_other_protocol_spoken(
        self, session, url
    ):
        why = server.mirror(session, parsed({}), Target(url))
        assert "not supported or disabled" in why

    def test_without_curl(self, session, sshd):
        sshd.program("curl", "exit 127\n")
        assert server.mirror(session, parsed({}), Target("http://127.0.0.1:9")) is None

    def test_quotes_in_a_password(self, session, web):
        password = 'a"b\\c'
        quoted = "a%22b%5Cc"
        target = Target(f"http://bob:{quoted}@{web.place}/")
        assert server.mirror(session, parsed({}), target) == ""
        ((_, headers),) = web.asked
        sent = base64.b64decode(headers["Authorization"].split()[1]).decode()
        assert sent == f"bob:{password}"


class TestGateway:
    @pytest.fixture(autouse=True)
    def programs(self, sshd):
        sshd.program("ip", '[ "$*" = "route get 192.0.2.1" ] || exit 2\n')
        # 2 for what ping does not know.
        sshd.program(
            "ping",
            'while getopts c:W: option; do [ "$OPTARG" -gt 0 ] || exit 2; done\n'
            'shift $((OPTIND - 1)); [ "$*" = 192.0.2.1 ] || exit 2\n',
        )

    def test_reached(self, session):
        assert server.gateway(session, "192.0.2.1") == ("", "")

    def test_no_route(self, session):
        why, remark = server.gateway(session, "198.51.100.1")
        assert "127.0.0.1 has no route to 198.51.100.1: add one" in why
        assert remark == ""

    def test_no_answer_is_a_remark(self, session, sshd):
        sshd.program("ping", "exit 1\n")
        why, remark = server.gateway(session, "192.0.2.1")
        assert why == ""
        assert "192.0.2.1 does not answer 127.0.0.1's ping" in remark

    @pytest.mark.parametrize("absent", ["ip", "ping"])
    def test_without_a_program(self, session, sshd, absent):
        sshd.program(absent, "exit 127\n")
        why, remark = server.gateway(session, "192.0.2.1")
        assert why == ""
        assert ("no program ip" in remark) == (absent == "ip")
