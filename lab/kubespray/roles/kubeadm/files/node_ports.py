# SPDX-License-Identifier: Apache-2.0
"""Answers at the node ports of Services, in place of kube-proxy and the pods' programs.

A node port is open on every node as long as the Service has a Ready pod (with
``externalTrafficPolicy: Local`` one on this node). A request of HTTP gets the names of
a pod and of its node; other connections, and datagrams, get back what they send.
Services with the annotation ``kapi.sim/answers: "false"`` are left to other programs.
"""

import contextlib
import itertools
import socketserver
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

Obj = dict[str, Any]
Pod = tuple[str, str]  # names of pod and node

_UNANSWERED = "kapi.sim/answers"
_TYPES = ("NodePort", "LoadBalancer")
_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ")


class NodePorts:
    """The node ports of one node.

    :param node: the name of this one.
    :param address: the only one to listen at; default: all.
    """

    def __init__(self, node: str, address: str = "") -> None:
        self._node, self._address = node, address
        self._pods: dict[str, Obj] = {}
        self._services: dict[str, Obj] = {}
        self._open: dict[tuple[str, str, int], Any] = {}
        self._lock = threading.Lock()

    def pods(self, events: Iterator[Obj]) -> Iterator[Obj]:
        """Follow a watch of all pods, and pass its events on."""
        return self._follow(self._pods, events)

    def services(self, events: Iterator[Obj]) -> Iterator[Obj]:
        """Follow a watch of all Services, and pass its events on."""
        return self._follow(self._services, events)

    def _follow(self, known: dict[str, Obj], events: Iterator[Obj]) -> Iterator[Obj]:
        """Keep what a watch shows that begins with everything and a bookmark."""
        seen: set[str] = set()
        for event in events:
            uid = event["object"].get("metadata", {}).get("uid", "")
            with self._lock:
                if event["type"] == "BOOKMARK":
                    for gone in known.keys() - seen:
                        del known[gone]
                elif event["type"] == "DELETED":
                    known.pop(uid, None)
                elif event["type"] != "ERROR":
                    known[uid] = event["object"]
                    seen.add(uid)
                self._agree()
            yield event

    def _agree(self) -> None:
        """Open and close what has to be."""
        wanted = {
            (uid, port.get("protocol", "TCP"), port["nodePort"])
            for uid, service in self._services.items()
            if _is_answered(service) and self._ready(uid)
            for port in service["spec"].get("ports") or ()
            if port.get("nodePort") and port.get("protocol", "TCP") in _SERVERS
        }
        for key in self._open.keys() - wanted:
            server = self._open.pop(key)
            # Connections that are open stay.
            server.shutdown()
            server.server_close()
        for uid, protocol, port in wanted - self._open.keys():
            kind, handler = _SERVERS[protocol]
            # Another program may have it; the next event tries again.
            with contextlib.suppress(OSError):
                server = kind((self._address, port), handler)
                server.pods, server.count = partial(self._ready, uid), itertools.count()
                threading.Thread(target=server.serve_forever, daemon=True).start()
                self._open[uid, protocol, port] = server

    def _ready(self, uid: str) -> list[Pod]:
        """The pods behind a Service that are Ready and not on their way out."""
        service = self._services.get(uid)
        selector = service["spec"].get("selector") if service else None
        if not service or not selector:
            return []
        local = service["spec"].get("externalTrafficPolicy") == "Local"
        return [
            (pod["metadata"]["name"], pod["spec"].get("nodeName", ""))
            for pod in list(self._pods.values())
            if pod["metadata"]["namespace"] == service["metadata"]["namespace"]
            and selector.items() <= (pod["metadata"].get("labels") or {}).items()
            and _is_ready(pod)
            and (not local or pod["spec"].get("nodeName") == self._node)
        ]


def _is_answered(service: Obj) -> bool:
    annotations = service["metadata"].get("annotations") or {}
    return (
        service["spec"].get("type") in _TYPES
        and annotations.get(_UNANSWERED) != "false"
    )


def _is_ready(pod: Obj) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return not pod["metadata"].get("deletionTimestamp") and any(
        one["type"] == "Ready" and one["status"] == "True" for one in conditions
    )


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    block_on_close = False


class _UdpServer(socketserver.ThreadingUDPServer):
    daemon_threads = True
    block_on_close = False


class _Connection(socketserver.BaseRequestHandler):
    server: Any

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            data = self.request.recv(65536)
            if data.startswith(_METHODS):
                self.request.sendall(self._page(data.startswith(b"HEAD ")))
                return
            while data:
                self.request.sendall(data)
                data = self.request.recv(65536)

    def _page(self, is_head: bool) -> bytes:
        pods = self.server.pods() or [("no pod", "no node")]
        name, node = pods[next(self.server.count) % len(pods)]
        body = f"{name} on {node}\n".encode()
        head = (
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (b"" if is_head else body)


class _Datagram(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data, back = self.request
        back.sendto(data, self.client_address)


_SERVERS: dict[str, tuple[Any, type[socketserver.BaseRequestHandler]]] = {
    "TCP": (_TcpServer, _Connection),
    "UDP": (_UdpServer, _Datagram),
}
