# SPDX-License-Identifier: Apache-2.0
"""The structure ``cluster``: what is installed, and how.

Each attribute declares its kubespray variables and whether it may change later
(:mod:`.option_metadata`); without it, kubespray's default applies. The docstring of
each field is its text in the user documentation.
"""

from typing import Annotated, Literal

from pydantic import Field

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.versions import tag
from tacker_k8s_mgmt.request.authentication_options import Authentication
from tacker_k8s_mgmt.request.field_types import Flag
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.node_registry import NodeRegistry
from tacker_k8s_mgmt.request.openstack_options import OpenStack
from tacker_k8s_mgmt.request.option_metadata import (
    BUILT_ON,
    CHANGEABLE,
    Becomes,
    Fixed,
)
from tacker_k8s_mgmt.request.option_types import (
    OptionalImageHost,
    OptionalMtu,
    OptionalText,
    OptionalUrlWithLogin,
    OptionalVersion,
)
from tacker_k8s_mgmt.request.registries import REGISTRY_VARIABLES, Registry
from tacker_k8s_mgmt.request.storage_options import Storage

_SET_UP = Fixed(
    "it is set up on the control plane, which scale and heal of workers leave as it is"
)
_IMAGE_REPOS = tuple(
    f"{name}_image_repo" for name in ("kube", "gcr", "github", "docker", "quay")
)
# What makes the directories of local volumes; kubespray has it from Docker Hub always.
_LOCAL_PATH_HELPER = "local_path_provisioner_helper_image_repo"
# Releases up to v2.27 write v1.31.9, later ones 1.31.9, each as in its checksums. These
# are a role default wherever kubespray uses the version.
_LEADING_V = (
    "{{ 'v' if (kubelet_checksums | default({'amd64': {'': ''}})).amd64 | first is "
    "match('v') else '' }}"
)
_PLUGINS = ", ".join(
    f"{name} (up to {tag(plugin.until)})" if plugin.until else name
    for name, plugin in network_plugins.PLUGINS.items()
    if plugin.encapsulations
)
_ENCAPSULATIONS = ", ".join(
    f"{' or '.join(one.name for one in plugin.encapsulations)} ({name})"
    for name, plugin in network_plugins.PLUGINS.items()
    if plugin.encapsulations
)


class Network(Structure):
    """The network plugin of the pods."""

    plugin: Annotated[OptionalText, Becomes("kube_network_plugin")] = Field(
        default=None,
        description="Network plugin (CNI), as the kubespray release offers it: "
        f"{_PLUGINS}, ... Default: {network_plugins.DEFAULT}.",
    )
    encapsulation: Annotated[
        OptionalText,
        Becomes(*network_plugins.ENCAPSULATION_VARIABLES, value=None),
    ] = Field(
        default=None,
        description="How the plugin carries pods' packets between nodes: "
        f"{_ENCAPSULATIONS}. Default: the first of these.",
    )
    mtu: Annotated[
        OptionalMtu,
        Becomes(*network_plugins.MTU_VARIABLES.values(), "calico_veth_mtu", value=None),
    ] = Field(
        default=None,
        description="MTU of the pods' interfaces "
        f"({', '.join(network_plugins.MTU_VARIABLES)}): bytes, or the word nodes, "
        "which takes the smallest MTU of all nodes' network interfaces less what the "
        "encapsulation needs. Default: the plugin finds out.",
    )


class Offline(Structure):
    """Where nodes get what they cannot get from the Internet."""

    files_repo: Annotated[
        OptionalUrlWithLogin,
        Becomes("files_repo"),
        Becomes("github_url", value="{}/github.com".format),
        Becomes("dl_k8s_io_url", value="{}/dl.k8s.io".format),
        Becomes("storage_googleapis_url", value="{}/storage.googleapis.com".format),
        Becomes("get_helm_url", value="{}/get.helm.sh".format),
    ] = None
    """URL of an HTTP server with kubespray's files, laid out as its contrib/offline
    does it: github.com, dl.k8s.io, storage.googleapis.com and get.helm.sh are
    directories there. May hold credentials. From v2.25 on."""
    registry_host: Annotated[
        OptionalImageHost,
        Becomes("registry_host", *_IMAGE_REPOS),
        Becomes(_LOCAL_PATH_HELPER, value="{}/library/busybox".format),
    ] = None
    """Registry (host, port, path) from which all images come in place of
    registry.k8s.io, gcr.io, ghcr.io, docker.io and quay.io."""


