# SPDX-License-Identifier: Apache-2.0
"""The cluster's Services, for their exposure on the external load balancer."""

from oslo_log import log as logging

from tacker_k8s_mgmt.model.services import PROXY_MODE, PUBLISHED_ANNOTATION, Service
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient

LOG = logging.getLogger(__name__)


def of_namespace(client: KubeClient, namespace: str) -> tuple[Service, ...]:
    """The Services of a namespace; none if there is no such namespace."""
    return client.get(
        "services",
        f"--namespace={namespace}",
        read=lambda found: tuple(map(Service.read, found["items"])),
    )


def publish(client: KubeClient, service: Service, address: str) -> None:
    """Write the address of its load balancer into a Service's status.

    With ``ipMode: Proxy``: nodes may reach the Kubernetes API at this address, which
    kube-proxy would else give to every node where it uses IPVS (kubernetes issue
    66966). An API server that does not keep the mode, as those before Kubernetes 1.30,
    gets no address.

    :param address: "" to remove it.
    """
    if address and not _patch(client, service, address, dry_run=True).shows(address):
        LOG.warning(
            "Service %s/%s gets no address into its status: the API server does not "
            "keep ipMode, which Kubernetes 1.30 and later do, and nodes would take "
            "packets to %s for themselves",
            service.namespace,
            service.name,
            address,
        )
        address = ""
    if not service.shows(address):
        _patch(client, service, address)


def _patch(
    client: KubeClient, service: Service, address: str, dry_run: bool = False
) -> Service:
    """The Service as it is then, or would be."""
    ingress = [{"ip": address, "ipMode": PROXY_MODE}] if address else None
    # A status may be changed together with the annotations.
    change = {
        "metadata": {"annotations": {PUBLISHED_ANNOTATION: address or None}},
        "status": {"loadBalancer": {"ingress": ingress}},
    }
    return client.patch(
        "service",
        service.name,
        f"--namespace={service.namespace}",
        "--subresource=status",
        *(("--dry-run=server",) if dry_run else ()),
        change=change,
        read=Service.read,
    )
