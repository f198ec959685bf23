# SPDX-License-Identifier: Apache-2.0
"""The pages of operations, served to a browser on the same host and always current.

Other users of the host can connect to a port, too. So the address has a secret part,
and a request without it, or by a name of another host, gets nothing.
"""

import hmac
import secrets
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.model.timeline import Timeline
from tacker_k8s_mgmt.tools.render import html

LOOPBACK = "127.0.0.1"
#: Seconds after which a browser reloads a page while an operation is under way.
RELOAD = 5
#: Seconds in which a request has to come.
_REQUEST = 10.0


def timelines(state_path: str) -> dict[str, Timeline]:
    """What was recorded, by the ids of the VNF instances; the latest first."""
    return {
        vnf_id: Timeline(journal.read(journal.path_of(state_path, vnf_id))[0])
        for vnf_id in journal.instances(state_path)
    }


def pages(known: Mapping[str, Timeline], now: float) -> dict[str, str]:
    """The index and a page for each VNF instance, by their file names.

    :param now: seconds since the epoch, for what is under way.
    """
    return {
        html.INDEX: html.render_index(known, now),
        **{
            html.page_name(vnf_id): html.render(vnf_id, timeline, now, html.INDEX)
            for vnf_id, timeline in known.items()
        },
    }


class PageServer(ThreadingHTTPServer):
    """Serves the pages of a state directory on loopback.

    :param port: 0: one that is free.
    :ivar url: the address to open, with its secret part.
    :raises OSError: the port is in use, or not for this user.
    """

    daemon_threads = True

    def __init__(self, state_path: str, port: int) -> None:
        self.state_path = state_path
        self.secret = secrets.token_urlsafe(24)
        super().__init__((LOOPBACK, port), _Handler)
        self.host = f"{LOOPBACK}:{self.server_port}"
        self.url = f"http://{self.host}/{self.secret}/"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _REQUEST

    def do_GET(self) -> None:
        """Answer with a page as it is now."""
        if self.headers.get("Host") not in self._hosts():
            # A page of the internet whose name now leads here.
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        path, _, _ = self.path.partition("?")
        secret = f"/{self.server.secret}/"
        if not hmac.compare_digest(path[: len(secret)].encode(), secret.encode()):
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        known = timelines(self.server.state_path)
        page = pages(known, time.time()).get(path[len(secret) :] or html.INDEX)
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self._send(page, reload=any(map(_is_under_way, known.values())))

    def _hosts(self) -> tuple[str, str]:
        return self.server.host, f"localhost:{self.server.server_port}"

    def _send(self, page: str, *, reload: bool) -> None:
        content = page.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Frame-Options", "DENY")
        if reload:
            self.send_header("Refresh", str(RELOAD))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a request's path has the secret."""


def _is_under_way(timeline: Timeline) -> bool:
    return timeline.last is not None and not timeline.last.final
