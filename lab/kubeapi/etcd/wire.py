# SPDX-License-Identifier: Apache-2.0
"""How members, API servers and etcdctl talk: JSON over HTTPS, with certificates."""

import http.client
import json
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .document import Peer
from .errors import EtcdError

Message = dict[str, Any]
Answering = Callable[[str, Message], Any]

_CONNECT_LIMIT, _IDLE_LIMIT = 1.0, 300.0  # seconds
_HANDSHAKE_LIMIT = 5.0


@dataclass(frozen=True)
class Files:
    """PEM files; without a certificate all of it is plain HTTP, for tests."""

    ca: str = ""
    certificate: str = ""
    key: str = ""

    def server(self) -> ssl.SSLContext | None:
        """For clients that need a certificate of the CA."""
        if not self.certificate:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.ca)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self) -> ssl.SSLContext | None:
        """For servers whose certificate is of the CA."""
        if not self.certificate:
            return None
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Connections:
    """Connections that stay open: one of each thread to each server."""

    def __init__(self, files: Files, limit: float) -> None:
        self._context = files.client()
        self._limit = limit
        self._open = threading.local()

    def post(self, url: str, path: str, message: Message) -> Any:
        """What the server answers.

        :raises OSError: it does not answer, or not as it should.
        :raises EtcdError: it refuses.
        """
        try:
            status, answer = self._exchange(url, path, json.dumps(message).encode())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.forget(url)
            raise OSError(str(error) or repr(error)) from error
        if status != http.HTTPStatus.OK:
            # A member that was stopped may be back, on another connection.
            self.forget(url)
            raise EtcdError(
                answer["error"], retryable=answer["retryable"], leader=answer["leader"]
            )
        return answer

    def _exchange(self, url: str, path: str, body: bytes) -> tuple[int, Any]:
        connection = self._connection(url)
        try:
            connection.request("POST", path, body)
            answer = connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # It was kept open for too long; try a new one.
            self.forget(url)
            connection = self._connection(url)
            connection.request("POST", path, body)
            answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def _connection(self, url: str) -> http.client.HTTPConnection:
        kept: dict[str, http.client.HTTPConnection] = self._open.__dict__
        if url not in kept:
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname or "", parts.port
            plain = socket.create_connection((host, port or 0), _CONNECT_LIMIT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(self._limit)
            connection = http.client.HTTPConnection(host, port, timeout=self._limit)
            connection.sock = plain
            if self._context:
                connection.sock = self._context.wrap_socket(plain, server_hostname=host)
            kept[url] = connection
        return kept[url]

    def forget(self, url: str) -> None:
        """Use another connection with that server next time."""
        connection = self._open.__dict__.pop(url, None)
        if connection:
            connection.close()


class PeerTransport:
    """Messages between members."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def send(self, peer: Peer, path: str, message: Message) -> Message:
        """:raises OSError: it did not answer, or refused."""
        try:
            return dict(self._connections.post(peer.peer_url, path, message))
        except EtcdError as error:
            raise OSError(str(error)) from error


class Client:
    """Sends requests to the first member that answers, and then to the leader.

    :param endpoints: URLs of members.
    :param limit: seconds for one request to one member.
    """

    def __init__(self, endpoints: Sequence[str], files: Files, limit: float) -> None:
        self.endpoints = list(endpoints)
        self._connections = Connections(files, limit)

    def ask(self, path: str, message: Message | None = None) -> Any:
        """The answer of the cluster.

        :raises EtcdError: it refuses, or no member can do it.
        """
        waiting, tried = list(self.endpoints), set[str]()
        problem = EtcdError("context deadline exceeded", retryable=True)
        while waiting:
            url = waiting.pop(0)
            if url in tried:
                continue
            tried.add(url)
            try:
                answer = self._connections.post(url, path, message or {})
            except OSError:
                continue
            except EtcdError as error:
                if not error.retryable:
                    raise
                problem = error
                if error.leader:
                    waiting.insert(0, error.leader)
                continue
            # The one that could do it is asked first from now on.
            others = [endpoint for endpoint in self.endpoints if endpoint != url]
            self.endpoints = [url, *others]
            return answer
        raise problem

    def ask_one(self, url: str, path: str) -> Any:
        """The answer of this member alone.

        :raises OSError, EtcdError: there is none.
        """
        return self._connections.post(url, path, {})


class Listener(ThreadingHTTPServer):
    """One address at which members and clients are answered."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, host: str, port: int, files: Files, answering: Answering
    ) -> None:
        self.answering = answering
        self._context = files.server()
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context:
            request.settimeout(_HANDSHAKE_LIMIT)
            try:
                request = self._context.wrap_socket(request, server_side=True)
            except OSError:
                return
        _Handler(request, client_address, self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that end early are everyday life."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_LIMIT
    server: Listener

    def log_message(self, format: str, *args: Any) -> None:
        """Every heartbeat is a request."""

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        message = json.loads(self.rfile.read(length) or b"{}")
        try:
            status, answer = 200, self.server.answering(self.path, message)
        except EtcdError as error:
            status = 503 if error.retryable else 409
            answer = {
                "error": str(error),
                "retryable": error.retryable,
                "leader": error.leader,
            }
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
