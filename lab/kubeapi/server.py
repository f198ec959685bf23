# SPDX-License-Identifier: Apache-2.0
"""The HTTP server; one of several passes requests on to the leader."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
import traceback
import urllib.parse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from . import access, custom, discovery, verbs, watch
from .access import ANONYMOUS, MASTERS, Identity
from .cluster import Cluster
from .etcd import Etcd
from .replica import Replica, unavailable
from .resources import TOO_MANY, ApiError, bad_request, refused, unsupported_media_type
from .settings import Listener, Replication, Settings, tls_context
from .store import StateFile

PROXY_USER = "front-proxy-client"
NOT_SERVING = "X-Not-Serving"
_PASSED_ON = ("Accept", "Authorization", "Content-Type", "Host", "User-Agent")
_CONNECT_LIMIT, _ANSWER_LIMIT = 2.0, 2000.0  # seconds; a watch may be silent for long


class NotServing(Exception):
    """That server did not begin with the request; another may."""


def as_headers(identity: Identity) -> list[tuple[str, str]]:
    """Headers that pass the user on to the other server."""
    groups = [("X-Remote-Group", group) for group in sorted(identity.groups)]
    return [("X-Remote-User", identity.user), *groups]


def identity_in(headers: Message) -> Identity | None:
    """The user in the headers of a request of the front proxy."""
    user = headers.get("X-Remote-User")
    groups = frozenset(headers.get_all("X-Remote-Group") or ())
    return Identity(user, groups) if user else None


def context(ca: str, certificate: str, key: str) -> ssl.SSLContext:
    """For connections to the other servers, as the front proxy."""
    made = ssl.create_default_context(cafile=ca)
    made.load_cert_chain(certificate, key)
    return made


def send(
    url: str,
    tls: ssl.SSLContext | None,
    method: str,
    path: str,
    headers: Message,
    more: Iterable[tuple[str, str]],
    body: bytes,
) -> http.client.HTTPResponse:
    """The answer of the other server, its head read.

    :raises NotServing: it was not asked, or does not serve.
    :raises ApiError: 503, it broke off.
    """
    parts = urllib.parse.urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if tls:
        connection = http.client.HTTPSConnection(
            host, port, timeout=_CONNECT_LIMIT, context=tls
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_CONNECT_LIMIT)
    try:
        connection.connect()
    except OSError as error:
        raise NotServing(str(error)) from error
    connection.sock.settimeout(_ANSWER_LIMIT)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        passed_on = [(name, headers[name]) for name in _PASSED_ON if name in headers]
        for name, value in (*passed_on, *more, ("Content-Length", str(len(body)))):
            connection.putheader(name, value)
        connection.putheader("Connection", "close")
        connection.endheaders(body)
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        text = f"the API server at {url} broke off: {error!r}"
        raise ApiError(503, "ServiceUnavailable", text) from error
    if answer.headers.get(NOT_SERVING):
        connection.close()
        raise NotServing(url)
    return answer


_ASKING_ABOUT_ONESELF = ("selfsubjectaccessreviews",)
_HANDSHAKE_LIMIT, _IDLE_LIMIT = 10.0, 300.0  # seconds
_STOP_LOOK_UP = 0.05
_RETRIES, _RETRY_PAUSE = 40, 0.2  # of handing a request on
_ETCD_LIMIT = 6.0  # seconds for one member
_BODIES = ("", "application/json", "application/yaml")
_NOT_A_BODY = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json, application/yaml, application/vnd.kubernetes.protobuf"
)
_GONE = (BrokenPipeError, ConnectionResetError, ssl.SSLError, TimeoutError)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_LIMIT
    server: "Server"

    def log_message(self, format: str, *args: Any) -> None:
        if self.server.listener.verbose:
            super().log_message(format, *args)

    def _handle(self) -> None:
        raw = self._read()
        self._warnings: tuple[str, ...] = ()
        try:
            self._refuse(self.server.listener.refused())
            self._answer(raw)
        except ApiError as error:
            self._send(error.code, error.status)
        except NotServing:
            self._send(503, unavailable("not serving").status, not_serving=True)
        except _GONE:
            self.close_connection = True
        except Exception as error:  # a bug must reach the client, and the log
            traceback.print_exc()
            text = f"the stand-in failed: {error!r}"
            self._send(500, ApiError(500, "InternalError", text).status)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _send(
        self, code: int, body: Any, content_type: str = "", not_serving: bool = False
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if not content_type:
            is_text = isinstance(body, bytes)
            content_type = discovery.TEXT if is_text else "application/json"
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        if code == TOO_MANY and isinstance(body, bytes):
            self.send_header("Retry-After", "1")
        if not_serving:
            self.send_header(NOT_SERVING, "true")
        for text in self._warnings:
            self.send_header("Warning", f'299 - "{text}"')
        self.end_headers()
        self.wfile.write(data)

    def _read(self) -> bytes:
        """The body of the request; ``kubectl create --raw`` sends it in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        raw = b""
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            raw += self.rfile.read(length)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return raw

    def _refuse(self, status: int) -> None:
        """:raises ApiError: it serves nothing, or (429) nothing but its health."""
        is_health = self.path.strip("/").startswith(discovery.HEALTH)
        if status and not (is_health and status == TOO_MANY):
            raise refused(status)

    def _answer(self, raw: bytes) -> None:
        url = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(p) for p in url.path.strip("/").split("/")]
        replica = self.server.replica
        if parts[0] in discovery.HEALTH:
            query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
            has_etcd = replica is None or replica.is_ready()
            starting = time.monotonic() < self.server.starting_until
            self._send(*discovery.health(parts, "verbose" in query, has_etcd, starting))
        elif replica and parts == ["version"]:
            # Its own, also when another one serves: an upgrade goes server by server.
            self._send(200, *discovery.answer(parts, self.server.version, ""))
        elif replica:
            self._hand_on_or_serve(replica, parts, url, raw)
        else:
            self._serve(self.server.cluster, parts, url, raw)

    def _hand_on_or_serve(
        self, replica: Replica, parts: list[str], url: Any, raw: bytes
    ) -> None:
        came_from_another = self._certificate_user() == PROXY_USER
        for _ in range(_RETRIES):
            place = replica.place()
            if isinstance(place, Cluster):
                self._serve(place, parts, url, raw)
                return
            if came_from_another:
                raise NotServing
            try:
                self._hand_on(place, raw)
            except NotServing:
                time.sleep(_RETRY_PAUSE)
            else:
                return
        raise unavailable("no API server serves")

    def _hand_on(self, url: str, raw: bytes) -> None:
        known = self._certificate_user() and not self.headers.get("Authorization")
        more = as_headers(self._by_certificate()) if known else []
        answer = send(
            *(url, self.server.proxy_tls, self.command, self.path),
            *(self.headers, more, raw),
        )
        with contextlib.closing(answer):
            self.send_response(answer.status)
            kind = answer.headers.get("Content-Type", "application/json")
            self.send_header("Content-Type", kind)
            for text in answer.headers.get_all("Warning") or ():
                self.send_header("Warning", text)
            length = answer.headers.get("Content-Length")
            if length is not None:
                self.send_header("Content-Length", length)
                self.end_headers()
                self.wfile.write(answer.read())
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while chunk := answer.read1():
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")

    def _serve(self, cluster: Cluster, parts: list[str], url: Any, raw: bytes) -> None:
        self._cluster = cluster
        identity = self._identity()
        if verbs.is_resource_path(parts):
            pairs = urllib.parse.parse_qs(url.query, keep_blank_values=True)
            query = {key: values[-1] for key, values in pairs.items()}
            self._answer_resource(parts, query, identity, raw)
            return
        if identity is ANONYMOUS and not discovery.is_open(parts):
            text = f'forbidden: User "{identity.user}" cannot get path "{url.path}"'
            raise ApiError(403, "Forbidden", text)
        version = cluster.settings.version
        host = self.headers.get("Host", "")
        kinds = cluster.store.kinds
        self._send(200, *discovery.answer(parts, version, host, kinds))

    def _answer_resource(
        self, parts: list[str], query: dict[str, str], identity: Identity, raw: bytes
    ) -> None:
        cluster = self._cluster
        target = verbs.parse_path(cluster.store.kinds, parts)
        wanted = verbs.access_of(target, self.command, query)
        accept = self.headers.get("Accept") or ""
        request = verbs.Request(
            target=target,
            method=self.command,
            query=query,
            identity=identity,
            content_type=(self.headers.get("Content-Type") or "").split(";")[0],
            wants_table=self.command == "GET" and "as=Table" in accept,
        )
        with cluster.store.lock:
            if target.resource.plural not in _ASKING_ABOUT_ONESELF:
                access.check(cluster.store, identity, wanted)
            if wanted.verb != "watch":
                request = replace(request, body=self._body(request, raw))
                self._warnings = custom.warnings(
                    cluster.store, target.resource, target.version
                )
                reply = verbs.serve(cluster, request)
        if wanted.verb == "watch":
            self._stream(request)
            return
        if self.server.replica and self.command != "GET":
            self.server.replica.commit(cluster)
        self._send(*reply)

    def _body(self, request: verbs.Request, raw: bytes) -> Any:
        if "protobuf" in request.content_type and raw:
            return discovery.decode(raw)
        if raw and request.method != "PATCH" and request.content_type not in _BODIES:
            raise unsupported_media_type(_NOT_A_BODY)
        try:
            return json.loads(raw or b"{}")
        except ValueError as error:
            kind = request.target.resource.kind
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind}): "
                f"couldn't get version/kind; json parse error: {error}"
            ) from error

    def _stream(self, request: verbs.Request) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in watch.stream(self._cluster, request):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    def _identity(self) -> Identity:
        """:raises ApiError: 401 for credentials that are not good."""
        header = self.headers.get("Authorization") or ""
        token = header.removeprefix("Bearer ").strip()
        if token in self.server.listener.admin_tokens:
            return Identity("admin", frozenset({MASTERS, "system:authenticated"}))
        if token:
            user = self._cluster.tokens.user_of(token)
            if not user:
                raise ApiError(401, "Unauthorized", "Unauthorized")
            return access.service_account_identity(user)
        by_certificate = self._by_certificate()
        if self.server.replica and by_certificate.user == PROXY_USER:
            return identity_in(self.headers) or ANONYMOUS
        return by_certificate

    def _by_certificate(self) -> Identity:
        if isinstance(self.connection, ssl.SSLSocket):
            certificate = self.connection.getpeercert() or {}
            if certificate:
                return access.certificate_identity(certificate)
        return ANONYMOUS

    def _certificate_user(self) -> str:
        """ "" for a client without one."""
        identity = self._by_certificate()
        return "" if identity is ANONYMOUS else identity.user


