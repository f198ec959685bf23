# SPDX-License-Identifier: Apache-2.0
"""The structure ``cluster``: what is installed, and how.

Each attribute declares its kubespray variables and whether it may change later
(:mod:`.structure`); without it, kubespray's default applies. The docstring of each
field is its text in the user documentation.

``authentication``
    who may use the Kubernetes API.
``openstack``
    the OpenStack that the cluster itself uses.
``storage``
    where persistent volumes come from.

Its registries are in :mod:`.registries`.
"""

import base64
from collections.abc import Iterator
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import Field

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.network_plugins import tag
from tacker_k8s_mgmt.request.fields import (
    Flag,
    HttpsUrl,
    OptionalCertificate,
    OptionalFile,
    OptionalImageHost,
    OptionalMtu,
    OptionalSecretText,
    OptionalText,
    OptionalUrlWithLogin,
    OptionalVersion,
    RegistryAddress,
    SecretText,
    Text,
    Url,
)
from tacker_k8s_mgmt.request.registries import (
    REGISTRY_VARIABLES,
    NodeRegistry,
    Registry,
)
from tacker_k8s_mgmt.request.structure import (
    CHANGEABLE,
    SET_AT_CREATION,
    Fixed,
    InvalidAttribute,
    Sets,
    Structure,
    plain_value,
)

_OIDC_CA_FILE = "{{ kube_cert_dir }}/oidc-ca.pem"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


class Oidc(Structure):
    """Users come from an OpenID Connect provider."""

    issuer_url: Annotated[HttpsUrl, Sets("kube_oidc_url")]
    """URL of the provider, https, exactly as its tokens name it."""
    client_id: Annotated[Text, Sets("kube_oidc_client_id")]
    """Client that tokens are issued for."""
    username_claim: Annotated[OptionalText, Sets("kube_oidc_username_claim")] = None
    """Claim with the user's name. Default: sub."""
    username_prefix: Annotated[OptionalText, Sets("kube_oidc_username_prefix")] = None
    """What is put before the user's name, such as oidc:."""
    groups_claim: Annotated[OptionalText, Sets("kube_oidc_groups_claim")] = None
    """Claim with the user's groups."""
    groups_prefix: Annotated[OptionalText, Sets("kube_oidc_groups_prefix")] = None
    """What is put before each group, such as oidc:."""
    ca_certificate: Annotated[
        OptionalCertificate,
        Sets("kube_oidc_ca_file", value=lambda _: _OIDC_CA_FILE),
        Sets("kube_oidc_ca_cert", value=_base64),
    ] = None
    """The provider's CA certificate, as PEM text."""


class Webhook(Structure):
    """Tokens are shown to a service, such as k8s-keystone-auth for Keystone's."""

    url: Annotated[Url, Sets("kube_webhook_token_auth_url")]
    """URL of the service, such as https://192.0.2.7:8443/webhook."""
    ca_certificate: Annotated[
        OptionalCertificate, Sets("kube_webhook_token_auth_ca_data", value=_base64)
    ] = None
    """The service's CA certificate, as PEM text."""
    skip_tls_verify: Flag = False
    """Do not verify the service's certificate. Default: false."""
    authorization: Annotated[
        Flag,
        Sets("kube_webhook_authorization"),
        Sets("authorization_modes", value=lambda _: ["Node", "RBAC", "Webhook"]),
        Sets("kube_webhook_authorization_url", value=None),
        Sets("kube_webhook_authorization_url_skip_tls_verify", value=None),
    ] = False
    """Ask the service, too, who may do what, after Kubernetes' own roles (RBAC). Its
    certificate has to be of a CA that the VMs' operating system knows: kubespray passes
    no other for this. Default: false."""

    def authorization_variables(self) -> dict[str, Any]:
        """The variables of authorization that depend on several options."""
        if not self.authorization:
            return {}
        prefix = "kube_webhook_authorization_url"
        return {prefix: self.url, f"{prefix}_skip_tls_verify": self.skip_tls_verify}


