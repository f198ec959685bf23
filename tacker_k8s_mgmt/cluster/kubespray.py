"""What kubespray's releases call things and ask for.

Read off the releases v2.24 to v2.31 and the development line after it: ``galaxy.yml``,
``playbooks/ansible_version.yml`` and the assertions of ``roles/validate_inventory``.
Playbooks, groups and variables that this driver uses have the same names
in all of them; what differs is in :data:`RELEASES`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

#: Playbook, relative to ``kubespray_root_path``.
CLUSTER = "cluster.yml"

#: Files of a checkout that say what it is.
GALAXY_FILE = "galaxy.yml"
ANSIBLE_VERSION_FILE = "playbooks/ansible_version.yml"

#: The networks that kubespray takes when it is given none (the same in all releases).
DEFAULT_PODS = "10.233.64.0/18"
DEFAULT_SERVICES = "10.233.0.0/18"

#: Variables that this driver sets, and where a user has a say in them. An extra
#: variable holds for every host and beats the inventory, so a user's ``ip`` would give
#: every node the same address.
RESERVED: Mapping[str, str] = MappingProxyType(
    {
        "kube_pods_subnet": "use master_node.pod_cidr",
        "kube_service_addresses": "use master_node.cluster_cidr",
        "http_proxy": "use proxy.http_proxy",
        "https_proxy": "use proxy.https_proxy",
        "no_proxy": "use proxy.no_proxy",
        "additional_no_proxy": "use proxy.no_proxy",
        "no_proxy_exclude_workers": "it is set when there is a proxy",
        "supplementary_addresses_in_ssl_keys": "it is made from the VMs' addresses",
        "loadbalancer_apiserver": "use external_lb_param",
        "kube_apiserver_port": "it is 6443; external_lb_param.api_port is free",
        "kube_override_hostname": "nodes have the names of the inventory",
        "kube_config_dir": "admin.conf is looked for in /etc/kubernetes",
        **dict.fromkeys(
            ("ip", "access_ip", "etcd_member_name", "tacker_server_id"),
            "it is set for each node in the inventory",
        ),
        **dict.fromkeys(
            (
                *("node", "reset_nodes", "allow_ungraceful_removal"),
                *("skip_confirmation", "delete_nodes_confirmation"),
                "reset_confirmation",
            ),
            "it belongs to the removal of a node",
        ),
        **dict.fromkeys(
            ("kube_control_plane", "kube_node", "etcd", "calico_rr", "k8s_cluster"),
            "it is a group of the inventory",
        ),
    }
)


def reserved(variable: str) -> str:
    """Why a user may not set a variable and what to do instead; "" if he may."""
    if variable.startswith("ansible_"):
        return "it tells Ansible how to reach the nodes"
    return RESERVED.get(variable, "")


@dataclass(frozen=True)
class Release:
    """What one minor release wants.

    :param ansible: ansible-core from (included) and to (excluded).
    :param leading_v: whether ``kube_version`` is written ``v1.31.9`` or ``1.31.9``.
    """

    ansible: tuple[str, str]
    leading_v: bool


RELEASES: Mapping[tuple[int, int], Release] = MappingProxyType(
    {
        (2, 24): Release(("2.15.5", "2.17.0"), leading_v=True),
        (2, 25): Release(("2.16.4", "2.17.0"), leading_v=True),
        (2, 26): Release(("2.16.4", "2.17.0"), leading_v=True),
        (2, 27): Release(("2.16.4", "2.17.0"), leading_v=True),
        (2, 28): Release(("2.16.4", "2.17.0"), leading_v=False),
        (2, 29): Release(("2.17.3", "2.18.0"), leading_v=False),
        (2, 30): Release(("2.17.3", "2.18.0"), leading_v=False),
        (2, 31): Release(("2.18.0", "2.19.0"), leading_v=False),
        (2, 32): Release(("2.18.0", "2.19.0"), leading_v=False),
    }
)
_OLDEST, _NEWEST = min(RELEASES), max(RELEASES)
_NO_SSHPASS = (
    "sshpass, which Ansible needs for logins with a password, was not found on the "
    "Ansible server: install the package sshpass"
)


@dataclass(frozen=True)
class Checkout:
    """The kubespray that lies at ``kubespray_root_path``; empty where unreadable."""

    version: str
    ansible: tuple[str, str]

    @classmethod
    def from_texts(cls, galaxy: str | None, ansible_version: str | None) -> "Checkout":
        """Read a checkout's own statements about itself.

        :param galaxy: the text of :data:`GALAXY_FILE`, None if there is no such file.
        :param ansible_version: the text of :data:`ANSIBLE_VERSION_FILE`, or None.
        """
        version = _field(galaxy, "version")
        default = _release(version).ansible
        least = _field(ansible_version, "minimal_ansible_version")
        below = _field(ansible_version, "maximal_ansible_version")
        return cls(version, (least or default[0], below or default[1]))


def ansible_version_from(text: str) -> str | None:
    """The version in the output of ``ansible-playbook --version``, or None."""
    found = re.search(r"^ansible\S* (?:\[core )?(\d+(?:\.\w+)+)", text, re.MULTILINE)
    return found[1] if found else None


def findings(
    checkout: Checkout,
    ansible_version: str | None,
    has_sshpass: bool,
    kube_version: Any = None,
) -> tuple[str, ...]:
    """What is wrong on the Ansible server, each with its fix.

    :param ansible_version: see :func:`ansible_version_from`; None if there is none.
    :param has_sshpass: whether ``sshpass`` is installed; Ansible needs it to log in
        with a password.
    :param kube_version: the user's ``kubespray_vars.kube_version``, if any.
    """
    found = [
        _checkout_finding(checkout),
        _ansible_finding(checkout, ansible_version),
        "" if has_sshpass else _NO_SSHPASS,
        _kube_version_finding(checkout, kube_version),
    ]
    return tuple(finding for finding in found if finding)


def _checkout_finding(checkout: Checkout) -> str:
    oldest = f"v{_OLDEST[0]}.{_OLDEST[1]}"
    if not checkout.version:
        return (
            f"there is no kubespray at ansible.kubespray_root_path ({GALAXY_FILE} with "
            f"a version is missing): put a checkout of {oldest} or newer there"
        )
    if _numbers(checkout.version)[:2] < _OLDEST:
        return (
            f"kubespray {checkout.version} is too old: put a checkout of {oldest} or "
            "newer at ansible.kubespray_root_path"
        )
    return ""


def _ansible_finding(checkout: Checkout, ansible_version: str | None) -> str:
    least, below = checkout.ansible
    usable = not _checkout_finding(checkout)
    wanted = f"ansible-core >={least},<{below}" if usable else "ansible-core"
    fix = f"install {wanted} and name its virtual environment in ansible.venv_path"
    if ansible_version is None:
        return f"ansible-playbook was not found on the Ansible server: {fix}"
    suits = _numbers(least) <= _numbers(ansible_version) < _numbers(below)
    if suits or not usable:
        return ""
    return (
        f"ansible-core {ansible_version} does not suit kubespray {checkout.version}: "
        f"{fix}"
    )


def _kube_version_finding(checkout: Checkout, kube_version: Any) -> str:
    if kube_version is None or not checkout.version:
        return ""
    plain = str(kube_version).removeprefix("v")
    wanted = f"v{plain}" if _release(checkout.version).leading_v else plain
    if kube_version == wanted:
        return ""
    return (
        f"kubespray {checkout.version} wants kubespray_vars.kube_version written as "
        f'"{wanted}"'
    )


def _release(version: str) -> Release:
    """The release's entry; an unknown release is taken for the nearest known one."""
    major, minor, *_ = (*_numbers(version), 0, 0)
    return RELEASES[min(max(_OLDEST, (major, minor)), _NEWEST)]


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of each part: 2.18.0rc1 is (2, 18, 0)."""
    return tuple(int(part) for part in re.findall(r"(?:^|\.)(\d+)", version))


def _field(text: str | None, name: str) -> str:
    pattern = rf"^\s*{name}:\s*[\"']?v?(\d[\w.]*)"
    found = re.search(pattern, text or "", re.MULTILINE)
    return found[1] if found else ""
