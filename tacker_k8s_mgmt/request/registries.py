# SPDX-License-Identifier: Apache-2.0
"""Registries of images: what nodes pull from, by each container engine's variables.

``registries`` and ``private_registry_connection_info``
    those outside of the cluster, and mirrors.
``node_registry``
    one in the cluster, for its nodes. kubespray's registry is a Service without a
    certificate (``roles/kubernetes-apps/registry``). Nodes reach a Service by its
    ClusterIP in every mode of kube-proxy, but do not resolve its name, so it gets a
    fixed address, and the container engines a mirror.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

from pydantic import SecretStr

from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.request.structure import Sets, Structure

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


def engine_variables(registries: Sequence[Registry], engine: str) -> dict[str, Any]:
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
_NAME = "registry.local:5000"
_PORT = 5000
# Kubernetes gives Services without a fixed address none of the first 16 at least
# (KEP-3070). kubespray takes the first for the API, the third for the cluster's DNS.
_POSITION = 10
#: Addresses that the network of Services has at least, for the Service to get one.
SMALLEST_NETWORK = 16


class NodeRegistry(Structure):
    """An image registry in the cluster from which its nodes pull."""

    name: Annotated[fields.RegistryAddress, Sets(*REGISTRY_VARIABLES, value=None)] = (
        _NAME
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
