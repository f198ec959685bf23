# SPDX-License-Identifier: Apache-2.0
"""An HTTPS server with a chart, or a proxy that lets nobody through: a program.

A process of its own: where an older Tacker has patched the modules of this one
(eventlet), a server's threads would wait for each other. It prints its port.
"""

import argparse
import contextlib
import http.server
import ssl
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

CHART = b"a chart"
_WAIT = 10


class Files(http.server.BaseHTTPRequestHandler):
    """Serves the chart; ``/moved.tgz?to=URL`` leads there."""

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/moved.tgz":
            (to,) = urllib.parse.parse_qs(url.query)["to"]
            self.send_response(302)
            self.send_header("Location", to)
            self.end_headers()
        elif url.path in ("/chart.tgz", "/chart{1,2}[1-3].tgz"):
            self.send_response(200)
            self.send_header("Content-Length", str(len(CHART)))
            self.end_headers()
            self.wfile.write(CHART)
        elif url.path == "/endless.tgz":
            # Without a length, which curl would refuse at once.
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bytes(100))
        elif url.path == "/circle.tgz":
            self.send_response(302)
            self.send_header("Location", self.path)
            self.end_headers()
        elif url.path == "/slow.tgz":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(2 * _WAIT):
                    self.wfile.write(bytes(1))
                    time.sleep(0.5)
        elif url.path == "/large.tgz":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(64):
                    self.wfile.write(bytes(1024 * 1024))
        else:
            self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


class Proxy(http.server.BaseHTTPRequestHandler):
    """Writes down the logins that it is given.

    :cvar logins: file.
    """

    logins: Path

    def do_CONNECT(self) -> None:
        with self.logins.open("a") as file:
            print(self.headers["Proxy-Authorization"], file=file)
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextlib.contextmanager
def running(*options: str) -> Iterator[str]:
    """Serve as long as the block runs; the address."""
    argv = [sys.executable, __file__, *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
            process.wait(_WAIT)


def main() -> None:
    """Serve until the end of the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate", nargs=2)
    parser.add_argument("--logins", type=Path)
    args = parser.parse_args()
    handler: type[http.server.BaseHTTPRequestHandler] = Files
    if args.logins:
        handler, Proxy.logins = Proxy, args.logins
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if args.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*args.certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