class Authentication(Structure):
    """Who may use the Kubernetes API, beside certificates and service accounts."""

    oidc: Annotated[Oidc | None, Sets("kube_oidc_auth")] = None
    """OpenID Connect."""
    webhook: Annotated[
        Webhook | None,
        Sets("kube_webhook_token_auth"),
        Sets(
            "kube_webhook_token_auth_url_skip_tls_verify",
            value=attrgetter("skip_tls_verify"),
        ),
    ] = None
    """A token webhook, for example Keystone's."""


# The end of the variables' names by option.
_USER = {
    **{name: name for name in ("username", "password", "domain_id", "domain_name")},
    **{"project_id": "tenant_id", "project_name": "tenant_name"},
}
CREDENTIAL = tuple(
    f"application_credential_{part}" for part in ("id", "name", "secret")
)
_LOGIN = {
    **{name: name for name in ("auth_url", "region", *CREDENTIAL)},
    **{"ca_file": "cacert"},
    **_USER,
}


def login_variables(prefix: str) -> Iterator[str]:
    """The variables that :meth:`OpenStack.login` sets."""
    return (f"{prefix}_{end}" for end in _LOGIN.values())


class OpenStack(Structure):
    """The OpenStack below the cluster, and the cluster's login there.

    An application credential is preferable: it can be revoked without affecting others.
    kubespray needs its id, name and secret.
    """

    auth_url: Url
    """Keystone's URL, as the nodes reach it: https://.../v3."""
    region: Text
    """Name of the region."""
    application_credential_id: OptionalText = None
    """Id of an application credential."""
    application_credential_name: OptionalText = None
    """Name of that application credential."""
    application_credential_secret: OptionalSecretText = None
    """Secret of that application credential."""
    username: OptionalText = None
    """User name, where there is no application credential."""
    password: OptionalSecretText = None
    """Password of that user."""
    project_id: OptionalText = None
    """Project of that user; this or project_name."""
    project_name: OptionalText = None
    """Project of that user; this or project_id."""
    domain_id: OptionalText = None
    """Domain of that user; this or domain_name."""
    domain_name: OptionalText = None
    """Domain of that user; this or domain_id."""
    ca_file: OptionalFile = None
    """Absolute path of a file with the CA certificate of OpenStack's API: on the
    Ansible server for Cinder's driver, and at the same place on the first control plane
    for the cloud controller, as kubespray reads it."""
    cloud_controller: Annotated[
        Flag,
        Sets("cloud_provider", value=lambda _: "external"),
        Sets("external_cloud_provider", value=lambda _: "openstack"),
        Sets(*login_variables("external_openstack"), value=None),
        Sets("kubelet_config_extra_args", value=None),
    ] = False
    """Run OpenStack's cloud controller: Services of type LoadBalancer, and nodes with
    their zones and addresses. Default: false."""
    load_balancer_subnet_id: Annotated[
        OptionalText, Sets("external_openstack_lbaas_subnet_id")
    ] = None
    """Subnet of those Services' addresses (cloud controller)."""
    load_balancer_floating_network_id: Annotated[
        OptionalText, Sets("external_openstack_lbaas_floating_network_id")
    ] = None
    """Network of those Services' floating IPs (cloud controller)."""

    def login(self, prefix: str) -> dict[str, str]:
        """The login variables of the cloud controller or of the Cinder driver.

        Options without a value are set to "", because kubespray's defaults are
        environment variables of the Ansible user.

        :param prefix: ``external_openstack`` or ``cinder``.
        """
        # Keystone refuses a project beside an application credential.
        unused = _USER if self.application_credential_id is not None else {}
        used = _LOGIN.keys() - unused
        login = {_LOGIN[name]: plain_value(getattr(self, name)) for name in used}
        return {f"{prefix}_{end}": login.get(end) or "" for end in _LOGIN.values()}


