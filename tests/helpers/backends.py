# SPDX-License-Identifier: Apache-2.0
"""What stands behind the load balancer: API servers and CNFs, on loopback."""

import contextlib
import datetime
import http.server
import ipaddress
import secrets
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def free_ports(count: int) -> list[int]:
    """Ports that are unused and that no outgoing connection will get."""
    given = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    candidates = [*range(10000, int(given[0])), *range(int(given[1]) + 1, 65536)]
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            port = secrets.choice(candidates or range(10000, 65536))
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                ports.append(port)
        return ports


@contextlib.contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


class ApiServer(http.server.ThreadingHTTPServer):
    """A control plane's API server: TLS, /readyz, and its name for the rest."""

    daemon_threads = True

    def __init__(self, name: str, readyz: int, certificate: Path) -> None:
        self.name, self.readyz = name, readyz
        super().__init__(("127.0.0.1", 0), ApiHandler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    def handle_error(self, request: object, client_address: object) -> None:
        """A check that hangs up is no news."""


class ApiHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiServer

    def do_GET(self) -> None:
        ready = self.path == "/readyz"
        body = self.server.name.encode()
        self.send_response(self.server.readyz if ready else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Echo(socketserver.StreamRequestHandler):
    """A CNF behind a node port: sends its worker's name, then echoes lines.

    It hangs up at the line "bye", as a worker's connections do when its VM goes.
    """

    def handle(self) -> None:
        worker = self.request.getsockname()[0]
        for line in self.rfile:
            if line == b"bye\n":
                return
            self.wfile.write(f"{worker} ".encode() + line)


class Worker(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def make_certificate(path: Path, address: str = "127.0.0.1") -> None:
    """Write certificate and key of a server that is reached at an address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
    reached = x509.IPAddress(ipaddress.ip_address(address))
    now = datetime.datetime.now(datetime.timezone.utc)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([reached]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
