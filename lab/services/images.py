# SPDX-License-Identifier: Apache-2.0
"""Images: a stand-in for Glance that has none.

Tacker's v2 API asks for the images that it made for a VNF, at every grant and at the
end (``sol_refactored/nfvo/local_nfvo.py``); the lab's packages bring none. Run with
``python3 -m lab.services.images``.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lab.services import rest
from lab.services.process import Service
from lab.settings import ADDRESS, PORTS, ROOT, SYSTEM_PYTHON, Settings, url

NAME = "images"
_VERSION = {
    "id": "v2.16",
    "status": "CURRENT",
    "links": [{"rel": "self", "href": f"{url(NAME)}/v2/"}],
}


def service(settings: Settings) -> Service:
    """The API."""
    return Service(
        name=NAME,
        argv=(SYSTEM_PYTHON, "-m", "lab.services.images"),
        ready=lambda _: rest.answers(url(NAME)),
        environment={"PYTHONPATH": str(ROOT)},
        files=(ROOT / "lab" / "services" / "images.py",),
        patience=1.0,
    )


def document(path: str) -> tuple[int, object]:
    """Status and document of a GET; no filter finds images.

    :param path: with its query.
    """
    bare = path.partition("?")[0].rstrip("/")
    if bare in ("", "/versions"):
        return 300, {"versions": [_VERSION]}
    if bare == "/v2":
        return 200, {"version": _VERSION}
    if bare == "/v2/images":
        return 200, {"images": [], "schema": "/v2/schemas/images"}
    return 404, {"message": f"nothing is at {bare}"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        status, content = document(self.path)
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    ThreadingHTTPServer((ADDRESS, PORTS[NAME]), _Handler).serve_forever()
