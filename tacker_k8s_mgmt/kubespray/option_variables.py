"""Which of kubespray's variables the options of a cluster become.

Most of them each option declares itself (:class:`.option_metadata.Becomes`); here are
those in which several options have a say.
"""

from collections.abc import Collection
from typing import Any

from tacker_k8s_mgmt.kubespray import network
from tacker_k8s_mgmt.request import option_metadata, registries
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.registries import PrivateRegistry
from tacker_k8s_mgmt.request.storage_options import LOCAL_PATH_IS_DEFAULT


def variables(
    options: Cluster,
    private: Collection[PrivateRegistry],
    *,
    address_family: str,
    nic_mtus: Collection[int],
) -> dict[str, Any]:
    """The variables of all options that are not kubespray's defaults.

    :param private: registries in the words of the kubeadm driver's user guide.
    :param nic_mtus: bytes, of the nodes' interfaces; see :func:`.network.pod_mtu`.
    :raises ClusterError: an MTU was to be computed and cannot be.
    """
    built = option_metadata.variables(options)
    built |= network.variables(options, address_family, nic_mtus)
    known = [*options.registries, *(one.as_registry() for one in private)]
    built |= registries.variables(known, options.container_manager or "containerd")
    openstack, storage = options.openstack, options.storage
    if openstack and storage.cinder:
        built |= openstack.login("cinder")
    if openstack and openstack.cloud_controller:
        built |= openstack.login("external_openstack")
    if storage.cinder and storage.local_path:
        # Its class would be a second default one.
        built[LOCAL_PATH_IS_DEFAULT] = "false"
    return built
