# SPDX-License-Identifier: Apache-2.0
"""Keystone and Heat as far as a client needs them to list a stack's resources.

A server may also accept connections and answer nothing, as one behind a broken network
does.
"""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tacker_k8s_mgmt.topology.stack_resources import StackResource

_BY_ONE_WORD = re.compile(r"/heat/stacks/[^/?]+((/resources|/files|/template)?(\?.*)?)")


@contextmanager
def silent() -> Iterator[str]:
    """The URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=32) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


class OpenStack:
    """One server for both.

    :ivar heat: Heat's URL in the catalogue; by default this server's.
    :ivar statuses: of Heat's next answers; then 200.
    :ivar asked: methods and paths, in order.
    :ivar resources: what Heat lists of any stack.
    :ivar stack: name and id of the only stack.
    """

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.asked: list[tuple[str, str]] = []
        self.resources: list[StackResource] = []
        self.stack = "name/id"
        made = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                made.asked.append(("POST", self.path))
                length = int(self.headers["Content-Length"])
                self.rfile.read(length)
                self._reply(201, {"token": made.token()})

            def do_GET(self) -> None:
                made.asked.append(("GET", self.path))
                if self.path.startswith("/v3"):
                    links = [{"rel": "self", "href": made.url}]
                    version = {"id": "v3.14", "status": "stable", "links": links}
                    self._reply(200, {"version": version})
                    return
                status = made.statuses.pop(0) if made.statuses else 200
                if status == 200 and (word := _BY_ONE_WORD.fullmatch(self.path)):
                    # Heat looks up what is a name or an id, and tells both.
                    place = f"{made.heat}/stacks/{made.stack}{word[1]}"
                    self._reply(302, {}, place)
                    return
                self._reply(status, made.body(self.path))

            def _reply(self, status: int, body: object, place: str = "") -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                if place:
                    self.send_header("Location", place)
                self.send_header("X-Subject-Token", "t0ken")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                """Nothing goes to the test's output."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.base}/v3"
        self.heat = f"{self.base}/heat"

    def token(self) -> dict[str, object]:
        """What Keystone says of a token, with the catalogue."""
        endpoint = {"interface": "public", "region": "here", "region_id": "here"}
        return {
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "methods": ["password"],
            "user": {"id": "u", "name": "u", "domain": {"id": "d", "name": "d"}},
            "project": {"id": "p", "name": "p", "domain": {"id": "d", "name": "d"}},
            "roles": [],
            "catalog": [
                {
                    "type": kind,
                    "name": kind,
                    "id": kind,
                    "endpoints": [{**endpoint, "id": kind, "url": url}],
                }
                for kind, url in (("identity", self.url), ("orchestration", self.heat))
            ],
        }

    def body(self, path: str) -> dict[str, object]:
        """Heat's answer; resources are of the type that is a part of their own."""
        parts = urlsplit(path)
        if parts.path.endswith("/resources"):
            (kind,) = parse_qs(parts.query).get("type", ("",))
            found = [self._item(one) for one in self.resources if kind in one.type]
            return {"resources": found}
        if parts.path.endswith(("/files", "/template")):
            return {}
        state = {
            "stack_name": self.stack.partition("/")[0],
            "stack_status": "CREATE_COMPLETE",
            "parameters": {},
        }
        return {"stack": {"links": [], **state}, "stacks": []}

    def _item(self, one: StackResource) -> dict[str, object]:
        def link(rel: str, stack: str) -> dict[str, str]:
            return {"rel": rel, "href": f"{self.heat}/stacks/name-{stack}/{stack}"}

        links = [link("stack", one.stack_id)]
        links += [link("nested", one.nested_stack_id)] if one.nested_stack_id else []
        return {
            "resource_name": one.name,
            "resource_type": one.type,
            "physical_resource_id": one.physical_id,
            "resource_status": one.status,
            "attributes": dict(one.attributes),
            "links": links,
        }

    def heard(self) -> list[str]:
        """The paths that Heat was asked for."""
        return [path for _, path in self.asked if path.startswith("/heat")]

    @contextmanager
    def running(self) -> Iterator["OpenStack"]:
        """Serve until the end of the block."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
