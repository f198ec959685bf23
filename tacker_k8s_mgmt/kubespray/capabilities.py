# SPDX-License-Identifier: Apache-2.0
"""What a kubespray checkout can install, and what of a request it cannot."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tacker_k8s_mgmt.kubespray import releases, removed_variables
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.versions import Minor, minor, numbers, tag
from tacker_k8s_mgmt.request.params import InstallParams

_ARCHITECTURE = "amd64"


@dataclass(frozen=True)
class Offer:
    """What a checkout states about itself; empty where it states nothing.

    :param kube_versions: Kubernetes versions, without v, the newest first.
    :param network_plugins: the values of ``kube_network_plugin``.
    :param removed_variables: the variables that it refuses.
    """

    kube_versions: tuple[str, ...] = ()
    network_plugins: frozenset[str] = frozenset()
    removed_variables: frozenset[str] = frozenset()

    @classmethod
    def from_texts(cls, checks: str, checksums: str) -> "Offer":
        """Parse the texts that :meth:`.Checkout.from_texts` describes."""
        plugins = re.search(r"\bkube_network_plugin in \[([^\[\]]*)\]", checks)
        gone = re.search(r"^( *)removed_vars:\n((?:\1 +- .*\n)*)", checks, re.MULTILINE)
        return cls(
            kube_versions=_versions(checksums),
            network_plugins=frozenset(
                re.findall(r"['\"]([\w-]+)['\"]", plugins[1]) if plugins else ()
            ),
            removed_variables=frozenset(
                re.findall(r"^ *- (\w+)", gone[2], re.MULTILINE) if gone else ()
            ),
        )


def _versions(checksums: str) -> tuple[str, ...]:
    section = re.search(
        rf"^  {_ARCHITECTURE}:\n((?:    .*\n)*)", f"{checksums}\n", re.MULTILINE
    )
    if section is None:
        return ()
    versions = re.findall(r"^    v?(1\.\d+\.\d+): *\S", section[1], re.MULTILINE)
    return tuple(sorted(set(versions), key=numbers, reverse=True))


def findings(
    version: str, at: Minor, offer: Offer, params: InstallParams
) -> Iterator[str]:
    """What a kubespray cannot do of a request, one sentence each, with what to do.

    :param version: kubespray's version, for the sentences.
    :param at: its minor release.
    """
    yield from _kubernetes(version, offer, params)
    yield from _plugin(version, at, offer, params)
    yield from _registries(version, at, params)
    yield from _storage(version, at, params)
    files_repo = params.cluster.offline.files_repo
    if files_repo and at < releases.BASE_URLS_SINCE:
        yield (
            f"kubespray {version} takes no base URLs for downloads, which "
            "cluster.offline.files_repo needs: put a checkout of "
            f"{tag(releases.BASE_URLS_SINCE)} or newer there, or set each "
            "*_download_url in kubespray_vars as its "
            "inventory/sample/group_vars/all/offline.yml has them"
        )


def _kubernetes(version: str, offer: Offer, params: InstallParams) -> Iterator[str]:
    known = offer.kube_versions
    for name, requested in (
        ("cluster.kubernetes_version", params.cluster.kubernetes_version),
        ("kubespray_vars.kube_version", params.kubespray_vars.get("kube_version")),
    ):
        plain = str(requested).removeprefix("v")
        if requested is None or not known or plain in known:
            continue
        same = [other for other in known if minor(other) == minor(plain)]
        nearest = f"; of that minor release, {same[0]} is the newest" if same else ""
        yield (
            f"{name}: kubespray {version} cannot install Kubernetes {plain}: it can "
            f"install {known[-1]} to {known[0]}{nearest}"
        )


def _plugin(
    version: str, at: Minor, offer: Offer, params: InstallParams
) -> Iterator[str]:
    offered = offer.network_plugins
    if not offered and at in releases.RELEASES:
        offered = network_plugins.offered(at)
    variable = "kube_network_plugin"
    for name, plugin in (
        ("cluster.network.plugin", params.cluster.network.plugin),
        (f"kubespray_vars.{variable}", params.kubespray_vars.get(variable)),
    ):
        if plugin is not None and offered and plugin not in offered:
            yield (
                f"{name}: kubespray {version} has no network plugin {plugin}; it has "
                f"{', '.join(sorted(offered))}"
            )


def _registries(version: str, at: Minor, params: InstallParams) -> Iterator[str]:
    registries = params.cluster.registries
    certified = ["ca_file of cluster.registries"] * any(
        registry.ca_file for registry in registries
    )
    if params.container_engine == "containerd":
        certified += ["certificate_path of private_registry_connection_info"] * any(
            one.certificate_file("containerd") for one in params.private_registries
        )
    if at < releases.REGISTRY_CA_SINCE and certified:
        yield (
            f"kubespray {version} gives containerd no CA certificates, which "
            f"{' and '.join(certified)} asks for: put a checkout of "
            f"{tag(releases.REGISTRY_CA_SINCE)} or newer there, or add "
            "the certificate to those of the VMs' operating system"
        )
    logins = sum(len(registry.hosts) for registry in registries if registry.username)
    if (
        params.cluster.container_manager == "crio"
        and at < releases.CRIO_LOGINS_SINCE
        and logins > 1
    ):
        yield (
            f"kubespray {version} logs CRI-O in to one registry only, and "
            f"cluster.registries has {logins} with a login: put a checkout of "
            f"{tag(releases.CRIO_LOGINS_SINCE)} or newer there, or use "
            "containerd"
        )


def _storage(version: str, at: Minor, params: InstallParams) -> Iterator[str]:
    storage = params.cluster.storage
    for name, option, feature in (
        ("ceph_rbd", storage.ceph_rbd, "rbd_provisioner_"),
        ("cephfs", storage.cephfs, "cephfs_provisioner_"),
    ):
        gone = removed_variables.FEATURES[feature]
        if option and at >= gone.since:
            yield (
                f"cluster.storage.{name}: kubespray {version} has no provisioner for "
                f"it since {tag(gone.since)}; {gone.instead}"
            )