LOCAL_PATH_IS_DEFAULT = "local_path_provisioner_is_default_storageclass"
# kubespray deploys the Cinder driver without a StorageClass unless
# persistent_volumes_enabled is set, none of its classes is the default, and its own
# class has the availability zone "nova", which not every site has: without a zone,
# Cinder takes the site's default. kubespray's template needs a parameter, so there is
# one with the driver's own default.
_CINDER_CLASS = {
    "name": "cinder-csi",
    "is_default": True,
    "parameters": {"csi.storage.k8s.io/fstype": "ext4"},
}


class CephRbd(Structure):
    """Volumes on Ceph's block devices."""

    monitors: Annotated[
        tuple[RegistryAddress, ...], Sets("rbd_provisioner_monitors", value=",".join)
    ] = Field(min_length=1)
    """List of Ceph's monitors, each host:port."""
    pool: Annotated[Text, Sets("rbd_provisioner_pool")] = "kube"
    """Pool. Default: kube."""
    admin_id: Annotated[Text, Sets("rbd_provisioner_admin_id")] = "admin"
    """User who makes volumes. Default: admin."""
    admin_key: Annotated[SecretText, Sets("rbd_provisioner_secret")]
    """Key of that user."""
    user_id: Annotated[Text, Sets("rbd_provisioner_user_id")] = "kube"
    """User who mounts volumes. Default: kube."""
    user_key: Annotated[SecretText, Sets("rbd_provisioner_user_secret")]
    """Key of that user."""


class CephFs(Structure):
    """Volumes on a CephFS."""

    monitors: Annotated[
        tuple[RegistryAddress, ...], Sets("cephfs_provisioner_monitors", value=",".join)
    ] = Field(min_length=1)
    """List of Ceph's monitors, each host:port."""
    admin_id: Annotated[Text, Sets("cephfs_provisioner_admin_id")] = "admin"
    """User who makes volumes. Default: admin."""
    admin_key: Annotated[SecretText, Sets("cephfs_provisioner_secret")]
    """Key of that user."""


class Storage(Structure):
    """Where persistent volumes come from."""

    cinder: Annotated[
        Flag,
        Sets("cinder_csi_enabled"),
        Sets(*login_variables("cinder"), value=None),
        Sets("persistent_volumes_enabled", is_default=True),
        Sets("storage_classes", value=lambda _: [_CINDER_CLASS], is_default=True),
        Sets(LOCAL_PATH_IS_DEFAULT, value=None, is_default=True),
    ] = False
    """Volumes of OpenStack, by the Cinder CSI driver, and a default StorageClass
    cinder-csi for them; needs cluster.openstack. Default: false."""
    local_path: Annotated[
        Flag,
        Sets("local_path_provisioner_enabled"),
        Sets(LOCAL_PATH_IS_DEFAULT, value=None, is_default=True),
    ] = False
    """Directories on the nodes, created on demand below /opt/local-path-provisioner.
    Default: false."""
    local_volumes: Annotated[Flag, Sets("local_volume_provisioner_enabled")] = False
    """File systems that are mounted below /mnt/disks on the nodes. Default: false."""
    ceph_rbd: Annotated[CephRbd | None, Sets("rbd_provisioner_enabled")] = None
    """Ceph block devices, by kubespray's provisioner. Up to v2.27."""
    cephfs: Annotated[CephFs | None, Sets("cephfs_provisioner_enabled")] = None
    """CephFS, by kubespray's provisioner. Up to v2.27."""


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

    plugin: Annotated[OptionalText, Sets("kube_network_plugin")] = Field(
        default=None,
        description="Network plugin (CNI), as the kubespray release offers it: "
        f"{_PLUGINS}, ... Default: {network_plugins.DEFAULT}.",
    )
    encapsulation: Annotated[
        OptionalText, Sets(*network_plugins.ENCAPSULATION_VARIABLES, value=None)
    ] = Field(
        default=None,
        description="How the plugin carries pods' packets between nodes: "
        f"{_ENCAPSULATIONS}. Default: the first of these.",
    )
    mtu: Annotated[
        OptionalMtu,
        Sets(*network_plugins.MTU_VARIABLES.values(), "calico_veth_mtu", value=None),
    ] = Field(
        default=None,
        description="MTU of the pods' interfaces "
        f"({', '.join(network_plugins.MTU_VARIABLES)}): bytes, or the word nodes, "
        "which takes the smallest MTU of all nodes' network interfaces less what the "
        "encapsulation needs. Default: the plugin finds out.",
    )

    @property
    def known_plugin(self) -> network_plugins.Plugin:
        """The plugin.

        :raises InvalidAttribute: there is none of that name.
        """
        name = self.plugin or network_plugins.DEFAULT
        if name not in network_plugins.PLUGINS:
            raise InvalidAttribute("plugin")
        return network_plugins.PLUGINS[name]


