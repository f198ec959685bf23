# SPDX-License-Identifier: Apache-2.0
"""What can be set about one stand-in cluster."""

from dataclasses import dataclass

from .admission import SERVICE_NETWORK


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
