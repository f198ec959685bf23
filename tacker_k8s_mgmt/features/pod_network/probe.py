# SPDX-License-Identifier: Apache-2.0
"""Measures the pod network from within a pod's network namespace, on the pod's node.

Sent to the node and run there as root, with :func:`main` called at the end. It uses the
standard library of Python 3.6 alone. All probes at work at the same time send UDP
datagrams to each other, and each reports what arrived:

- A datagram is one packet of a known size in one direction, so direction and size of
  what is lost are known. An ICMP echo needs both directions, and sites filter ICMP; TCP
  adapts its segments, and shows a lost size only by a stall.
- ``IP_PMTUDISC_PROBE`` sets DF and sends packets of any size, whatever ICMP errors say.
  The size to try is the MTU with which the pod would begin: that of its interface, or
  of its route (cilium).
- The namespace is the one that has the pod's address. Names of processes, control
  groups and namespaces differ between container engines.
"""

import ctypes
import json
import os
import select
import socket
import sys
import time
from typing import Any

_PORT = 9799
_SMALL = 256  # bytes of an IP packet that fits everywhere
_HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}  # bytes, of IP and UDP
# Of Linux, in no module: level, IP(V6)_MTU_DISCOVER, IP(V6)_MTU.
_OPTIONS = {
    socket.AF_INET: (socket.IPPROTO_IP, 10, 14),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 23, 24),
}
_PROBE = 3  # IP_PMTUDISC_PROBE
_CLONE_NEWNET = 0x40000000
_FAST, _SLOW = 0.1, 0.5  # seconds between two rounds; slow after two seconds
# Seconds after success, in which the others get the last confirmation, if they do not
# say that they have it.
_LINGER = 0.4


def _family(address: str) -> "socket.AddressFamily":
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _bound(address: str) -> socket.socket:
    family = _family(address)
    level, discover, _ = _OPTIONS[family]
    opened = socket.socket(family, socket.SOCK_DGRAM)
    try:
        opened.setsockopt(level, discover, _PROBE)
        opened.bind((address, _PORT))
    except OSError:
        opened.close()
        raise
    return opened


def _enter(addresses: "list[str]", seconds: float) -> "list[socket.socket]":
    """Enter the network namespace with these addresses; return sockets bound there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen = {os.stat("/proc/self/ns/net").st_ino}
        with open("/proc/self/ns/net") as home:
            for number in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{number}/ns/net") as namespace:
                        inode = os.fstat(namespace.fileno()).st_ino
                        if inode not in seen:
                            seen.add(inode)
                            _set_namespace(namespace.fileno())
                            return [_bound(address) for address in addresses]
                except OSError:
                    continue  # it has ended, or has other addresses
            _set_namespace(home.fileno())
        time.sleep(_SLOW)
    sys.exit(f"no process here has the pod's address {', '.join(addresses)}")


def _set_namespace(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class _Path:
    """Both directions between this pod and another one.

    :ivar tried: the pod's MTU on the way to the other.
    :ivar arrived: size of the largest packet from the other.
    :ivar confirmed: size of the largest packet that the other has got from here.
    :ivar expected: ``tried`` of the other.
    :ivar other_is_well: the other needs nothing more from here.
    """

    def __init__(self, opened: socket.socket, own: str, other: str) -> None:
        self._socket, self._own, self._other = opened, own, other
        self.tried = self.arrived = self.confirmed = self.expected = 0
        self.error = ""
        self.other_is_well = False

    def is_well(self) -> bool:
        well = self.tried and self.confirmed >= self.tried
        return bool(well and self.expected and self.arrived >= self.expected)

    def send(self, token: str) -> None:
        """Send small packets and, until one has arrived, those of the full size.

        Those between them lie a power of two above the largest that has arrived, so
        that the largest size that can is found after a few rounds.
        """
        try:
            if not self.tried:
                self.tried = self._mtu()
            sizes = {_SMALL}
            if self.confirmed < self.tried:
                base = max(_SMALL, self.confirmed)
                steps = (base + 2**power for power in range(16))
                sizes |= {self.tried} | {size for size in steps if size < self.tried}
            for size in sorted(sizes):
                self._send(token, size)
            self.error = ""
        except OSError as error:
            self.error = error.strerror or str(error)

    def _mtu(self) -> int:
        family = self._socket.family
        with socket.socket(family, socket.SOCK_DGRAM) as asked:
            asked.connect((self._other, _PORT))
            return asked.getsockopt(_OPTIONS[family][0], _OPTIONS[family][2])

    def _send(self, token: str, size: int) -> None:
        told = [token, self._own, self.tried, self.arrived, 1 if self.is_well() else 0]
        payload = json.dumps(told).encode().ljust(size - _HEADERS[self._socket.family])
        self._socket.sendto(payload, (self._other, _PORT))

    def result(self) -> "dict[str, Any]":
        return {"tried": self.tried, "arrived": self.arrived, "error": self.error}


def _receive(
    sockets: "list[socket.socket]", paths: "dict[str, _Path]", token: str, until: float
) -> None:
    while True:
        left = max(0.0, until - time.monotonic())
        ready = select.select(sockets, [], [], left)[0]
        if not ready:
            return
        for opened in ready:
            try:
                data = opened.recv(65536)
                its_token, other, *sizes = json.loads(data.decode())
                expected, confirmed, well = map(_size, sizes)
            except (OSError, TypeError, ValueError, RecursionError):
                continue  # of others
            if its_token == token and isinstance(other, str) and other in paths:
                path = paths[other]
                size = len(data) + _HEADERS[opened.family]
                path.arrived = max(path.arrived, size)
                path.expected, path.confirmed = expected, confirmed
                path.other_is_well = path.other_is_well or bool(well)


def _size(value: "Any") -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise ValueError("no size of a packet")
    return value


def _exchange(
    sockets: "list[socket.socket]", paths: "dict[str, _Path]", token: str, limit: float
) -> None:
    began = time.monotonic()
    deadline = began + limit
    lingering = False
    while time.monotonic() < deadline:
        for path in paths.values():
            path.send(token)
        if lingering and all(path.other_is_well for path in paths.values()):
            return
        fast = lingering or time.monotonic() < began + 2
        _receive(sockets, paths, token, time.monotonic() + (_FAST if fast else _SLOW))
        if not lingering and all(path.is_well() for path in paths.values()):
            lingering, deadline = True, time.monotonic() + _LINGER


def _connect(address: str, port: int, limit: float) -> str:
    """Connect to a Service; return why that does not work, or ""."""
    deadline = time.monotonic() + limit
    while True:
        try:
            socket.create_connection((address, port), 5).close()
            return ""
        except OSError as error:
            if time.monotonic() >= deadline:
                return error.strerror or str(error)
        time.sleep(_SLOW)


def main(request: "dict[str, Any]") -> None:
    """Print what was measured, as JSON.

    :param request: ``own`` and ``others``, addresses of pods; ``services``, addresses
        and ports to connect to; ``token`` of this run; ``limit`` in seconds for each of
        finding the pod, the exchange and a connection.
    """
    limit = request["limit"]
    sockets = _enter(request["own"], limit)
    paths = {}
    for number, own in enumerate(request["own"]):
        for other in request["others"]:
            if _family(other) is _family(own):
                paths[other] = _Path(sockets[number], own, other)
    if paths:
        _exchange(sockets, paths, request["token"], limit)
    services = {host: _connect(host, port, limit) for host, port in request["services"]}
    results = {other: path.result() for other, path in paths.items()}
    print(json.dumps({"paths": results, "services": services}))
