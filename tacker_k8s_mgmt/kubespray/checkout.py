"""The kubespray and the Ansible on the Ansible server, and what is wrong with them."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.kubespray import capabilities, removed_variables
from tacker_k8s_mgmt.kubespray.capabilities import Offer
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.versions import minor, numbers
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.params import InstallParams

#: Files of a checkout that say what it is.
GALAXY_FILE = "galaxy.yml"
ANSIBLE_VERSION_FILE = "playbooks/ansible_version.yml"
#: Where its releases say what they refuse: the newer ones in the first.
CHECK_FILES = (
    "roles/validate_inventory/tasks/main.yml",
    "roles/kubernetes/preinstall/tasks/0040-verify-settings.yml",
)
#: Where its releases keep the checksums of what they can install. Large files, of which
#: only the section :data:`CHECKSUM_SECTION` is wanted.
CHECKSUM_FILES = (
    "roles/kubespray_defaults/vars/main/checksums.yml",
    "roles/kubespray_defaults/defaults/main/checksums.yml",
    "roles/kubespray-defaults/defaults/main/checksums.yml",
)
CHECKSUM_SECTION = "kubelet_checksums"

#: What every supported release needs in Ansible's Python: the package of its own check
#: (:data:`ANSIBLE_VERSION_FILE`), and the collections of what runs on every node.
#: :file:`galaxy.yml` names further ones, which only some options need.
PACKAGE = "netaddr"
COLLECTIONS = ("ansible.utils", "ansible.posix", "community.general")
BESIDE_ANSIBLE = (PACKAGE, *COLLECTIONS)

_ALLOW = "set ansible.allow_unknown_release to go on with it at your own risk"
_NO_SSHPASS = (
    "sshpass, which Ansible needs for logins with a password, was not found on the "
    "Ansible server: install the package sshpass"
)


@dataclass(frozen=True)
class Checkout:
    """The kubespray that lies at ``kubespray_root_path``.

    :param found: whether there is one at all.
    :param version: "" where it does not say.
    :param ansible: ansible-core from (included) and to (excluded), by its own statement
        or else that of the release; None where neither is known.
    :param offer: what it can install, by its own statements.
    :param collections: those of :data:`COLLECTIONS` that it states as dependencies.
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
        """Read a checkout's own statements about itself.

        :param galaxy: the text of :data:`GALAXY_FILE`, None if there is no such file.
        :param ansible_version: the text of :data:`ANSIBLE_VERSION_FILE`, or None.
        :param checks: the texts of :data:`CHECK_FILES`, one after the other.
        :param checksums: the section :data:`CHECKSUM_SECTION` of that of
            :data:`CHECKSUM_FILES` that is there.
        """
        version = _field(galaxy, "version")
        release = kubespray_releases.RELEASES.get(minor(version))
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
    def release(self) -> kubespray_releases.Release | None:
        """What is known of its release, None if nothing."""
        return kubespray_releases.RELEASES.get(minor(self.version))


def ansible_version_from(text: str) -> str | None:
    """The version in the output of ``ansible-playbook --version``, or None."""
    found = re.search(r"^ansible\S* (?:\[core )?(\d+(?:\.\w+)+)", text, re.MULTILINE)
    return found[1] if found else None


def missing_from(text: str) -> frozenset[str]:
    """Those of :data:`BESIDE_ANSIBLE` that the Ansible server says are missing."""
    said = re.findall(r"^missing (\S+)$", text, re.MULTILINE)
    return frozenset(said) & frozenset(BESIDE_ANSIBLE)


@dataclass(frozen=True)
class Wanted:
    """What the parameters ask of the Ansible server.

    :param sshpass: whether Ansible logs in to a node or the bastion with a password.
    :param variables: the user's ``kubespray_vars``.
    """

    sshpass: bool = True
    allow_unknown_release: bool = False
    address_family: str = "ipv4"
    variables: Mapping[str, Any] = field(default_factory=dict)
    cluster: Cluster = field(default_factory=Cluster)

    @classmethod
    def by(cls, params: InstallParams) -> "Wanted":
        """What these parameters ask."""
        accounts = [params.account(role) for role in (Role.CONTROL_PLANE, Role.WORKER)]
        on_bastion = params.bastion_account
        sshpass = any(account.private_key is None for account in accounts)
        if params.bastion and params.bastion.carries_playbooks and on_bastion:
            sshpass = sshpass or on_bastion.password is not None
        return cls(
            sshpass=sshpass,
            allow_unknown_release=params.ansible.allow_unknown_release,
            address_family=params.address_family,
            variables=params.kubespray_vars,
            cluster=params.cluster,
        )


