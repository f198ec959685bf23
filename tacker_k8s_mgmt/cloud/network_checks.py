# SPDX-License-Identifier: Apache-2.0
"""Whether a cloud's networks fit an instantiate request."""

from collections.abc import Iterable, Iterator

from tacker_k8s_mgmt.cloud.client import Cloud
from tacker_k8s_mgmt.cloud.demand import Demand, Package
from tacker_k8s_mgmt.cloud.facts import Network
from tacker_k8s_mgmt.csar import vms
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.request.params import InstallParams

_PAIRS = "allowed-address-pairs"


class NetworkChecks:
    """The checks of one request; parameters as those of :class:`.checks.CloudChecks`.

    Each method raises ``CloudError`` if Neutron cannot be asked.
    """

    def __init__(
        self,
        cloud: Cloud,
        request: Request,
        params: InstallParams,
        source: Package,
        demand: Demand,
    ) -> None:
        self._cloud, self._params, self._demand = cloud, params, demand
        self._look = vms.Look(request, params, source.flavour, source.base)
        self._known: dict[str, Network | None] = {}

    def gateways(self) -> dict[str, str]:
        """The gateways of the networks over which VMs are reached, by network."""
        points = self._demand.networks
        used = {points[cp] for cp in self._ssh_points() if cp in points}
        found = {}
        for name in sorted(used):
            network = self._found(name)
            for subnet in network.subnets if network else ():
                if subnet.gateway and self._is_used(subnet.cidr):
                    found[name] = subnet.gateway
        return found

    def network(self, name: str) -> Iterator[str]:
        """Problems of an existing network."""
        network = self._found(name)
        if network is None:
            yield (
                "Neutron has no such network that this project sees: name another one "
                "in extVirtualLinks"
            )
            return
        if not network.is_up:
            yield f"it is switched off: openstack network set --enable {name}"
        if not network.is_open:
            kind = "an external network" if network.is_external else "a network"
            yield (
                f"it is {kind} of another project, which has not shared it, so Neutron "
                "refuses ports on it: use one of the project's own, with floating IPs "
                "where VMs must be reached from outside"
            )
        subnets = [s for s in network.subnets if self._is_used(s.cidr)]
        if not subnets:
            yield (
                f"it has no {self._params.address_family} subnet, so VMs would have no "
                "address: openstack subnet create"
            )
        for subnet in subnets:
            yield from self._overlaps(subnet.cidr)
        yield from self._security(network)

    def _security(self, network: Network) -> Iterator[str]:
        if network.port_security is not False:
            return
        points = [
            cp
            for cp, reference in self._demand.networks.items()
            if self._found(reference) == network and cp in self._demand.filtered
        ]
        if points:
            yield (
                f"its port security is off, and {_listed(points)} of the Base HOT has "
                "security groups or address pairs, which Neutron refuses there: take "
                "them out of the Base HOT, or openstack network set "
                f"--enable-port-security {network.name}"
            )

    def _overlaps(self, cidr: str) -> Iterator[str]:
        family = self._params.address_family
        inner = {
            "pods (master_node.pod_cidr)": self._params.pod_cidr
            or networks.network(networks.PODS[family]),
            "services (master_node.cluster_cidr)": self._params.service_cidr
            or networks.network(networks.SERVICES[family]),
        }
        for name, other in inner.items():
            own = networks.network(cidr)
            if own.version == other.version and own.overlaps(other):
                yield (
                    f"its subnet {cidr} overlaps the network of {name}, {other}: "
                    "choose another one for the cluster"
                )

    def _is_used(self, cidr: str) -> bool:
        version = networks.network(cidr).version
        return self._params.address_family == f"ipv{version}"

    def _ssh_points(self) -> set[str]:
        groups = (self._params.control_plane, self._params.workers)
        balancer = self._params.load_balancer
        return {g.ssh_cp for g in groups} | ({balancer.ssh_cp} if balancer else set())

    @property
    def plugin(self) -> str:
        """The network plugin that kubespray is told to install."""
        name = self._params.kubespray_vars.get("kube_network_plugin")
        return str(name or self._params.cluster.network_plugin)

    def packets(self) -> Iterator[str]:
        """What Neutron would drop, with the port security that networks really have."""
        unfiltered = {
            cp
            for cp, name in self._demand.networks.items()
            if (network := self._found(name)) and not network.port_security
        }
        dropped = list(self._look.spoofing(unfiltered))
        yield from dropped
        if not dropped and not self._demand.has_pairs:
            return
        if _PAIRS not in self._cloud.network_extensions():
            yield (
                f"this Neutron has no extension {_PAIRS}: choose an encapsulation "
                "(cluster.network.encapsulation), or have its operator enable it"
            )

    def _found(self, name: str) -> Network | None:
        if name not in self._known:
            self._known[name] = self._cloud.network(name)
        return self._known[name]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
