"""The structure ``cluster``: what is installed, and how.

Each attribute becomes variables of kubespray
(:mod:`tacker_k8s_mgmt.kubespray.option_variables`); one that is not given leaves
kubespray's own default. Every field's description is the text of the user
documentation.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, SecretStr

from tacker_k8s_mgmt.model import kubespray_releases, redaction
from tacker_k8s_mgmt.request import field_types, option_types
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.openstack_options import OpenStack
from tacker_k8s_mgmt.request.registries import Registry

_PLUGINS = "calico, cilium, flannel, kube-ovn, kube-router, weave (up to v2.28), ..."


class Network(Structure):
    """The network plugin of the pods."""

    plugin: option_types.OptionalText = Field(
        default=None,
        description="Network plugin (CNI), as the kubespray release offers it: "
        f"{_PLUGINS} Default: calico.",
    )
    encapsulation: Literal["vxlan", "ipip", "geneve", "none"] | None = Field(
        default=None,
        description="How the plugin carries pods' packets between nodes: vxlan, ipip "
        "or none (calico), vxlan or geneve (cilium), vxlan or none (flannel), geneve "
        "(kube-ovn). Default: the first of these.",
    )
    mtu: option_types.OptionalMtu = Field(
        default=None,
        description="MTU of the pods' interfaces (calico, cilium, kube-ovn, weave): "
        "bytes, or the word nodes, which takes the smallest MTU of all nodes' network "
        "interfaces less what the encapsulation needs. Default: the plugin finds out.",
    )


class Offline(Structure):
    """Where nodes get what they cannot get from the Internet."""

    files_repo: option_types.OptionalUrlWithLogin = Field(
        default=None,
        description="URL of an HTTP server with kubespray's files, laid out as its "
        "contrib/offline does it: github.com, dl.k8s.io, storage.googleapis.com and "
        "get.helm.sh are directories there. May hold credentials. From v2.25 on.",
    )
    registry_host: option_types.OptionalImageHost = Field(
        default=None,
        description="Registry (host, port, path) from which all images come in place "
        "of registry.k8s.io, gcr.io, ghcr.io, docker.io and quay.io.",
    )


class CephRbd(Structure):
    """Volumes on Ceph's block devices."""

    monitors: tuple[option_types.Registry, ...] = Field(
        min_length=1, description="List of Ceph's monitors, each host:port."
    )
    pool: option_types.Text = Field(default="kube", description="Pool. Default: kube.")
    admin_id: option_types.Text = Field(
        default="admin", description="User who makes volumes. Default: admin."
    )
    admin_key: option_types.Secret = Field(description="Key of that user.")
    user_id: option_types.Text = Field(
        default="kube", description="User who mounts volumes. Default: kube."
    )
    user_key: option_types.Secret = Field(description="Key of that user.")


class CephFs(Structure):
    """Volumes on a CephFS."""

    monitors: tuple[option_types.Registry, ...] = Field(
        min_length=1, description="List of Ceph's monitors, each host:port."
    )
    admin_id: option_types.Text = Field(
        default="admin", description="User who makes volumes. Default: admin."
    )
    admin_key: option_types.Secret = Field(description="Key of that user.")


class Storage(Structure):
    """Where persistent volumes come from."""

    cinder: field_types.Flag = Field(
        default=False,
        description="Volumes of OpenStack, by the Cinder CSI driver, and a default "
        "StorageClass cinder-csi for them; needs cluster.openstack. Default: false.",
    )
    local_path: field_types.Flag = Field(
        default=False,
        description="Directories on the nodes, made on demand below "
        "/opt/local-path-provisioner. Default: false.",
    )
    local_volumes: field_types.Flag = Field(
        default=False,
        description="File systems that are mounted below /mnt/disks on the nodes. "
        "Default: false.",
    )
    ceph_rbd: CephRbd | None = Field(
        default=None,
        description="Ceph block devices, by kubespray's provisioner. Up to v2.27.",
    )
    cephfs: CephFs | None = Field(
        default=None, description="CephFS, by kubespray's provisioner. Up to v2.27."
    )


