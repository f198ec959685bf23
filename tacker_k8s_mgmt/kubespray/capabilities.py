"""What a kubespray can install, and what of a request it cannot."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt.kubespray import removed_variables
from tacker_k8s_mgmt.kubespray.removed_variables import Minor
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.versions import minor, numbers
from tacker_k8s_mgmt.request.cluster_options import Cluster

_ARCHITECTURE = "amd64"


@dataclass(frozen=True)
class Offer:
    """What a checkout says about itself; empty where it says nothing.

    :param kube_versions: Kubernetes versions, without v, the newest first.
    :param network_plugins: what ``kube_network_plugin`` may be.
    :param removed_variables: those that make it stop.
    """

    kube_versions: tuple[str, ...] = ()
    network_plugins: frozenset[str] = frozenset()
    removed_variables: frozenset[str] = frozenset()

    @classmethod
    def from_texts(cls, checks: str, checksums: str) -> "Offer":
        """Read it from the texts that :meth:`.Checkout.from_texts` describes."""
        plugins = re.search(r"\bkube_network_plugin in \[([^\]]*)\]", checks)
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
    found = (
        re.findall(r"^    v?(1\.\d+\.\d+): *\S", section[1], re.M) if section else ()
    )
    return tuple(sorted(set(found), key=numbers, reverse=True))


@dataclass(frozen=True)
class Asked:
    """What of a request depends on the kubespray.

    :param variables: the user's ``kubespray_vars``.
    """

    cluster: Cluster
    variables: Mapping[str, Any]


def findings(version: str, at: Minor, offer: Offer, asked: Asked) -> Iterator[str]:
    """What this kubespray cannot do, one sentence each, with what can be done instead.

    :param version: kubespray's version, for the sentences.
    :param at: its minor release.
    """
    yield from _kubernetes(version, offer, asked)
    yield from _plugin(version, at, offer, asked)
    yield from _registries(version, at, asked)
    yield from _storage(version, at, asked)
    cluster = asked.cluster
    if cluster.offline.files_repo and at < kubespray_releases.BASE_URLS_SINCE:
        yield (
            f"kubespray {version} takes no base URLs for downloads, which "
            "cluster.offline.files_repo needs: put a checkout of "
            f"{_named(kubespray_releases.BASE_URLS_SINCE)} or newer there, or set each "
            "*_download_url in kubespray_vars as its "
            "inventory/sample/group_vars/all/offline.yml has them"
        )


def _kubernetes(version: str, offer: Offer, asked: Asked) -> Iterator[str]:
    given = asked.variables.get("kube_version")
    places = (
        ("cluster.kubernetes_version", asked.cluster.kubernetes_version),
        ("kubespray_vars.kube_version", given),
    )
    for name, wanted in places:
        plain = str(wanted).removeprefix("v")
        known = offer.kube_versions
        if wanted is None or not known or plain in known:
            continue
        same = [one for one in known if minor(one) == minor(plain)]
        nearest = f"; of that minor release, {same[0]} is the newest" if same else ""
        yield (
            f"{name}: kubespray {version} cannot install Kubernetes {plain}: it can "
            f"install {known[-1]} to {known[0]}{nearest}"
        )


def _plugin(version: str, at: Minor, offer: Offer, asked: Asked) -> Iterator[str]:
    release = kubespray_releases.RELEASES.get(at)
    offered = offer.network_plugins or (release.network_plugins if release else None)
    places = (
        ("cluster.network.plugin", asked.cluster.network.plugin),
        (
            "kubespray_vars.kube_network_plugin",
            asked.variables.get("kube_network_plugin"),
        ),
    )
    for name, plugin in places:
        if plugin is not None and offered and plugin not in offered:
            yield (
                f"{name}: kubespray {version} has no network plugin {plugin}; it has "
                f"{', '.join(sorted(offered))}"
            )


def _registries(version: str, at: Minor, asked: Asked) -> Iterator[str]:
    known = asked.cluster.registries
    if at < kubespray_releases.REGISTRY_CA_SINCE and any(one.ca_file for one in known):
        yield (
            f"kubespray {version} gives containerd no CA certificates, which ca_file "
            "of cluster.registries asks for: put a checkout of "
            f"{_named(kubespray_releases.REGISTRY_CA_SINCE)} or newer there, or add "
            "the certificate to those of the VMs' operating system"
        )
    logins = sum(len(one.hosts) for one in known if one.username)
    if (
        asked.cluster.container_manager == "crio"
        and at < kubespray_releases.CRIO_LOGINS_SINCE
        and logins > 1
    ):
        yield (
            f"kubespray {version} logs CRI-O in to one registry only, and "
            f"cluster.registries has {logins} with a login: put a checkout of "
            f"{_named(kubespray_releases.CRIO_LOGINS_SINCE)} or newer there, or use "
            "containerd"
        )


def _storage(version: str, at: Minor, asked: Asked) -> Iterator[str]:
    storage = asked.cluster.storage
    for name, wanted, feature in (
        ("ceph_rbd", storage.ceph_rbd, "rbd_provisioner_"),
        ("cephfs", storage.cephfs, "cephfs_provisioner_"),
    ):
        gone = removed_variables.FEATURES[feature]
        if wanted and at >= gone.since:
            yield (
                f"cluster.storage.{name}: kubespray {version} has no provisioner for "
                f"it since {_named(gone.since)}; {gone.instead}"
            )


def _named(at: Minor) -> str:
    return f"v{at[0]}.{at[1]}"
