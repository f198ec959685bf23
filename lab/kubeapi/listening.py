# SPDX-License-Identifier: Apache-2.0
"""A server's address, its certificate, and the other servers."""

import ssl
from dataclasses import dataclass

from .etcd.wire import Files


@dataclass(frozen=True)
class Listener:
    """Where the server listens and how it proves itself.

    :param certificate: PEM file; without one it speaks plain HTTP.
    :param ca: PEM file of the CA that client certificates must come from.
    :param admin_tokens: bearer tokens of members of ``system:masters``.
    """

    host: str = "127.0.0.1"
    port: int = 6443
    certificate: str = ""
    key: str = ""
    ca: str = ""
    admin_tokens: frozenset[str] = frozenset()
    verbose: bool = False


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
