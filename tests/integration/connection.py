"""A connection to a CNF on one worker, through the load balancer, that stays open."""

import contextlib
import socket
from collections.abc import Iterator

from lab import client
from tests.integration.cluster import Cluster, eventually

PORT = 8080
NODE_PORT = 30080
ECHO = f"""
import socket
listener = socket.create_server(("", {NODE_PORT}))
while True:
    connection = listener.accept()[0]
    while data := connection.recv(100):
        connection.sendall(data)
"""


@contextlib.contextmanager
def held_open(cluster: Cluster, server: str) -> Iterator[None]:
    """Hold it as long as the block runs, and see that it still works then.

    :param server: the worker that answers; it alone does.
    """
    line = f"python3 -c '{ECHO}' >/dev/null 2>&1 & echo $!"
    pid = client.on_host(server, "sh", "-c", line).strip()
    expose = ("--port", str(PORT), "--node-port", str(NODE_PORT))
    cluster.balancer("expose", "echo", *expose)
    try:
        connection = eventually(lambda: _answered(cluster))
        assert connection is not None
        with connection:
            yield
            connection.sendall(b"still there?")
            assert connection.recv(100) == b"still there?"
    finally:
        cluster.balancer("unexpose", "echo")
        client.on_host(server, "kill", pid)


def _answered(cluster: Cluster) -> socket.socket | None:
    """A connection through the load balancer, once somebody answers."""
    with contextlib.suppress(OSError):
        address = cluster.balancer_address()
        connection = socket.create_connection((address, PORT), 5)
        with contextlib.suppress(OSError):
            connection.sendall(b"hello")
            if connection.recv(100) == b"hello":
                return connection
        connection.close()
    return None