def findings(
    checkout: Checkout,
    ansible_version: str | None,
    has_sshpass: bool,
    wanted: Wanted,
    missing: Collection[str] = (),
) -> tuple[str, ...]:
    """What is wrong on the Ansible server, each with its fix.

    :param ansible_version: see :func:`ansible_version_from`; None if there is none.
    :param has_sshpass: whether ``sshpass`` is installed; Ansible needs it to log in
        with a password.
    :param missing: see :func:`missing_from`.
    """
    found = [
        _checkout_finding(checkout, wanted),
        _ansible_finding(checkout, ansible_version, wanted),
        _missing_finding(checkout, missing),
        _NO_SSHPASS if wanted.sshpass and not has_sshpass else "",
        _kube_version_finding(checkout, wanted.variables.get("kube_version")),
        _family_finding(checkout, wanted.address_family),
    ]
    if not _checkout_finding(checkout, wanted):
        found += _option_findings(checkout, wanted)
    return tuple(finding for finding in found if finding)


def _option_findings(checkout: Checkout, wanted: Wanted) -> list[str]:
    """What this kubespray cannot do of what is asked of it."""
    version, offer = checkout.version, checkout.offer
    at = minor(version) if version else kubespray_releases.DEVELOPMENT
    gone = removed_variables.findings(
        wanted.variables, version, at, offer.removed_variables
    )
    asked = capabilities.Asked(wanted.cluster, wanted.variables)
    return [*gone, *capabilities.findings(version, at, offer, asked)]


def _checkout_finding(checkout: Checkout, wanted: Wanted) -> str:
    if not checkout.found:
        return (
            f"there is no kubespray at ansible.kubespray_root_path ({GALAXY_FILE} is "
            f"missing): put a checkout of {kubespray_releases.KNOWN} there"
        )
    if checkout.release or wanted.allow_unknown_release:
        return ""
    known = (
        f"put a checkout of {kubespray_releases.KNOWN} at ansible.kubespray_root_path"
    )
    put = f"{known}, or {_ALLOW}"
    if not checkout.version:
        return (
            "the release of the kubespray at ansible.kubespray_root_path cannot be "
            f"recognised ({GALAXY_FILE} has no version): {put}"
        )
    relation = (
        "older"
        if minor(checkout.version) < min(kubespray_releases.RELEASES)
        else "newer"
    )
    return (
        f"kubespray {checkout.version} is {relation} than what this driver knows: {put}"
    )


def _ansible_finding(
    checkout: Checkout, ansible_version: str | None, wanted: Wanted
) -> str:
    usable = checkout.ansible if not _checkout_finding(checkout, wanted) else None
    core = f"ansible-core >={usable[0]},<{usable[1]}" if usable else "ansible-core"
    fix = f"install {core} and name its virtual environment in ansible.venv_path"
    if ansible_version is None:
        return f"ansible-playbook was not found on the Ansible server: {fix}"
    if usable is None:
        return ""
    least, below = usable
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
    wanted = checkout.release.kube_version(str(kube_version))
    if kube_version == wanted:
        return ""
    return (
        f"kubespray {checkout.version} wants kubespray_vars.kube_version written as "
        f'"{wanted}"'
    )


def _family_finding(checkout: Checkout, address_family: str) -> str:
    if (
        address_family != "ipv6"
        or minor(checkout.version) >= kubespray_releases.IPV6_SINCE
    ):
        return ""
    if not checkout.version:
        return ""
    since = f"v{kubespray_releases.IPV6_SINCE[0]}.{kubespray_releases.IPV6_SINCE[1]}"
    return (
        f"kubespray {checkout.version} makes no cluster without IPv4: for "
        f"address_family ipv6 put a checkout of {since} or newer there"
    )


def _has_key(text: str | None, name: str) -> bool:
    return (
        re.search(rf"^\s+{re.escape(name)}\s*:", text or "", re.MULTILINE) is not None
    )


def _field(text: str | None, name: str) -> str:
    pattern = rf"^\s*{name}:\s*[\"']?v?(\d[\w.]*)"
    found = re.search(pattern, text or "", re.MULTILINE)
    return found[1] if found else ""
