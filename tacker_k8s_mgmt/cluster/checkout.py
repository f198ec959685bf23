"""The kubespray and the Ansible on the Ansible server, and what is wrong with them."""

import re
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt.cluster import kubespray
from tacker_k8s_mgmt.cluster.nodes import Role
from tacker_k8s_mgmt.cluster.params import InstallParams

#: Files of a checkout that say what it is.
GALAXY_FILE = "galaxy.yml"
ANSIBLE_VERSION_FILE = "playbooks/ansible_version.yml"

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
    """

    found: bool
    version: str
    ansible: tuple[str, str] | None

    @classmethod
    def from_texts(cls, galaxy: str | None, ansible_version: str | None) -> "Checkout":
        """Read a checkout's own statements about itself.

        :param galaxy: the text of :data:`GALAXY_FILE`, None if there is no such file.
        :param ansible_version: the text of :data:`ANSIBLE_VERSION_FILE`, or None.
        """
        version = _field(galaxy, "version")
        release = kubespray.RELEASES.get(_minor(version))
        least = _field(ansible_version, "minimal_ansible_version")
        below = _field(ansible_version, "maximal_ansible_version")
        stated = (least, below) if least and below else None
        return cls(
            found=galaxy is not None or ansible_version is not None,
            version=version,
            ansible=stated or (release.ansible if release else None),
        )

    @property
    def release(self) -> kubespray.Release | None:
        """What is known of its release, None if nothing."""
        return kubespray.RELEASES.get(_minor(self.version))


def ansible_version_from(text: str) -> str | None:
    """The version in the output of ``ansible-playbook --version``, or None."""
    found = re.search(r"^ansible\S* (?:\[core )?(\d+(?:\.\w+)+)", text, re.MULTILINE)
    return found[1] if found else None


@dataclass(frozen=True)
class Wanted:
    """What the parameters ask of the Ansible server.

    :param sshpass: whether nodes are logged in to with a password.
    :param kube_version: the user's ``kubespray_vars.kube_version``, if any.
    """

    sshpass: bool = True
    allow_unknown_release: bool = False
    address_family: str = "ipv4"
    kube_version: Any = None

    @classmethod
    def by(cls, params: InstallParams) -> "Wanted":
        """What these parameters ask."""
        nodes = (params.account(role) for role in (Role.CONTROL_PLANE, Role.WORKER))
        return cls(
            sshpass=any(account.private_key is None for account in nodes),
            allow_unknown_release=params.ansible.allow_unknown_release,
            address_family=params.address_family,
            kube_version=params.kubespray_vars.get("kube_version"),
        )


def findings(
    checkout: Checkout,
    ansible_version: str | None,
    has_sshpass: bool,
    wanted: Wanted,
) -> tuple[str, ...]:
    """What is wrong on the Ansible server, each with its fix.

    :param ansible_version: see :func:`ansible_version_from`; None if there is none.
    :param has_sshpass: whether ``sshpass`` is installed; Ansible needs it to log in
        with a password.
    """
    found = [
        _checkout_finding(checkout, wanted),
        _ansible_finding(checkout, ansible_version, wanted),
        _NO_SSHPASS if wanted.sshpass and not has_sshpass else "",
        _kube_version_finding(checkout, wanted.kube_version),
        _family_finding(checkout, wanted.address_family),
    ]
    return tuple(finding for finding in found if finding)


def _checkout_finding(checkout: Checkout, wanted: Wanted) -> str:
    if not checkout.found:
        return (
            f"there is no kubespray at ansible.kubespray_root_path ({GALAXY_FILE} is "
            f"missing): put a checkout of {kubespray.KNOWN} there"
        )
    if checkout.release or wanted.allow_unknown_release:
        return ""
    known = f"put a checkout of {kubespray.KNOWN} at ansible.kubespray_root_path"
    put = f"{known}, or {_ALLOW}"
    if not checkout.version:
        return (
            "the release of the kubespray at ansible.kubespray_root_path cannot be "
            f"recognised ({GALAXY_FILE} has no version): {put}"
        )
    relation = (
        "older" if _minor(checkout.version) < min(kubespray.RELEASES) else "newer"
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
    if _numbers(least) <= _numbers(ansible_version) < _numbers(below):
        return ""
    return (
        f"ansible-core {ansible_version} does not suit kubespray {checkout.version}: "
        f"{fix}"
    )


def _kube_version_finding(checkout: Checkout, kube_version: Any) -> str:
    if kube_version is None or checkout.release is None:
        return ""
    plain = str(kube_version).removeprefix("v")
    wanted = f"v{plain}" if checkout.release.leading_v else plain
    if kube_version == wanted:
        return ""
    return (
        f"kubespray {checkout.version} wants kubespray_vars.kube_version written as "
        f'"{wanted}"'
    )


def _family_finding(checkout: Checkout, address_family: str) -> str:
    if address_family != "ipv6" or _minor(checkout.version) >= kubespray.IPV6_SINCE:
        return ""
    if not checkout.version:
        return ""
    since = f"v{kubespray.IPV6_SINCE[0]}.{kubespray.IPV6_SINCE[1]}"
    return (
        f"kubespray {checkout.version} makes no cluster without IPv4: for "
        f"address_family ipv6 put a checkout of {since} or newer there"
    )


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = (*_numbers(version), 0, 0)
    return major, minor


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of each part: 2.18.0rc1 is (2, 18, 0)."""
    return tuple(int(part) for part in re.findall(r"(?:^|\.)(\d+)", version))


def _field(text: str | None, name: str) -> str:
    pattern = rf"^\s*{name}:\s*[\"']?v?(\d[\w.]*)"
    found = re.search(pattern, text or "", re.MULTILINE)
    return found[1] if found else ""
