# SPDX-License-Identifier: Apache-2.0
"""The structure ``cluster.node_registry``: a registry in the cluster, for its nodes.

kubespray's registry is a Service without a certificate (``roles/kubernetes-apps/
registry``). Nodes reach a Service by its ClusterIP in every mode of kube-proxy, but do
not resolve its name, so it gets a fixed address, and the container engines a mirror.
"""

from typing import Annotated

from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.request import option_types
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.option_metadata import Becomes
from tacker_k8s_mgmt.request.registries import REGISTRY_VARIABLES, Registry

#: The variable of the Service's address.
ADDRESS_VARIABLE = "registry_service_cluster_ip"
NAME = "registry.local:5000"
_PORT = 5000
# Kubernetes gives Services without a fixed address none of the first 16 at least
# (KEP-3070). kubespray takes the first for the API, the third for the cluster's DNS.
_POSITION = 10
SMALLEST_NETWORK = 16  # addresses


class NodeRegistry(Structure):
    """An image registry in the cluster from which its nodes pull."""

    name: Annotated[option_types.Registry, Becomes(*REGISTRY_VARIABLES, value=None)] = (
        NAME
    )
    """The registry as in the names of images: registry.local:5000/app:1. It needs no
    DNS. Default: registry.local:5000."""
    address: Annotated[
        option_types.OptionalAddress, Becomes(ADDRESS_VARIABLE, value=None)
    ] = None
    """Address of the registry's Service, in master_node.cluster_cidr. Default: the
    tenth there."""
    storage_class: Annotated[
        option_types.OptionalText, Becomes("registry_storage_class")
    ] = None
    """StorageClass of the volume for images, such as local-path or cinder-csi.
    Default: none; images are lost when the registry's pod ends."""
    size: Annotated[option_types.OptionalQuantity, Becomes("registry_disk_size")] = None
    """Size of that volume, such as 20Gi. Default: 10Gi."""

    def service_address(self, services: networks.Network) -> networks.Address:
        """The address of the registry's Service.

        :param services: the network of Services.
        """
        return self.address or services[_POSITION]

    def as_registry(self, services: networks.Network) -> Registry:
        """The same as an item of ``cluster.registries``."""
        address = self.service_address(services)
        host = f"[{address}]" if address.version == 6 else address
        return Registry(prefix=self.name, mirrors=(f"http://{host}:{_PORT}",))
