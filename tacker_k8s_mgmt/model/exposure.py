# SPDX-License-Identifier: Apache-2.0
"""The ports of CNFs and applications on the external load balancer."""

import re
from dataclasses import dataclass

from tacker_k8s_mgmt.model.load_balancer import ExposedService

_APPLICATION = "app-"
# No part has a dot: an id of Tacker or an application, and two labels of the DNS.
_NAME = re.compile(
    rf"(?P<owner>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}|{_APPLICATION}[a-z0-9-]{{1,253}})"
    r"\.(?P<namespace>[a-z0-9-]{1,63})\.(?P<service>[a-z0-9-]{1,63})"
    r"\.(?P<protocol>tcp|udp)\.(?P<port>[0-9]+)"
)


def of_application(name: str) -> str:
    """The owner of what is exposed for an application."""
    return f"{_APPLICATION}{name}"


def shown(owner: str) -> str:
    """An owner in messages."""
    if owner.startswith(_APPLICATION):
        return f"the application {owner.removeprefix(_APPLICATION)}"
    return f"the CNF {owner}"


@dataclass(frozen=True)
class Exposure:
    """One port of a Service on the external load balancer.

    :param owner: id of the CNF's VNF instance, or :func:`of_application`.
    :param service: name of the Service.
    :param protocol: ``tcp`` or ``udp``.
    :param port: on the load balancer.
    :param check_port: the Service's health check node port (``externalTrafficPolicy:
        Local``). None: a worker is healthy if it accepts connections at the node port
        (TCP) or at kubelet's port (UDP).
    :param sources: CIDRs of the clients that may connect; empty for all.
    :param proxy_protocol: connections begin with the header of the PROXY protocol
        (TCP only).
    """

    owner: str
    namespace: str
    service: str
    protocol: str
    port: int
    node_port: int
    check_port: int | None = None
    sources: tuple[str, ...] = ()
    proxy_protocol: bool = False

    @property
    def name(self) -> str:
        """Its unique name on the load balancer, which tells whose it is."""
        parts = (self.owner, self.namespace, self.service, self.protocol, self.port)
        return ".".join(map(str, parts))

    @property
    def is_of_application(self) -> bool:
        """Whether it is for an application of the cluster itself."""
        return self.owner.startswith(_APPLICATION)

    @property
    def outer_port(self) -> tuple[str, int]:
        """Protocol and port on the load balancer."""
        return self.protocol, self.port

    @property
    def title(self) -> str:
        """Port and Service, for messages."""
        return f"{self.port}/{self.protocol} of Service {self.namespace}/{self.service}"

    def on_balancer(self) -> ExposedService:
        """The same as the load balancer's script knows it."""
        return ExposedService(
            self.name,
            self.port,
            self.node_port,
            servers=(),
            protocol=self.protocol,
            health_port=self.check_port,
            sources=self.sources,
            proxy_protocol=self.proxy_protocol,
        )


def of_service(exposed: ExposedService) -> Exposure | None:
    """The exposure that a service of the load balancer is; None for any other one."""
    if (parts := _NAME.fullmatch(exposed.name)) is None:
        return None
    return Exposure(
        owner=parts["owner"],
        namespace=parts["namespace"],
        service=parts["service"],
        protocol=exposed.protocol,
        port=exposed.port,
        node_port=exposed.node_port,
        check_port=exposed.health_port,
        sources=exposed.sources,
        proxy_protocol=exposed.proxy_protocol,
    )
