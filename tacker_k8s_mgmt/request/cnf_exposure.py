# SPDX-License-Identifier: Apache-2.0
"""``additionalParams.k8s_cnf_exposure_param`` of a CNF's request.

It says which Services of the CNF the load balancer of its cluster exposes, and where.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.model.exposure import Exposure, shown
from tacker_k8s_mgmt.model.services import (
    LOAD_BALANCER,
    NODE_PORT_TYPES,
    Service,
    ServicePort,
)
from tacker_k8s_mgmt.request import fields, structure
from tacker_k8s_mgmt.request.structure import Structure

ATTRIBUTE = "k8s_cnf_exposure_param"
#: The attribute of Tacker's sample driver, which this one replaces.
SAMPLE_ATTRIBUTE = "lcm-kubernetes-external-lb"


# The load balancer has nothing for SCTP.
_PROTOCOLS = ("tcp", "udp")


def _uuid(value: str) -> str:
    try:
        return str(uuid.UUID(value))
    except ValueError:
        raise ValueError("must be the id of a VNF instance") from None


InstanceId = fields.Optional[Annotated[str, AfterValidator(_uuid)]]


class PortExposure(Structure):
    """A port of a Service, and where it is exposed."""

    port: fields.Port
    """The Service's port."""
    protocol: Literal["TCP", "UDP"] = "TCP"
    """Its protocol. Default: TCP."""
    external_port: fields.Port | None = None
    """Port on the load balancer. Default: the Service's port where its type is
    LoadBalancer, else its node port."""


class ServiceExposure(Structure):
    """A Service of the CNF, and how it is exposed."""

    name: fields.Name
    """Name of the Service."""
    ports: tuple[PortExposure, ...] = ()
    """List of its ports to expose. Default: all of TCP and UDP."""
    sources: tuple[fields.Network, ...] = ()
    """List of networks whose hosts may connect. Default: the Service's
    loadBalancerSourceRanges, or all hosts."""
    proxy_protocol: fields.Flag = False
    """Send the client's address ahead of each TCP connection, by the PROXY protocol,
    which the pods have to understand. Default: false."""


class ExposureParams(Structure):
    """Which Services of a CNF are exposed on the load balancer of its cluster."""

    cluster_vnf_instance_id: InstanceId = None
    """Id of the VNF instance of the cluster. Default: the one whose API is the CNF's
    VIM."""
    services: tuple[ServiceExposure, ...] = ()
    """List of the Services to expose, empty for none. Default: every Service of the
    CNF whose type is NodePort or LoadBalancer; with OpenStack's cloud controller,
    NodePort."""

    def exposures(
        self, owner: str, services: Iterable[Service], cloud: bool = False
    ) -> tuple[Exposure, ...]:
        """What these Services are exposed as.

        A port that has no node port yet, as in a manifest, is left out unless its port
        on the load balancer is known, and has 0 for its node port then.

        :param owner: id of the CNF's VNF instance.
        :param cloud: whether the cluster's cloud controller has load balancers for
            Services of that type; they are exposed only if the request names them.
        :raises ExposureError: with every problem.
        """
        known = {service.name: service for service in services}
        wanted = self.services
        if "services" not in self.model_fields_set:
            wanted = tuple(
                ServiceExposure(name=service.name)
                for service in known.values()
                if service.is_balanced and not (cloud and service.type == LOAD_BALANCER)
            )
        problems: list[str] = []
        found: list[Exposure] = []
        for entry in wanted:
            service = known.get(entry.name)
            if service is None:
                have = ", ".join(sorted(known)) or "none"
                problems.append(f"there is no Service {entry.name}; there are {have}")
            elif service.type not in NODE_PORT_TYPES:
                problems.append(
                    f"Service {entry.name} is of type {service.type} and has no node "
                    "ports; its type must be NodePort or LoadBalancer"
                )
            else:
                found += _of_service(owner, entry, service, problems)
        problems += _twice(found)
        if problems:
            raise errors.ExposureError(problems, owner=shown(owner))
        return tuple(found)

    def announced(self, owner: str, namespace: str) -> tuple[Exposure, ...]:
        """The ports on the load balancer that the request itself names.

        The node ports are not known, and 0.
        """
        return tuple(
            Exposure(
                owner,
                namespace,
                service.name,
                port.protocol.lower(),
                port.external_port,
                node_port=0,
            )
            for service in self.services
            for port in service.ports
            if port.external_port
        )


