# SPDX-License-Identifier: Apache-2.0
"""Keystone and Barbican, as far as secrets are asked for."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from keystoneauth1 import session
from keystoneauth1.identity import v3

from tacker_k8s_mgmt.request.secrets import Reference

TEXT_ID = "11111111-1111-1111-1111-111111111111"
BYTES_ID = "22222222-2222-2222-2222-222222222222"
BINARY_ID = "33333333-3333-3333-3333-333333333333"
FORBIDDEN_ID = "44444444-4444-4444-4444-444444444444"
EMPTY_ID = "55555555-5555-5555-5555-555555555555"
BROKEN_ID = "66666666-6666-6666-6666-666666666666"
NO_ID = "99999999-9999-9999-9999-999999999999"
PAYLOADS = {
    TEXT_ID: ("text/plain", "pä55-of-the-nodes".encode()),
    BYTES_ID: ("application/octet-stream", b"pa55-of-the-server"),
    BINARY_ID: ("application/octet-stream", b"\xff\xfe\x00"),
    EMPTY_ID: ("text/plain", b""),
}
PASSWORD = "pa55-of-the-vim"


class Cloud(ThreadingHTTPServer):
    """Both, at one address."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked = []
        self.services = {"key-manager": ["RegionOne"]}
        self.silent = threading.Event()
        self.released = threading.Event()

    def catalog(self):
        return [
            {
                "type": kind,
                "endpoints": [
                    {"interface": "public", "region_id": region, "region": region}
                    | {"url": f"{self.url}/{region}"}
                    for region in regions
                ],
            }
            for kind, regions in self.services.items()
        ]


class Handler(BaseHTTPRequestHandler):
    server: Cloud

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"{}", kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        given = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append("token")
        if PASSWORD.encode() not in given:
            return self.answer(401)
        token = {
            "methods": ["password"],
            "user": {"id": "u", "name": "u", "domain": {"id": "d", "name": "d"}},
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "issued_at": "2020-01-01T00:00:00.000000Z",
            "catalog": self.server.catalog(),
        }
        body = json.dumps({"token": token}).encode()
        return self.answer(201, body, X_Subject_Token="token-s3cret")

    def do_GET(self):
        if not self.path.endswith("/payload"):
            # Barbican's own list of versions.
            href = f"{self.server.url}/{self.path.strip('/').split('/')[0]}/v1/"
            links = [{"rel": "self", "href": href}]
            version = {"id": "v1", "status": "CURRENT", "links": links}
            found = {"versions": [version]}
            return self.answer(300, json.dumps(found).encode())
        self.server.asked.append(f"{self.path} {self.headers['Accept']}")
        if self.server.silent.is_set():
            self.server.released.wait(60)
            return None
        secret_id = self.path.split("/")[-2]
        statuses = {FORBIDDEN_ID: 403, BROKEN_ID: 500}
        if secret_id not in PAYLOADS:
            return self.answer(statuses.get(secret_id, 404))
        kind, payload = PAYLOADS[secret_id]
        if self.headers["Accept"] != kind:
            return self.answer(406)
        return self.answer(200, payload, kind)


def login(cloud, password=PASSWORD, region=""):
    auth = v3.Password(
        auth_url=f"{cloud.url}/v3",
        username="u",
        password=password,
        project_name="p",
        user_domain_id="d",
        project_domain_id="d",
    )
    return session.Session(auth=auth), region


def by_id(secret_id):
    # The address of another host: it is not asked.
    return Reference("secret_ref", f"http://192.0.2.1:9311/v1/secrets/{secret_id}")


@contextlib.contextmanager
def running():
    """One that answers until the end."""
    made = Cloud()
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        made.released.set()
        made.shutdown()
        made.server_close()
        thread.join()