class Server(ThreadingHTTPServer):
    """A thread per connection; the TLS handshake happens in that thread."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, listener: Listener, version: str) -> None:
        self.listener = listener
        self.version = version
        self.cluster: Cluster
        self.replica: Replica | None = None
        self.starting_until = 0.0  # by the monotonic clock
        self.proxy_tls: ssl.SSLContext | None = None
        self._tls = tls_context(listener) if listener.certificate else None
        if ":" in listener.host:
            self.address_family = socket.AF_INET6
        super().__init__((listener.host, listener.port), Handler)

    @property
    def port(self) -> int:
        return self.server_address[1]

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls:
            request.settimeout(_HANDSHAKE_LIMIT)
            try:
                request = self._tls.wrap_socket(request, server_side=True)
            except OSError:  # a health check that only connects, or a scanner
                return
        Handler(request, client_address, self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that end early are everyday life."""


def start(
    listener: Listener,
    settings: Settings | None = None,
    state: Path | None = None,
    hollow_nodes: Sequence[str] = (),
    replication: Replication | None = None,
) -> Server:
    """Start a cluster and serve it in threads; ``server.port`` is its port.

    :param state: file to keep the cluster in.
    :param replication: keep it in etcd instead, and serve in turn with others.
    :raises OSError: if the address is taken or a file cannot be read.
    """
    settings = settings or Settings()
    ca = listener.ca or listener.certificate
    if ca and not settings.ca_certificate:
        settings = replace(settings, ca_certificate=Path(ca).read_text())
    server = Server(listener, settings.version)
    server.starting_until = time.monotonic() + settings.ready_after
    if replication:
        server.replica = _replica(server, replication, settings)
        server.replica.start()
    else:
        keeper = StateFile(state) if state else None
        server.cluster = Cluster(settings, keeper, hollow_nodes)
        server.cluster.start()
    serving = {"poll_interval": _STOP_LOOK_UP}
    threading.Thread(target=server.serve_forever, kwargs=serving, daemon=True).start()
    return server


def _replica(server: Server, wanted: Replication, settings: Settings) -> Replica:
    certificate, key = wanted.proxy
    if certificate:
        ca = server.listener.ca
        server.proxy_tls = context(ca, certificate, key)
    etcd = Etcd(wanted.endpoints, wanted.etcd, _ETCD_LIMIT)
    return Replica(wanted.url, etcd, lambda keeper: Cluster(settings, keeper))


def stop(server: Server) -> None:
    """Stop serving, end the controllers, keep the state."""
    server.shutdown()
    server.server_close()
    if server.replica:
        server.replica.stop()
    else:
        server.cluster.stop()
