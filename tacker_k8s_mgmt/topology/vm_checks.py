"""What may be wrong with the VMs of a cluster, taken together."""

import ipaddress
from collections import Counter
from collections.abc import Iterator, Sequence

from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Machine
from tacker_k8s_mgmt.request.params import InstallParams


def problems(machines: Sequence[Machine], params: InstallParams) -> Iterator[str]:
    """One sentence for each."""
    yield from _found_twice(machines)
    yield from _in_the_clusters_networks(machines, params)


def _found_twice(machines: Sequence[Machine]) -> Iterator[str]:
    for server_id, times in Counter(m.server_id for m in machines).items():
        if times > 1:
            yield f"the VM {server_id} was found for {times} roles; name its ports once"


def _in_the_clusters_networks(
    machines: Sequence[Machine], params: InstallParams
) -> Iterator[str]:
    """VMs at addresses that pods or services may get: packets for them would stray."""
    defaults = kubespray_releases.NETWORKS[params.address_family]
    for attribute, network in (
        ("pod_cidr", ipaddress.ip_network(params.pod_cidr or defaults.pods)),
        (
            "cluster_cidr",
            ipaddress.ip_network(params.service_cidr or defaults.services),
        ),
    ):
        for machine in machines:
            if ipaddress.ip_address(machine.address) in network:
                yield (
                    f"master_node.{attribute}: the VM {machine.server_id} has the "
                    f"address {machine.address}, which is in {network}"
                )
