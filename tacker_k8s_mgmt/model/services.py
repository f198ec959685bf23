# SPDX-License-Identifier: Apache-2.0
"""Services of a CNF, as far as their exposure needs them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tacker_k8s_mgmt.model import network_plugins

#: Set by Tacker's v2 API on everything from a manifest (``kubernetes_resource.py``).
INSTANCE_LABEL = "tacker_vnf_instance_id"
#: Set by Helm on everything of a release.
RELEASE_ANNOTATION = "meta.helm.sh/release-name"
#: The load balancer's address that the driver has written into a Service's status.
PUBLISHED_ANNOTATION = "tacker-k8s-mgmt/load-balancer"
LOAD_BALANCER = "LoadBalancer"
#: ``ipMode`` of an address: nodes leave packets to it alone. With the default, ``VIP``,
#: each node takes them for itself, at every port where kube-proxy uses IPVS.
PROXY_MODE = "Proxy"
#: The types that have node ports.
NODE_PORT_TYPES = ("NodePort", LOAD_BALANCER)


@dataclass(frozen=True)
class ServicePort:
    """A port of a Service.

    :param protocol: ``tcp``, ``udp`` or ``sctp``.
    :param node_port: None if it has none, or none yet.
    """

    port: int
    protocol: str
    node_port: int | None

    def __str__(self) -> str:
        return f"{self.port}/{self.protocol}"


@dataclass(frozen=True)
class Service:
    """A Service.

    :param type: ``spec.type``.
    :param check_port: its health-check node port, which the kubelet's nodes have where
        ``externalTrafficPolicy`` is ``Local``.
    :param is_local: whether ``externalTrafficPolicy`` is ``Local``: a node without a
        pod of it drops packets.
    :param sources: ``loadBalancerSourceRanges``, as the load balancer writes them; one
        that is no network as it is given.
    :param balancer_class: ``loadBalancerClass``, of another implementation.
    :param allocates: whether its ports get node ports; those of a load balancer do not
        with ``allocateLoadBalancerNodePorts: false``.
    :param ingress: the addresses in its status.
    :param modes: ``ipMode`` of each; "" where there is none.
    :param published: the one that the driver has written there; "" for none.
    :param instance: the VNF instance that Tacker made it for; "" if not labelled.
    :param release: the Helm release that it is of; "" for none.
    """

    namespace: str
    name: str
    type: str
    ports: tuple[ServicePort, ...]
    check_port: int | None = None
    is_local: bool = False
    sources: tuple[str, ...] = ()
    balancer_class: str = ""
    allocates: bool = True
    ingress: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    published: str = ""
    instance: str = ""
    release: str = ""

    @property
    def is_balanced(self) -> bool:
        """Whether the external load balancer is to expose it if nothing else is said.

        One with a ``loadBalancerClass``, or without node ports, is for another
        implementation.
        """
        reachable = self.allocates or any(port.node_port for port in self.ports)
        return self.type in NODE_PORT_TYPES and not self.balancer_class and reachable

    @property
    def is_unchecked(self) -> bool:
        """Whether nodes drop packets, and none can be asked whether it does."""
        return self.is_local and self.type != LOAD_BALANCER

    @property
    def has_foreign_address(self) -> bool:
        """Whether its status has an address that the driver did not write there."""
        return bool(self.ingress) and self.ingress != (self.published,)

    def shows(self, address: str) -> bool:
        """Whether its status is as the driver writes it.

        :param address: of the load balancer; "" for none.
        """
        if not address:
            return not self.published
        found = (self.published, self.ingress, self.modes)
        return found == (address, (address,), (PROXY_MODE,))

    def with_node_ports_of(self, present: "Service") -> "Service":
        """A Service of a manifest, which keeps the node ports that it has already."""
        known = {str(port): port.node_port for port in present.ports}
        ports = (
            replace(port, node_port=port.node_port or known.get(str(port)))
            for port in self.ports
        )
        return replace(self, ports=tuple(ports))

    @classmethod
    def of_object(cls, one: Mapping[str, Any]) -> "Service | None":
        """The Service that an object of a manifest is.

        :returns: None if it is none, also if it is of another API of that kind, or not
            valid: that the API server says.
        """
        if (one.get("apiVersion"), one.get("kind")) != ("v1", "Service"):
            return None
        try:
            return cls.read(one)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> "Service":
        """The Service in a manifest or in an answer of the API.

        :raises AttributeError, KeyError, TypeError, ValueError: it is no valid Service.
        """
        metadata, spec = written["metadata"], written.get("spec") or {}
        annotations = metadata.get("annotations") or {}
        balancer = (written.get("status") or {}).get("loadBalancer") or {}
        ingress = balancer.get("ingress") or ()
        return cls(
            namespace=metadata.get("namespace") or "default",
            name=metadata["name"],
            type=spec.get("type") or "ClusterIP",
            ports=tuple(
                ServicePort(
                    int(port["port"]),
                    str(port.get("protocol") or "TCP").lower(),
                    port.get("nodePort"),
                )
                for port in spec.get("ports") or ()
            ),
            check_port=spec.get("healthCheckNodePort") or None,
            is_local=spec.get("externalTrafficPolicy") == "Local",
            sources=tuple(map(_network, spec.get("loadBalancerSourceRanges") or ())),
            balancer_class=spec.get("loadBalancerClass") or "",
            allocates=spec.get("allocateLoadBalancerNodePorts") is not False
            or spec.get("type") != LOAD_BALANCER,
            ingress=tuple(
                str(entry.get("ip") or entry.get("hostname")) for entry in ingress
            ),
            modes=tuple(entry.get("ipMode") or "" for entry in ingress),
            published=annotations.get(PUBLISHED_ANNOTATION, ""),
            instance=(metadata.get("labels") or {}).get(INSTANCE_LABEL, ""),
            release=annotations.get(RELEASE_ANNOTATION, ""),
        )


def _network(written: str) -> str:
    try:
        if "/" in written:
            return str(network_plugins.network(written))
        address = network_plugins.address(written)
        return f"{address}/{address.max_prefixlen}"
    except ValueError:
        return written


@dataclass(frozen=True)
class Cnf:
    """A CNF, by what tells its Services from others.

    :param vnf_id: id of its VNF instance.
    :param names: of its Services, where Tacker lists them (v1 API).
    :param release: its Helm release, where Tacker names it (v2 API); "" for none.
    """

    vnf_id: str
    namespace: str
    names: frozenset[str] = frozenset()
    release: str = ""

    def owns(self, service: Service) -> bool:
        return service.namespace == self.namespace and (
            service.name in self.names
            or service.instance == self.vnf_id
            or bool(self.release and service.release == self.release)
        )