class Oidc(Structure):
    """Users come from an OpenID Connect provider."""

    issuer_url: option_types.Url = Field(description="URL of the provider; https.")
    client_id: option_types.Text = Field(description="Client that tokens are made for.")
    username_claim: option_types.OptionalText = Field(
        default=None, description="Claim with the user's name. Default: sub."
    )
    username_prefix: option_types.OptionalText = Field(
        default=None, description="What is put before the user's name, such as oidc:."
    )
    groups_claim: option_types.OptionalText = Field(
        default=None, description="Claim with the user's groups."
    )
    groups_prefix: option_types.OptionalText = Field(
        default=None, description="What is put before each group, such as oidc:."
    )
    ca_certificate: option_types.OptionalCertificate = Field(
        default=None, description="The provider's CA certificate, as PEM text."
    )


class Webhook(Structure):
    """Tokens are shown to a service, such as k8s-keystone-auth for Keystone's."""

    url: option_types.Url = Field(
        description="URL of the service, such as https://192.0.2.7:8443/webhook."
    )
    ca_certificate: option_types.OptionalCertificate = Field(
        default=None, description="The service's CA certificate, as PEM text."
    )
    skip_tls_verify: field_types.Flag = Field(
        default=False,
        description="Believe whoever answers, without a certificate. Default: false.",
    )


class Authentication(Structure):
    """Who may use the Kubernetes API, beside certificates and service accounts."""

    oidc: Oidc | None = Field(default=None, description="OpenID Connect.")
    webhook: Webhook | None = Field(
        default=None, description="A token webhook, for example Keystone's."
    )


class Cluster(Structure):
    """What is installed; everything here has a default."""

    kubernetes_version: option_types.OptionalVersion = Field(
        default=None,
        description="Kubernetes version such as 1.31.9, one that the kubespray has "
        "checksums of. Default: the newest that this kubespray holds for stable.",
    )
    container_manager: Literal["containerd", "crio", "docker"] | None = Field(
        default=None, description="Container engine. Default: containerd."
    )
    network: Network = Field(
        default_factory=Network, description="The pods' network plugin."
    )
    registries: tuple[Registry, ...] = Field(
        default=(),
        description="List of private registries and mirrors, each a structure.",
    )
    offline: Offline = Field(
        default_factory=Offline,
        description="Servers that stand in for the Internet.",
    )
    openstack: OpenStack | None = Field(
        default=None, description="The OpenStack that the cluster itself may use."
    )
    storage: Storage = Field(
        default_factory=Storage, description="Where persistent volumes come from."
    )
    authentication: Authentication = Field(
        default_factory=Authentication, description="Further users of the API."
    )
    helm: field_types.Flag = Field(
        default=False,
        description="Install Helm on the control plane. Default: false.",
    )
    local_registry: field_types.Flag = Field(
        default=False,
        description="Run an image registry in the cluster. Default: false.",
    )
    metrics_server: field_types.Flag = Field(
        default=False,
        description="Install the metrics server (kubectl top, autoscaling). "
        "Default: false.",
    )
    audit_log: field_types.Flag = Field(
        default=False,
        description="Have the API servers log who asked for what, to "
        "/var/log/kubernetes/audit on the control plane. Default: false.",
    )
    encrypt_secrets: field_types.Flag = Field(
        default=False,
        description="Have the API servers encrypt Secrets in etcd. Default: false.",
    )
    renew_certificates: field_types.Flag = Field(
        default=True,
        description="Have each control plane renew its certificates once a month; "
        "otherwise they end after a year. Default: true, unless kubespray_vars sets "
        "kube_external_ca_mode.",
    )

    @property
    def network_plugin(self) -> str:
        """The one that is asked for, or kubespray's default."""
        return self.network.plugin or kubespray_releases.DEFAULT_NETWORK_PLUGIN

    def secrets(self) -> Iterator[str]:
        """Every secret text in it."""
        if self.offline.files_repo:
            yield from redaction.in_url(self.offline.files_repo.get_secret_value())
        found: list[SecretStr | None] = [one.password for one in self.registries]
        if self.openstack:
            found += self.openstack.secrets()
        ceph, cephfs = self.storage.ceph_rbd, self.storage.cephfs
        found += [ceph.admin_key, ceph.user_key] if ceph else []
        found += [cephfs.admin_key] if cephfs else []
        yield from (secret.get_secret_value() for secret in found if secret)