class Offline(Structure):
    """Where nodes get what they cannot get from the Internet."""

    files_repo: Annotated[
        OptionalUrlWithLogin,
        Sets("files_repo"),
        Sets("github_url", value="{}/github.com".format),
        Sets("dl_k8s_io_url", value="{}/dl.k8s.io".format),
        Sets("storage_googleapis_url", value="{}/storage.googleapis.com".format),
        Sets("get_helm_url", value="{}/get.helm.sh".format),
    ] = None
    """URL of an HTTP server with kubespray's files, laid out as its contrib/offline
    does it: github.com, dl.k8s.io, storage.googleapis.com and get.helm.sh are
    directories there. May hold credentials. From v2.25 on."""
    registry_host: Annotated[
        OptionalImageHost,
        Sets("registry_host", *_IMAGE_REPOS),
        Sets(_LOCAL_PATH_HELPER, value="{}/library/busybox".format),
    ] = None
    """Registry (host, port, path) from which all images come in place of
    registry.k8s.io, gcr.io, ghcr.io, docker.io and quay.io."""


class Cluster(Structure):
    """What is installed; everything here has a default."""

    kubernetes_version: Annotated[
        OptionalVersion,
        Sets("kube_version", value=lambda version: f"{_LEADING_V}{version}"),
        Fixed(
            "another version comes with an upgrade only: a change of the VNF package",
            but_by_upgrade=True,
        ),
    ] = None
    """Kubernetes version such as 1.31.9, one that the kubespray has checksums of.
    Default: the newest that this kubespray holds for stable."""
    container_manager: Annotated[
        Literal["containerd", "crio", "docker"] | None,
        Sets("container_manager"),
        Fixed("all nodes have the same"),
    ] = None
    """Container engine. Default: containerd."""
    network: Annotated[Network, SET_AT_CREATION] = Field(default_factory=Network)
    """The pods' network plugin."""
    registries: Annotated[
        tuple[Registry, ...], Sets(*REGISTRY_VARIABLES, value=None), CHANGEABLE
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
    helm: Annotated[Flag, Sets("helm_enabled"), _SET_UP] = False
    """Install Helm on the control plane, and have Tacker's v1 API install charts there:
    the VIM gets a login for it. Default: false."""
    local_registry: Annotated[Flag, Sets("registry_enabled"), _SET_UP] = False
    """Run an image registry in the cluster. Default: false."""
    node_registry: Annotated[NodeRegistry | None, Sets("registry_enabled"), _SET_UP] = (
        None
    )
    """Run an image registry in the cluster, and have the container engine of every node
    pull from it. Default: none."""
    metrics_server: Annotated[Flag, Sets("metrics_server_enabled"), _SET_UP] = False
    """Install the metrics server (kubectl top, autoscaling). Default: false."""
    audit_log: Annotated[Flag, Sets("kubernetes_audit"), _SET_UP] = False
    """Have the API servers log who asked for what, to /var/log/kubernetes/audit on the
    control plane. Default: false."""
    encrypt_secrets: Annotated[Flag, Sets("kube_encrypt_secret_data"), _SET_UP] = False
    """Have the API servers encrypt Secrets in etcd. Default: false."""
    renew_certificates: Annotated[Flag, Sets("auto_renew_certificates"), _SET_UP] = True
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
