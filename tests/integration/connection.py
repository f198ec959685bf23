# SPDX-License-Identifier: Apache-2.0
"""A flow of datagrams to one worker, through the load balancer."""

import contextlib
import socket
from collections.abc import Iterator

from lab import client
from tests.integration import exposed
from tests.integration.cluster import Cluster, eventually

#: Of what is exposed by hand.
PORT = 8090
NODE_PORT = 30090
UDP_ECHO = f"""
import socket
with socket.socket(type=socket.SOCK_DGRAM) as connection:
    connection.bind(("", {NODE_PORT}))
    while True:
        data, client = connection.recvfrom(100)
        connection.sendto(data, client)
"""


@contextlib.contextmanager
def flow_of_datagrams(cluster: Cluster, server: str) -> Iterator[None]:
    """Go on with one as long as the block runs, and see that it still works then.

    :param server: the worker that answers; it alone does, and is healthy.
    """
    with exposed.answering([server], exposed.KUBELET):
        yield from _flow(cluster, server)
    assert _answering(cluster) is None


def _flow(cluster: Cluster, server: str) -> Iterator[None]:
    line = f"python3 -c '{UDP_ECHO}' >/dev/null 2>&1 & echo $!"
    pid = client.on_host(server, "sh", "-c", line).strip()
    ports = ("--port", str(PORT), "--node-port", str(NODE_PORT))
    cluster.balancer("expose", "echo", *ports, "--protocol", "udp")
    try:
        flow = eventually(lambda: _answering(cluster))
        assert flow is not None
        with flow:
            yield
            flow.send(b"still there?")
            assert flow.recv(100) == b"still there?"
    finally:
        cluster.balancer("unexpose", "echo")
        client.on_host(server, "kill", pid)


def _answering(cluster: Cluster) -> socket.socket | None:
    """A flow through the load balancer that the one worker answers."""
    flow = socket.socket(type=socket.SOCK_DGRAM)
    flow.settimeout(5)
    with contextlib.suppress(OSError):
        flow.connect((cluster.balancer_address(), PORT))
        flow.send(b"hello")
        if flow.recv(100) == b"hello":
            return flow
    flow.close()
    return None
