# SPDX-License-Identifier: Apache-2.0
"""A server's address, its certificate, and the other servers."""

import contextlib
import ssl
from dataclasses import dataclass
from pathlib import Path

from .etcd.wire import Files


@dataclass(frozen=True)
class Listener:
    """Where the server listens and how it proves itself.

    :param certificate: PEM file; without one it speaks plain HTTP.
    :param ca: PEM file of the CA that client certificates must come from.
    :param admin_tokens: bearer tokens of members of ``system:masters``.
    :param refusal: while this file is there, requests are answered with the status in
        it: 429, as by priority and fairness, or 500, as without etcd.
    """

    host: str = "127.0.0.1"
    port: int = 6443
    certificate: str = ""
    key: str = ""
    ca: str = ""
    admin_tokens: frozenset[str] = frozenset()
    verbose: bool = False
    refusal: str = ""

    def refused(self) -> int:
        """The status with which requests are answered now; 0: they are served."""
        with contextlib.suppress(OSError, ValueError):
            return int(Path(self.refusal).read_text()) if self.refusal else 0
        return 0


@dataclass(frozen=True)
class Replication:
    """What makes a server one of several.

    :param url: where the others reach it.
    :param endpoints: of etcd.
    :param proxy: certificate and key with which it hands requests on.
    """

    url: str
    endpoints: tuple[str, ...]
    etcd: Files
    proxy: tuple[str, str] = ("", "")


def tls_context(listener: Listener) -> ssl.SSLContext:
    """A server that takes client certificates of the listener's CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(listener.certificate, listener.key)
    if listener.ca:
        context.load_verify_locations(listener.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
