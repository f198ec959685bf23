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
Registries
    private registries and mirrors, and the container engines' variables for them.
``node_registry``
    a registry in the cluster, for its nodes. kubespray's registry is a Service without
    a certificate (``roles/kubernetes-apps/registry``). Nodes reach a Service by its
    ClusterIP in every mode of kube-proxy, but do not resolve its name, so it gets a
    fixed address, and the container engines a mirror.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr

from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.model.network_plugins import tag
from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.request.fields import (
    Flag,
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
from tacker_k8s_mgmt.request.structure import (
    CHANGEABLE,
    SET_AT_CREATION,
    Fixed,
    InvalidAttribute,
    Sets,
    Structure,
    opened,
)

_OIDC_CA_FILE = "{{ kube_cert_dir }}/oidc-ca.pem"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


class Oidc(Structure):
    """Users come from an OpenID Connect provider."""

    issuer_url: Annotated[Url, Sets("kube_oidc_url")]
    """URL of the provider; https."""
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
        login = {_LOGIN[name]: opened(getattr(self, name)) for name in used}
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
        tuple[RegistryAddress, ...],
        Sets("cephfs_provisioner_monitors", value=",".join),
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


_DOCKER_HUB = "docker.io"
_LARGEST_CERTIFICATE = 256 * 1024
# Where container engines look for certificates of registries, one directory each.
_CERTIFICATES = {
    "containerd": "/etc/containerd/certs.d",
    "crio": "/etc/containers/certs.d",
    "docker": "/etc/docker/certs.d",
}
#: The variables that registries become, of all container engines.
REGISTRY_VARIABLES = (
    *("containerd_registries_mirrors", "containerd_registry_auth"),
    *("crio_registries", "crio_registry_auth"),
    *("docker_registry_mirrors", "docker_insecure_registries"),
)


class Registry(Structure):
    """A registry, the mirrors that answer for it, and the login there."""

    prefix: fields.RegistryAddress
    """The registry as in the names of images: docker.io, or registry.example.org:5000.
    """
    mirrors: tuple[fields.Url, ...] = ()
    """List of URLs to pull from in its place, in this order. Default: the registry
    itself, by https."""
    username: fields.OptionalText = None
    """User name at these, where they want a login."""
    password: fields.OptionalSecretText = None
    """Password of that user."""
    ca_file: fields.OptionalFile = None
    """Absolute path, on every node, of a file with their CA certificate (containerd,
    from v2.28 on). The image of the VMs has to hold it."""
    skip_tls_verify: fields.Flag = False
    """Pull images from them without verifying their certificate. Default: false."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The URLs from which images are pulled."""
        return self.mirrors or (f"https://{self.prefix}",)


class PrivateRegistry(Structure):
    """A registry as the kubeadm driver's user guide describes it."""

    connection_type: fields.Connection
    """0 for http, 1 for https."""
    server: fields.RegistryAddress
    """Host of the registry, with its port."""
    username: fields.OptionalText = None
    """User name, where the registry wants a login."""
    password: fields.OptionalSecretText = None
    """Password of that user."""
    certificate_path: fields.PackagePath | None = None
    """Path in the VNF package of the CA certificate of the registry, in PEM. It is
    copied to the nodes, whose container engine trusts it for this registry."""
    hosts_string: fields.OptionalHostsEntry = None
    """Address and names of the registry, as in /etc/hosts, where the nodes get it."""

    def as_registry(self) -> Registry:
        """The same as an item of ``cluster.registries``."""
        scheme = "https" if self.connection_type else "http"
        return Registry(
            prefix=self.server,
            mirrors=(f"{scheme}://{self.server}",),
            username=self.username,
            password=self.password,
            ca_file=self.certificate_file("containerd"),
        )

    def certificate_file(self, engine: str) -> str | None:
        """Path of its CA certificate on the nodes; None if it has none.

        Docker and CRI-O look there by themselves.
        """
        if not (self.certificate_path and self.connection_type):
            return None
        return f"{_CERTIFICATES[engine]}/{self.server}/tacker-k8s-mgmt.crt"


def hosts_entries(registries: Sequence[PrivateRegistry]) -> tuple[str, ...]:
    """The lines for /etc/hosts on the nodes."""
    entries = (one.hosts_string for one in registries if one.hosts_string)
    return tuple(dict.fromkeys(entries))


def certificate_problems(
    registries: Sequence[PrivateRegistry], read: Callable[[str], bytes | None]
) -> Iterator[str]:
    """What is wrong with the CA certificates in a VNF package.

    :param read: returns the file at a path in the package; None if there is none.
    """
    for number, registry in enumerate(registries):
        path = registry.certificate_path
        if path is None or not registry.connection_type:
            continue
        where = f"private_registry_connection_info.{number}.certificate_path"
        content = read(path)
        if content is None:
            yield f"{where}: the VNF package has no file {path}"
        elif why := _unusable(content):
            yield f"{where}: {path} {why}"


def _unusable(content: bytes) -> str:
    if len(content) > _LARGEST_CERTIFICATE:
        return f"has more than {_LARGEST_CERTIFICATE} bytes"
    if b"PRIVATE KEY" in content:
        return "has a private key, which must not be on the nodes"
    try:
        from cryptography import x509  # late: few requests have a certificate

        x509.load_pem_x509_certificates(content)
    except ValueError:
        return "is no certificate in PEM (-----BEGIN CERTIFICATE-----)"
    return ""


def variables(registries: Sequence[Registry], engine: str) -> dict[str, Any]:
    """The variables of a container engine: containerd, crio or docker.

    What Docker lacks, logins and mirrors of other registries than docker.io, is refused
    beforehand (:mod:`.cross_checks`).
    """
    if not registries:
        return {}
    if engine == "docker":
        return _for_docker(registries)
    logins = [
        {
            "registry": untrusted.url_parts(url).netloc,
            "username": registry.username,
            "password": registry.password.get_secret_value(),
        }
        for registry in registries
        for url in registry.hosts
        if registry.username and isinstance(registry.password, SecretStr)
    ]
    if engine == "crio":
        made: dict[str, Any] = {"crio_registries": [_for_crio(r) for r in registries]}
    else:
        mirrored = [_for_containerd(registry) for registry in registries]
        made = {"containerd_registries_mirrors": mirrored}
    return made | ({f"{engine}_registry_auth": logins} if logins else {})


def _for_containerd(registry: Registry) -> dict[str, Any]:
    ca = {"ca": registry.ca_file} if registry.ca_file else {}
    return {
        "prefix": registry.prefix,
        "mirrors": [
            {
                "host": url,
                "capabilities": ["pull", "resolve"],
                "skip_verify": registry.skip_tls_verify,
                **ca,
            }
            for url in registry.hosts
        ],
    }


def _for_crio(registry: Registry) -> dict[str, Any]:
    mirrors = [
        {
            "location": url.partition("://")[2],
            "insecure": registry.skip_tls_verify or url.startswith("http://"),
        }
        for url in registry.mirrors
    ]
    return {
        "prefix": registry.prefix,
        "location": registry.prefix,
        "insecure": registry.skip_tls_verify,
        # kubespray's template needs it for every registry.
        "unqualified": False,
        **({"mirrors": mirrors} if mirrors else {}),
    }


def _for_docker(registries: Sequence[Registry]) -> dict[str, Any]:
    lists = {
        "docker_registry_mirrors": (
            url for r in registries if r.prefix == _DOCKER_HUB for url in r.mirrors
        ),
        "docker_insecure_registries": (
            untrusted.url_parts(url).netloc
            for r in registries
            for url in r.hosts
            if r.skip_tls_verify or url.startswith("http://")
        ),
    }
    unique = {name: list(dict.fromkeys(items)) for name, items in lists.items()}
    return {name: items for name, items in unique.items() if items}


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

    name: Annotated[fields.RegistryAddress, Sets(*REGISTRY_VARIABLES, value=None)] = (
        NAME
    )
    """The registry as in the names of images: registry.local:5000/app:1. It needs no
    DNS. Default: registry.local:5000."""
    address: Annotated[fields.OptionalAddress, Sets(ADDRESS_VARIABLE, value=None)] = (
        None
    )
    """Address of the registry's Service, in master_node.cluster_cidr. Default: the
    tenth there."""
    storage_class: Annotated[fields.OptionalText, Sets("registry_storage_class")] = None
    """StorageClass of the volume for images, such as local-path or cinder-csi.
    Default: none; images are lost when the registry's pod ends."""
    size: Annotated[fields.OptionalQuantity, Sets("registry_disk_size")] = None
    """Size of that volume, such as 20Gi. Default: 10Gi."""

    def service_address(
        self, services: network_plugins.Network
    ) -> network_plugins.Address:
        """The address of the registry's Service.

        :param services: the network of Services.
        """
        return self.address or services[_POSITION]

    def as_registry(self, services: network_plugins.Network) -> Registry:
        """The same as an item of ``cluster.registries``."""
        address = self.service_address(services)
        host = f"[{address}]" if address.version == 6 else address
        return Registry(prefix=self.name, mirrors=(f"http://{host}:{_PORT}",))


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
        OptionalText,
        Sets(*network_plugins.ENCAPSULATION_VARIABLES, value=None),
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
