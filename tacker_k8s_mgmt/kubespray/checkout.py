# SPDX-License-Identifier: Apache-2.0
"""The kubespray checkout and Ansible on the Ansible server, against a request.

It finds what is wrong with the installed software, and what of the request the checkout
cannot install.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.kubespray import releases
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.network_plugins import Minor, minor, numbers, tag
from tacker_k8s_mgmt.request.reader import ClusterRequest

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


def capability_findings(
    version: str, at: Minor, offer: Offer, params: ClusterRequest
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


def _kubernetes(version: str, offer: Offer, params: ClusterRequest) -> Iterator[str]:
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
    version: str, at: Minor, offer: Offer, params: ClusterRequest
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


def _registries(version: str, at: Minor, params: ClusterRequest) -> Iterator[str]:
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


def _storage(version: str, at: Minor, params: ClusterRequest) -> Iterator[str]:
    storage = params.cluster.storage
    for name, option, feature in (
        ("ceph_rbd", storage.ceph_rbd, "rbd_provisioner_"),
        ("cephfs", storage.cephfs, "cephfs_provisioner_"),
    ):
        gone = releases.FEATURES[feature]
        if option and at >= gone.since:
            yield (
                f"cluster.storage.{name}: kubespray {version} has no provisioner for "
                f"it since {tag(gone.since)}; {gone.instead}"
            )


#: Files of a checkout with its version and the versions of Ansible that it supports.
GALAXY_FILE = "galaxy.yml"
ANSIBLE_VERSION_FILE = "playbooks/ansible_version.yml"
#: Files with the values that a release refuses, of newer releases first.
CHECK_FILES = (
    "roles/validate_inventory/tasks/main.yml",
    "roles/kubernetes/preinstall/tasks/0040-verify-settings.yml",
)
#: Files with the checksums of what a release can install. They are large; only the
#: section :data:`CHECKSUM_SECTION` is needed.
CHECKSUM_FILES = (
    "roles/kubespray_defaults/vars/main/checksums.yml",
    "roles/kubespray_defaults/defaults/main/checksums.yml",
    "roles/kubespray-defaults/defaults/main/checksums.yml",
)
CHECKSUM_SECTION = "kubelet_checksums"

#: Requirements of all supported releases in Ansible's Python: the package for their own
#: check (:data:`ANSIBLE_VERSION_FILE`), and the collections that every node needs.
#: :file:`galaxy.yml` names further ones, which only some options need.
PACKAGE = "netaddr"
COLLECTIONS = ("ansible.utils", "ansible.posix", "community.general")
BESIDE_ANSIBLE = (PACKAGE, *COLLECTIONS)

_NO_SSHPASS = (
    "sshpass, which Ansible needs for logins with a password, was not found on the "
    "Ansible server: install the package sshpass"
)


@dataclass(frozen=True)
class Checkout:
    """The kubespray at ``kubespray_root_path``.

    :param found: whether there is any.
    :param version: "" if it is not stated.
    :param ansible: ansible-core from (included) and to (excluded), as stated or as of
        the release; None if neither is known.
    :param offer: what it can install, as stated.
    :param collections: those of :data:`COLLECTIONS` among its stated dependencies.
    """

    found: bool
    version: str
    ansible: tuple[str, str] | None
    offer: Offer = field(default_factory=Offer)
    collections: frozenset[str] = frozenset()

    @classmethod
    def from_texts(
        cls,
        galaxy: str | None,
        ansible_version: str | None,
        checks: str = "",
        checksums: str = "",
    ) -> "Checkout":
        """Parse what a checkout states about itself.

        :param galaxy: the text of :data:`GALAXY_FILE`, None without such a file.
        :param ansible_version: the text of :data:`ANSIBLE_VERSION_FILE`, or None.
        :param checks: the concatenated texts of :data:`CHECK_FILES`.
        :param checksums: the section :data:`CHECKSUM_SECTION` of the existing one of
            :data:`CHECKSUM_FILES`.
        """
        version = _field(galaxy, "version")
        release = releases.RELEASES.get(minor(version))
        least = _field(ansible_version, "minimal_ansible_version")
        below = _field(ansible_version, "maximal_ansible_version")
        stated = (least, below) if least and below else None
        return cls(
            found=galaxy is not None or ansible_version is not None,
            version=version,
            ansible=stated or (release.ansible if release else None),
            offer=Offer.from_texts(checks, checksums),
            collections=frozenset(
                name for name in COLLECTIONS if _has_key(galaxy, name)
            ),
        )

    @property
    def release(self) -> releases.Release | None:
        """Its release; None if it is not a known one."""
        return releases.RELEASES.get(minor(self.version))


def ansible_version_from(text: str) -> str | None:
    """The version in the output of ``ansible-playbook --version``, or None."""
    version = re.search(r"^ansible\S* (?:\[core )?(\d+(?:\.\w+)+)", text, re.MULTILINE)
    return version[1] if version else None


def missing_from(text: str) -> frozenset[str]:
    """Those of :data:`BESIDE_ANSIBLE` that the Ansible server reports as missing."""
    names = re.findall(r"^missing (\S+)$", text, re.MULTILINE)
    return frozenset(names) & frozenset(BESIDE_ANSIBLE)


def reported(text: str, name: str) -> str:
    """What the Ansible server reports under a name; "" for nothing."""
    found = re.search(rf"^{name} ([\w.]+)$", text, re.MULTILINE)
    return found[1] if found else ""


def needs_sshpass(params: ClusterRequest) -> bool:
    """Whether Ansible logs in to a node or the bastion with a password."""
    bastion, account = params.bastion, params.bastion_account
    has_password = account is not None and account.password is not None
    return any(one.private_key is None for one in params.node_accounts()) or (
        bastion is not None and bastion.carries_playbooks and has_password
    )


def findings(
    checkout: Checkout,
    ansible_version: str | None,
    has_sshpass: bool,
    params: ClusterRequest,
    missing: Collection[str] = (),
) -> tuple[str, ...]:
    """What is wrong on the Ansible server, each with its fix.

    :param ansible_version: see :func:`ansible_version_from`; None without Ansible.
    :param has_sshpass: whether ``sshpass`` is installed, which Ansible needs to log in
        with a password.
    :param missing: see :func:`missing_from`.
    """
    unusable = _checkout_finding(checkout, params)
    listed = [
        unusable,
        _ansible_finding(checkout, ansible_version, is_usable=not unusable),
        _missing_finding(checkout, missing),
        _NO_SSHPASS if needs_sshpass(params) and not has_sshpass else "",
        _kube_version_finding(checkout, params.kubespray_vars.get("kube_version")),
        _family_finding(checkout, params.address_family),
    ]
    if not unusable:
        version, offer = checkout.version, checkout.offer
        at = minor(version) if version else max(releases.RELEASES)
        removed = offer.removed_variables
        listed += releases.findings(params.kubespray_vars, version, at, removed)
        listed += capability_findings(version, at, offer, params)
    return tuple(finding for finding in listed if finding)


def _checkout_finding(checkout: Checkout, params: ClusterRequest) -> str:
    if not checkout.found:
        return (
            f"there is no kubespray at ansible.kubespray_root_path ({GALAXY_FILE} is "
            f"missing): put a checkout of {releases.KNOWN} there"
        )
    if checkout.release or params.ansible.allow_unknown_release:
        return ""
    put = (
        f"put a checkout of {releases.KNOWN} at ansible.kubespray_root_path, "
        "or set ansible.allow_unknown_release to continue with it at your own risk"
    )
    if not checkout.version:
        return (
            "the release of the kubespray at ansible.kubespray_root_path cannot be "
            f"recognised ({GALAXY_FILE} has no version): {put}"
        )
    is_old = minor(checkout.version) < min(releases.RELEASES)
    return (
        f"kubespray {checkout.version} is {'older' if is_old else 'newer'} than what "
        f"this driver knows: {put}"
    )


def _ansible_finding(
    checkout: Checkout, ansible_version: str | None, *, is_usable: bool
) -> str:
    limits = checkout.ansible if is_usable else None
    core = f"ansible-core >={limits[0]},<{limits[1]}" if limits else "ansible-core"
    fix = f"install {core} and name its virtual environment in ansible.venv_path"
    if ansible_version is None:
        return f"ansible-playbook was not found on the Ansible server: {fix}"
    if limits is None:
        return ""
    least, below = limits
    if numbers(least) <= numbers(ansible_version) < numbers(below):
        return ""
    return (
        f"ansible-core {ansible_version} does not suit kubespray {checkout.version}: "
        f"{fix}"
    )


def _missing_finding(checkout: Checkout, missing: Collection[str]) -> str:
    needed = [PACKAGE, *(name for name in COLLECTIONS if name in checkout.collections)]
    lacking = [name for name in needed if name in missing]
    if not lacking or not checkout.found:
        return ""
    package = f"the Python package {PACKAGE}" if PACKAGE in lacking else ""
    collections = ", ".join(name for name in lacking if name != PACKAGE)
    named = f"Ansible's collections {collections}" if collections else ""
    return (
        f"kubespray needs {' and '.join(filter(None, (package, named)))}, which the "
        "Ansible on the Ansible server does not have: install what requirements.txt in "
        "ansible.kubespray_root_path lists in Ansible's Python environment"
    )


def _kube_version_finding(checkout: Checkout, kube_version: Any) -> str:
    if kube_version is None or checkout.release is None:
        return ""
    expected = checkout.release.kube_version(str(kube_version))
    if kube_version == expected:
        return ""
    return (
        f"kubespray {checkout.version} wants kubespray_vars.kube_version written as "
        f'"{expected}"'
    )


def _family_finding(checkout: Checkout, address_family: str) -> str:
    version, since = checkout.version, releases.IPV6_SINCE
    if address_family != "ipv6" or not version or minor(version) >= since:
        return ""
    return (
        f"kubespray {version} makes no cluster without IPv4: for address_family ipv6 "
        f"put a checkout of {tag(since)} or newer there"
    )


def _field(text: str | None, name: str) -> str:
    # Blanks, not \s: that would search through all lines of an empty text from each.
    pattern = rf"^[ \t]*{name}:[ \t]*[\"']?v?(\d[\w.]*)"
    value = re.search(pattern, text or "", re.MULTILINE)
    return value[1] if value else ""


def _has_key(text: str | None, name: str) -> bool:
    pattern = rf"^[ \t]+{re.escape(name)}[ \t]*:"
    return re.search(pattern, text or "", re.MULTILINE) is not None
