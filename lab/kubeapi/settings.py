# SPDX-License-Identifier: Apache-2.0
"""What a stand-in cluster is like, and how it listens."""

import contextlib
import ssl
from dataclasses import dataclass
from pathlib import Path

from .admission import SERVICE_NETWORK
from .etcd import Files


@dataclass(frozen=True)
class Settings:
    """Times are seconds.

    :param version: the Kubernetes version that it claims, with a leading ``v``.
    :param ca_certificate: PEM text that service-account token Secrets carry.
    :param node_grace: how long a node stays Ready without a heartbeat.
    :param orphan_grace: how long pods stay whose node was deleted.
    :param start_delay: from a pod's creation until its containers are ready.
    :param stop_delay: the longest that a pod's containers take to stop, which have
        their pod's grace in any case.
    :param ready_after: from the server's start until ``/readyz`` is well.
    """

    version: str = "v1.35.4"
    ca_certificate: str = ""
    service_network: str = SERVICE_NETWORK
    pod_network: str = "10.233.64.0/18"
    node_grace: float = 6.0
    orphan_grace: float = 0.0
    start_delay: float = 0.5
    stop_delay: float = 0.5
    ready_after: float = 0.0


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