def _of_service(
    owner: str, wanted: ServiceExposure, service: Service, problems: list[str]
) -> Iterator[Exposure]:
    """The exposures of one Service; adds what is wrong to *problems*."""
    sources = tuple(map(str, wanted.sources)) or service.sources
    for source in sources:
        try:
            network_plugins.network(source)
        except ValueError as error:
            problems.append(
                f"Service {service.name}: {source!r} of its loadBalancerSourceRanges "
                f"{error}"
            )
    for port, outer in _ports(wanted, service, problems):
        if not port.node_port and not service.allocates:
            problems.append(
                f"Service {service.name}: port {port} has no node port, because "
                "allocateLoadBalancerNodePorts is false; let it be true, or give the "
                "port a nodePort"
            )
        elif wanted.proxy_protocol and port.protocol == "udp":
            problems.append(
                f"Service {service.name}: port {port} cannot have proxy_protocol, "
                "which is for tcp"
            )
        elif port.protocol == "udp" and service.is_unchecked:
            problems.append(
                f"Service {service.name}: port {port} cannot be exposed with "
                "externalTrafficPolicy Local, because a Service of type NodePort has "
                "no health check node port, which says what workers have a pod; let "
                "its type be LoadBalancer or its policy Cluster"
            )
        elif outer is not None:
            yield Exposure(
                owner,
                service.namespace,
                service.name,
                port.protocol,
                outer,
                port.node_port or 0,
                service.check_port,
                sources,
                wanted.proxy_protocol,
            )


def _ports(
    wanted: ServiceExposure, service: Service, problems: list[str]
) -> Iterator[tuple[ServicePort, int | None]]:
    """Each port with that on the load balancer, None where it is not known yet."""
    of_balancer = service.type == LOAD_BALANCER
    usual = {
        port: port.port if of_balancer else port.node_port
        for port in service.ports
        if port.protocol in _PROTOCOLS
    }
    if not wanted.ports:
        yield from usual.items()
    for entry in wanted.ports:
        shown = f"{entry.port}/{entry.protocol.lower()}"
        port = next((port for port in usual if str(port) == shown), None)
        if port is None:
            have = ", ".join(map(str, usual))
            problems.append(
                f"Service {service.name} has no port {shown}; it has {have}"
            )
        else:
            yield port, entry.external_port or usual[port]


def _twice(found: Sequence[Exposure]) -> Iterator[str]:
    uses = Counter(exposure.outer_port for exposure in found)
    for (protocol, port), count in uses.items():
        if count > 1:
            names = [e.service for e in found if e.outer_port == (protocol, port)]
            yield (
                f"port {port}/{protocol} of the load balancer is wanted for "
                f"{' and '.join(names)}; give one of them another external_port"
            )


def parse(raw: Any) -> ExposureParams:
    """Read and check the attribute.

    :param raw: its value; None if it is not given. Text is read as JSON: metadata of
        the v1 API can be nothing else.
    :raises ExposureParamError: with every problem at once.
    """
    if isinstance(raw, str):
        try:
            raw = untrusted.parse_json(raw)
        except ValueError:
            raise errors.ExposureParamError(["is text, but not JSON"]) from None
    if raw is None:
        return ExposureParams()
    if not isinstance(raw, Mapping):
        raise errors.ExposureParamError(["must be a structure with attributes"])
    written = structure.read(ExposureParams, raw)
    params, mistakes = structure.build(ExposureParams, written.values)
    problems = list(map(str, written.named([*written.problems, *mistakes])))
    if not mistakes:
        problems += _repeated(params)
    if problems:
        raise errors.ExposureParamError(problems)
    return params


def _repeated(params: ExposureParams) -> Iterator[str]:
    names = Counter(service.name for service in params.services)
    yield from (
        f"services: {name} is given {count} times"
        for name, count in names.items()
        if count > 1
    )
    for service in params.services:
        ports = Counter((port.port, port.protocol) for port in service.ports)
        yield from (
            f"services: port {port}/{protocol.lower()} of {service.name} is given "
            f"{count} times"
            for (port, protocol), count in ports.items()
            if count > 1
        )


def attribute_of(additional_params: Mapping[str, Any] | None) -> Any:
    """The attribute in either spelling; None if it is not given."""
    spellings = (ATTRIBUTE, structure.camel(ATTRIBUTE))
    params = additional_params or {}
    return next((params[name] for name in spellings if name in params), None)
