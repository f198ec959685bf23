"""Which of kubespray's variables the options of a cluster become."""

import base64
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from tacker_k8s_mgmt.kubespray import network
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.request import registries
from tacker_k8s_mgmt.request.cluster_options import (
    Authentication,
    Cluster,
    Offline,
    Storage,
)
from tacker_k8s_mgmt.request.key_aliases import Location
from tacker_k8s_mgmt.request.registries import PrivateRegistry

_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "helm": "helm_enabled",
        "local_registry": "registry_enabled",
        "metrics_server": "metrics_server_enabled",
        "audit_log": "kubernetes_audit",
        "encrypt_secrets": "kube_encrypt_secret_data",
        "renew_certificates": "auto_renew_certificates",
    }
)
_BASE_URLS: Mapping[str, str] = MappingProxyType(
    {
        "github_url": "github.com",
        "dl_k8s_io_url": "dl.k8s.io",
        "storage_googleapis_url": "storage.googleapis.com",
        "get_helm_url": "get.helm.sh",
    }
)
_IMAGE_REPOS = tuple(
    f"{name}_image_repo" for name in ("kube", "gcr", "github", "docker", "quay")
)
_ENGINES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "containerd": ("containerd_registries_mirrors", "containerd_registry_auth"),
        "crio": ("crio_registries", "crio_registry_auth"),
        "docker": ("docker_registry_mirrors", "docker_insecure_registries"),
    }
)
_REGISTRIES = tuple(name for names in _ENGINES.values() for name in names)
_LOGIN = (
    *("auth_url", "region", "username", "password", "cacert"),
    *(f"application_credential_{part}" for part in ("id", "name", "secret")),
    *("tenant_id", "tenant_name", "domain_id", "domain_name"),
)
_OIDC = ("username_claim", "username_prefix", "groups_claim", "groups_prefix")
# Releases up to v2.27 write v1.31.9, later ones 1.31.9: each as in its checksums, which
# are a default of kubespray's wherever it asks for the version.
_LEADING_V = (
    "{{ 'v' if (kubelet_checksums | default({'amd64': {'': ''}})).amd64 | first is "
    "match('v') else '' }}"
)
_CA_FILE = "{{ kube_cert_dir }}/oidc-ca.pem"

#: By attribute, variables for which a user may have other values in ``kubespray_vars``.
DEFAULTS: Mapping[Location, tuple[str, ...]] = MappingProxyType(
    {
        ("cluster", "storage", "cinder"): (
            "persistent_volumes_enabled",
            "storage_classes",
            "local_path_provisioner_is_default_storageclass",
        ),
        ("cluster", "storage", "local_path"): (
            "local_path_provisioner_is_default_storageclass",
        ),
    }
)
#: By attribute, the variables that it stands for: neither has a say in the other's.
VARIABLES: Mapping[Location, tuple[str, ...]] = MappingProxyType(
    {
        ("cluster", "kubernetes_version"): ("kube_version",),
        ("cluster", "container_manager"): ("container_manager",),
        ("cluster", "network", "plugin"): ("kube_network_plugin",),
        (
            "cluster",
            "network",
            "encapsulation",
        ): network_plugins.ENCAPSULATION_VARIABLES,
        ("cluster", "network", "mtu"): (
            *network_plugins.MTU_VARIABLES.values(),
            "calico_veth_mtu",
        ),
        ("cluster", "registries"): _REGISTRIES,
        ("private_registry_connection_info",): _REGISTRIES,
        ("cluster", "offline", "files_repo"): ("files_repo", *_BASE_URLS),
        ("cluster", "offline", "registry_host"): ("registry_host", *_IMAGE_REPOS),
        ("cluster", "storage", "cinder"): (
            "cinder_csi_enabled",
            *(f"cinder_{name}" for name in _LOGIN),
        ),
        ("cluster", "openstack", "cloud_controller"): (
            *("cloud_provider", "external_cloud_provider"),
            *(f"external_openstack_{name}" for name in _LOGIN),
            "kubelet_config_extra_args",
        ),
        ("cluster", "openstack", "load_balancer_subnet_id"): (
            "external_openstack_lbaas_subnet_id",
        ),
        ("cluster", "openstack", "load_balancer_floating_network_id"): (
            "external_openstack_lbaas_floating_network_id",
        ),
        ("cluster", "storage", "local_path"): ("local_path_provisioner_enabled",),
        ("cluster", "storage", "local_volumes"): ("local_volume_provisioner_enabled",),
        ("cluster", "storage", "ceph_rbd"): (
            *("rbd_provisioner_enabled", "rbd_provisioner_monitors"),
            *("rbd_provisioner_pool", "rbd_provisioner_admin_id"),
            *("rbd_provisioner_secret", "rbd_provisioner_user_id"),
            "rbd_provisioner_user_secret",
        ),
        ("cluster", "storage", "cephfs"): (
            *("cephfs_provisioner_enabled", "cephfs_provisioner_monitors"),
            *("cephfs_provisioner_admin_id", "cephfs_provisioner_secret"),
        ),
        ("cluster", "authentication", "oidc"): (
            *("kube_oidc_auth", "kube_oidc_url", "kube_oidc_client_id"),
            *("kube_oidc_ca_file", "kube_oidc_ca_cert"),
            *(f"kube_oidc_{name}" for name in _OIDC),
        ),
        ("cluster", "authentication", "webhook"): (
            *("kube_webhook_token_auth", "kube_webhook_token_auth_url"),
            "kube_webhook_token_auth_url_skip_tls_verify",
            "kube_webhook_token_auth_ca_data",
        ),
        **{("cluster", name): (variable,) for name, variable in _FLAGS.items()},
        ("master_node", "node_labels"): ("node_labels",),
        ("worker_node", "node_labels"): ("node_labels",),
        ("master_node", "node_taints"): ("node_taints",),
        ("worker_node", "node_taints"): ("node_taints",),
        ("master_node", "compute_host_label"): ("node_labels",),
        ("worker_node", "compute_host_label"): ("node_labels",),
        ("worker_node", "aspects"): ("node_labels", "node_taints"),
    }
)


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
    built: dict[str, Any] = {}
    if options.kubernetes_version:
        built["kube_version"] = f"{_LEADING_V}{options.kubernetes_version}"
    if options.container_manager:
        built["container_manager"] = options.container_manager
    built |= network.variables(options, address_family, nic_mtus)
    known = [*options.registries, *(one.as_registry() for one in private)]
    built |= registries.variables(known, options.container_manager or "containerd")
    built |= _offline(options.offline)
    if options.openstack:
        built |= options.openstack.variables(cinder=options.storage.cinder)
    built |= _storage(options.storage)
    built |= _authentication(options.authentication)
    flags = {name: getattr(options, attribute) for attribute, name in _FLAGS.items()}
    return built | {name: True for name, wanted in flags.items() if wanted}


