# SPDX-License-Identifier: Apache-2.0
"""A worker that echoes datagrams, and a client, as programs of network namespaces.

``worker ADDRESS PORT CHECK_PORT`` answers a datagram with its address, the client's
port and the datagram; at CHECK_PORT, GET /healthz is answered with 200. ``client
ADDRESS PORT LIMIT`` sends each line of standard input from one socket, and prints the
answer, or an empty line where none comes in LIMIT seconds.
"""

import http.server
import socket
import sys
import threading


class _Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _worker(address: str, port: str, check_port: str) -> None:
    class Server(http.server.ThreadingHTTPServer):
        address_family = _family(address)

    health = Server((address, int(check_port)), _Health)
    threading.Thread(target=health.serve_forever, daemon=True).start()
    with socket.socket(_family(address), socket.SOCK_DGRAM) as echo:
        echo.bind((address, int(port)))
        print("ready", flush=True)
        while True:
            text, client = echo.recvfrom(1500)
            echo.sendto(f"{address} {client[1]} ".encode() + text, client)


def _client(address: str, port: str, limit: str) -> None:
    with socket.socket(_family(address), socket.SOCK_DGRAM) as connection:
        connection.settimeout(float(limit))
        connection.connect((address, int(port)))
        for line in sys.stdin:
            try:
                connection.send(line.strip().encode())
                answer = connection.recv(1500).decode()
            except OSError:
                answer = ""
            print(answer, flush=True)


if __name__ == "__main__":
    {"worker": _worker, "client": _client}[sys.argv[1]](*sys.argv[2:])
