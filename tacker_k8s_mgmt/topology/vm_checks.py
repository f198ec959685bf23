# SPDX-License-Identifier: Apache-2.0
"""Checks of a cluster's VMs: their roles and addresses."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.model.nodes import Machine
from tacker_k8s_mgmt.request.params import InstallParams


def roles(machines: Sequence[Machine]) -> Iterator[str]:
    """A sentence for each VM with two roles."""
    for server_id, times in Counter(m.server_id for m in machines).items():
        if times > 1:
            yield f"the VM {server_id} was found for {times} roles; name its ports once"


def misplaced(server_id: str, address: str, params: InstallParams) -> str:
    """Why a VM cannot have an address: pods or services have it; "" if it can."""
    family = params.address_family
    for attribute, network in (
        ("pod_cidr", params.pod_cidr or networks.network(networks.PODS[family])),
        (
            "cluster_cidr",
            params.service_cidr or networks.network(networks.SERVICES[family]),
        ),
    ):
        if networks.address(address) in network:
            return (
                f"master_node.{attribute}: the VM {server_id} has the address "
                f"{address}, which is in {network}"
            )
    return ""
