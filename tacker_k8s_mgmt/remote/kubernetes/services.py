# SPDX-License-Identifier: Apache-2.0
"""The cluster's Services, for their exposure on the external load balancer."""

import json

from tacker_k8s_mgmt.model.services import PUBLISHED_ANNOTATION, Service
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient


def of_namespace(client: KubeClient, namespace: str) -> tuple[Service, ...]:
    """The Services of a namespace; none if there is no such namespace."""
    return client.get(
        "services",
        f"--namespace={namespace}",
        read=lambda found: tuple(map(Service.read, found["items"])),
    )


def publish(client: KubeClient, service: Service, address: str) -> None:
    """Write the address of its load balancer into a Service's status.

    :param address: "" to remove it.
    """
    # A status may be changed together with the annotations.
    change = {
        "metadata": {"annotations": {PUBLISHED_ANNOTATION: address or None}},
        "status": {"loadBalancer": {"ingress": [{"ip": address}] if address else None}},
    }
    client.run(
        "patch",
        "service",
        service.name,
        f"--namespace={service.namespace}",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps(change),
    )
