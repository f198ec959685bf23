# SPDX-License-Identifier: Apache-2.0
"""Checks of a cluster's VMs, taken together."""

import ipaddress
from collections import Counter
from collections.abc import Iterator, Sequence

from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.model.nodes import Machine
from tacker_k8s_mgmt.request.params import InstallParams


def problems(machines: Sequence[Machine], params: InstallParams) -> Iterator[str]:
    """A sentence for each VM with two roles, or with a pod's or service's address."""
    for server_id, times in Counter(m.server_id for m in machines).items():
        if times > 1:
            yield f"the VM {server_id} was found for {times} roles; name its ports once"
    family = params.address_family
    for attribute, cidr in (
        ("pod_cidr", params.pod_cidr or networks.PODS[family]),
        ("cluster_cidr", params.service_cidr or networks.SERVICES[family]),
    ):
        network = ipaddress.ip_network(cidr)
        for machine in machines:
            if ipaddress.ip_address(machine.address) in network:
                yield (
                    f"master_node.{attribute}: the VM {machine.server_id} has the "
                    f"address {machine.address}, which is in {network}"
                )