class Cluster(Structure):
    """What is installed; everything here has a default."""

    kubernetes_version: Annotated[
        OptionalVersion,
        Becomes("kube_version", value=lambda version: f"{_LEADING_V}{version}"),
        Fixed(
            "another version comes with an upgrade only: a change of the VNF package",
            but_by_upgrade=True,
        ),
    ] = None
    """Kubernetes version such as 1.31.9, one that the kubespray has checksums of.
    Default: the newest that this kubespray holds for stable."""
    container_manager: Annotated[
        Literal["containerd", "crio", "docker"] | None,
        Becomes("container_manager"),
        Fixed("all nodes have the same"),
    ] = None
    """Container engine. Default: containerd."""
    network: Annotated[Network, BUILT_ON] = Field(default_factory=Network)
    """The pods' network plugin."""
    registries: Annotated[
        tuple[Registry, ...], Becomes(*REGISTRY_VARIABLES, value=None), CHANGEABLE
    ] = ()
    """List of private registries and mirrors, each a structure."""
    offline: Annotated[Offline, CHANGEABLE] = Field(default_factory=Offline)
    """Servers that stand in for the Internet."""
    openstack: Annotated[OpenStack | None, _SET_UP] = None
    """The OpenStack that the cluster itself may use."""
    storage: Annotated[Storage, _SET_UP] = Field(default_factory=Storage)
    """Where persistent volumes come from."""
    authentication: Annotated[Authentication, _SET_UP] = Field(
        default_factory=Authentication
    )
    """Further users of the API."""
    helm: Annotated[Flag, Becomes("helm_enabled"), _SET_UP] = False
    """Install Helm on the control plane, and have Tacker's v1 API install charts there:
    the VIM gets a login for it. Default: false."""
    local_registry: Annotated[Flag, Becomes("registry_enabled"), _SET_UP] = False
    """Run an image registry in the cluster. Default: false."""
    node_registry: Annotated[
        NodeRegistry | None, Becomes("registry_enabled"), _SET_UP
    ] = None
    """Run an image registry in the cluster, and have the container engine of every node
    pull from it. Default: none."""
    metrics_server: Annotated[Flag, Becomes("metrics_server_enabled"), _SET_UP] = False
    """Install the metrics server (kubectl top, autoscaling). Default: false."""
    audit_log: Annotated[Flag, Becomes("kubernetes_audit"), _SET_UP] = False
    """Have the API servers log who asked for what, to /var/log/kubernetes/audit on the
    control plane. Default: false."""
    encrypt_secrets: Annotated[Flag, Becomes("kube_encrypt_secret_data"), _SET_UP] = (
        False
    )
    """Have the API servers encrypt Secrets in etcd. Default: false."""
    renew_certificates: Annotated[Flag, Becomes("auto_renew_certificates"), _SET_UP] = (
        True
    )
    """Have each control plane renew all its certificates and restart once a month;
    otherwise they end after a year. Default: true, unless kubespray_vars sets
    kube_external_ca_mode."""
    verify_pod_network: Annotated[Flag, CHANGEABLE] = True
    """Have instantiation, scale-out and heal end with a test of the pod network: a pod
    on each new node has to reach one on another node, in packets of full size, and the
    API's Service. Default: true."""

    @property
    def network_plugin(self) -> str:
        """The requested plugin, or kubespray's default."""
        return self.network.plugin or network_plugins.DEFAULT

    @property
    def has_cloud_controller(self) -> bool:
        """Whether OpenStack's load balancers are for Services of type LoadBalancer."""
        return self.openstack is not None and self.openstack.cloud_controller