def _offline(offline: Offline) -> dict[str, Any]:
    built: dict[str, Any] = {}
    if offline.files_repo:
        root = offline.files_repo.get_secret_value()
        built["files_repo"] = root
        built |= {name: f"{root}/{place}" for name, place in _BASE_URLS.items()}
    if offline.registry_host:
        built["registry_host"] = offline.registry_host
        built |= dict.fromkeys(_IMAGE_REPOS, offline.registry_host)
    return built


def _storage(storage: Storage) -> dict[str, Any]:
    built: dict[str, Any] = {}
    if storage.local_path:
        built["local_path_provisioner_enabled"] = True
        if storage.cinder:
            # Its class would be a second default one.
            built["local_path_provisioner_is_default_storageclass"] = "false"
    if storage.local_volumes:
        built["local_volume_provisioner_enabled"] = True
    rbd, cephfs = storage.ceph_rbd, storage.cephfs
    if rbd:
        built |= {
            "rbd_provisioner_enabled": True,
            "rbd_provisioner_monitors": ",".join(rbd.monitors),
            "rbd_provisioner_pool": rbd.pool,
            "rbd_provisioner_admin_id": rbd.admin_id,
            "rbd_provisioner_secret": rbd.admin_key.get_secret_value(),
            "rbd_provisioner_user_id": rbd.user_id,
            "rbd_provisioner_user_secret": rbd.user_key.get_secret_value(),
        }
    if cephfs:
        built |= {
            "cephfs_provisioner_enabled": True,
            "cephfs_provisioner_monitors": ",".join(cephfs.monitors),
            "cephfs_provisioner_admin_id": cephfs.admin_id,
            "cephfs_provisioner_secret": cephfs.admin_key.get_secret_value(),
        }
    return built


def _authentication(authentication: Authentication) -> dict[str, Any]:
    built: dict[str, Any] = {}
    oidc, webhook = authentication.oidc, authentication.webhook
    if oidc:
        built |= {
            "kube_oidc_auth": True,
            "kube_oidc_url": oidc.issuer_url,
            "kube_oidc_client_id": oidc.client_id,
        }
        given = {name: getattr(oidc, name) for name in _OIDC}
        built |= {f"kube_oidc_{name}": value for name, value in given.items() if value}
        if oidc.ca_certificate:
            built["kube_oidc_ca_file"] = _CA_FILE
            built["kube_oidc_ca_cert"] = _base64(oidc.ca_certificate)
    if webhook:
        built |= {
            "kube_webhook_token_auth": True,
            "kube_webhook_token_auth_url": webhook.url,
            "kube_webhook_token_auth_url_skip_tls_verify": webhook.skip_tls_verify,
        }
        if webhook.ca_certificate:
            built["kube_webhook_token_auth_ca_data"] = _base64(webhook.ca_certificate)
    return built


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
