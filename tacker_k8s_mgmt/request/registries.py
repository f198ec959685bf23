# SPDX-License-Identifier: Apache-2.0
"""Private registries and mirrors, and the container engines' variables for them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cryptography import x509
from pydantic import SecretStr

from tacker_k8s_mgmt.model import urls
from tacker_k8s_mgmt.request import field_types, option_types
from tacker_k8s_mgmt.request.key_aliases import Structure

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

    prefix: option_types.Registry
    """The registry as in the names of images: docker.io, or registry.example.org:5000.
    """
    mirrors: tuple[option_types.Url, ...] = ()
    """List of URLs to pull from in its place, in this order. Default: the registry
    itself, by https."""
    username: option_types.OptionalText = None
    """User name at these, where they want a login."""
    password: option_types.OptionalSecret = None
    """Password of that user."""
    ca_file: option_types.OptionalFile = None
    """Absolute path, on every node, of a file with their CA certificate (containerd,
    from v2.28 on). The image of the VMs has to hold it."""
    skip_tls_verify: field_types.Flag = False
    """Pull images from them without verifying their certificate. Default: false."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The URLs from which images are pulled."""
        return self.mirrors or (f"https://{self.prefix}",)


class PrivateRegistry(Structure):
    """A registry as the kubeadm driver's user guide describes it."""

    connection_type: option_types.Connection
    """0 for http, 1 for https."""
    server: option_types.Registry
    """Host of the registry, with its port."""
    username: option_types.OptionalText = None
    """User name, where the registry wants a login."""
    password: option_types.OptionalSecret = None
    """Password of that user."""
    certificate_path: field_types.PackagePath | None = None
    """Path in the VNF package of the CA certificate of the registry, in PEM. It is
    copied to the nodes, whose container engine trusts it for this registry."""
    hosts_string: option_types.OptionalHostsEntry = None
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
        x509.load_pem_x509_certificates(content)
    except ValueError:
        return "is no certificate in PEM (-----BEGIN CERTIFICATE-----)"
    return ""


def variables(registries: Sequence[Registry], engine: str) -> dict[str, Any]:
    """The variables of a container engine: containerd, crio or docker.

    What Docker lacks, logins and mirrors of other registries than docker.io, is refused
    beforehand (:mod:`.option_conflicts`).
    """
    if not registries:
        return {}
    if engine == "docker":
        return _for_docker(registries)
    logins = [
        {
            "registry": urls.parts(url).netloc,
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
            urls.parts(url).netloc
            for r in registries
            for url in r.hosts
            if r.skip_tls_verify or url.startswith("http://")
        ),
    }
    unique = {name: list(dict.fromkeys(items)) for name, items in lists.items()}
    return {name: items for name, items in unique.items() if items}
