# SPDX-License-Identifier: Apache-2.0
"""Has the stand-in for kubespray act as one of kubespray's releases.

The tree ``lab/kubespray`` is as the newest release. Another one is a copy of it, with
changes to those files that tell what a release is. They have the same names and the
same form as in kubespray: ``tacker-k8s-mgmt`` reads them.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

_PLUGINS = (
    *("calico", "flannel", "cloud", "cilium", "cni", "kube-ovn", "kube-router"),
    *("macvlan", "custom_cni"),
)


@dataclass(frozen=True)
class Release:
    """What one of kubespray's releases is.

    :ivar ansible: ansible-core from (included) and to (excluded).
    :ivar kubernetes: by minor release of Kubernetes, the newest first, its last patch.
    :ivar default: the Kubernetes version that it installs.
    :ivar plugins: network plugins beside those of all releases.
    :ivar removed: variables that it refuses.
    """

    version: str
    ansible: tuple[str, str]
    kubernetes: Mapping[str, int]
    default: str
    plugins: tuple[str, ...] = ("none",)
    removed: tuple[str, ...] = ()

    @property
    def minor(self) -> int:
        """Of 2.31.0 the 31."""
        return int(self.version.split(".")[1])

    @property
    def leading_v(self) -> bool:
        """Whether it writes Kubernetes versions with a v."""
        return self.minor < 28


_216, _217, _218 = ("2.16.4", "2.17.0"), ("2.17.3", "2.18.0"), ("2.18.0", "2.19.0")
_OLD = ("weave",)
#: Read off kubespray's sources. HEAD is the development line.
RELEASES: Mapping[str, Release] = MappingProxyType(
    {
        "v2.24": Release(
            "2.24.3",
            ("2.15.5", "2.17.0"),
            {"1.29": 9, "1.28": 14, "1.27": 16, "1.26": 15},
            "1.28.14",
            plugins=_OLD,
        ),
        "v2.25": Release(
            "2.25.1",
            _216,
            {"1.29": 10, "1.28": 15, "1.27": 16},
            "1.29.10",
            plugins=_OLD,
        ),
        "v2.26": Release(
            "2.26.1",
            _216,
            {"1.30": 6, "1.29": 10, "1.28": 15},
            "1.30.6",
            plugins=_OLD,
        ),
        "v2.27": Release(
            "2.27.1",
            _216,
            {"1.31": 9, "1.30": 13, "1.29": 15},
            "1.31.9",
            plugins=("none", *_OLD),
        ),
        "v2.28": Release(
            "2.28.1",
            _216,
            {"1.32": 8, "1.31": 12, "1.30": 14},
            "1.32.8",
            plugins=("none", *_OLD),
        ),
        "v2.29": Release("2.29.1", _217, {"1.33": 7, "1.32": 10, "1.31": 14}, "1.33.7"),
        "v2.30": Release("2.30.0", _217, {"1.34": 3, "1.33": 7, "1.32": 11}, "1.34.3"),
        "v2.31": Release(
            "2.31.0",
            _218,
            {"1.35": 4, "1.34": 7, "1.33": 11},
            "1.35.4",
            removed=("kubelet_static_pod_path",),
        ),
        "HEAD": Release(
            "2.32.0",
            _218,
            {"1.36": 4, "1.35": 8, "1.34": 11},
            "1.36.4",
            removed=("kubelet_static_pod_path", "eviction_hard_control_plane"),
        ),
    }
)
#: The release of the unchanged tree.
OWN = "v2.31"


def act_as(tree: Path, release: Release, ansible_below: str = "") -> None:
    """Change a copy of the stand-in, so that it is as this release.

    :param ansible_below: the first Ansible that does not suit it any more, in place of
        the release's own: the laboratory has only one.
    """
    least, below = release.ansible
    _edit(tree / "galaxy.yml", _line("version", release.version))
    _edit(
        tree / "playbooks/ansible_version.yml",
        _line("minimal_ansible_version", least),
        _line("maximal_ansible_version", ansible_below or below),
    )
    _write_checks(tree, release)
    _write_versions(tree, release)
    if release.minor < 29:
        for alias in ("remove_node.yml", "upgrade_cluster.yml"):
            (tree / alias).unlink()
    if release.minor < 28:
        _edit(tree / "playbooks/remove_node.yml", _all_nodes_by_default)
    if release.minor == 28:
        _edit(tree / "playbooks/remove_node.yml", _facts_of_the_ansible_server)


def _write_checks(tree: Path, release: Release) -> None:
    """What it refuses, at the place where it has that."""
    role = tree / "roles/validate_inventory/tasks"
    plugins = ", ".join(f"'{name}'" for name in (*_PLUGINS, *release.plugins))
    _edit(
        role / "main.yml",
        lambda text: re.sub(
            r"(kube_network_plugin in) \[.*\]", rf"\1 [{plugins}]", text
        ),
        lambda text: _with_removed(text, release.removed),
    )
    if release.minor >= 28:
        return
    former = tree / "roles/kubernetes/preinstall/tasks/0040-verify-settings.yml"
    former.parent.mkdir(parents=True)
    shutil.move(role / "main.yml", former)
    there = "../../kubernetes/preinstall/tasks/0040-verify-settings.yml"
    (role / "main.yml").write_text(
        f"---\n- name: Verify settings\n  ansible.builtin.import_tasks: {there}\n"
    )


def _write_versions(tree: Path, release: Release) -> None:
    """What it can install, and how it writes that."""
    directory = tree / "roles/kubespray_defaults/vars/main"
    v = "v" if release.leading_v else ""
    least = f"{list(release.kubernetes)[-1]}.0"
    _edit(
        directory / "release.yml",
        _line("kube_version", f"{v}{release.default}"),
        _line("kube_version_min_required", least),
        _line("leading_v", str(release.leading_v).lower()),
        _line("asserts_facts", str(release.minor > 26).lower()),
        _line("has_registry_ca", str(release.minor > 27).lower()),
        _line("makes_k8s_cluster", str(release.minor > 26).lower()),
    )
    listed = "".join(
        f"    {v}{minor}.{patch}: sha256:none\n"
        for minor, last in release.kubernetes.items()
        for patch in range(last, -1, -1)
    )
    _edit(
        directory / "checksums.yml",
        lambda text: re.sub(r"(?m)(^ {4}.*\n)+", listed, text),
    )
    if release.minor < 28:
        former = tree / "roles/kubespray-defaults/defaults/main"
        former.mkdir(parents=True)
        shutil.copy(directory / "checksums.yml", former)
        (directory / "checksums.yml").rename(directory / "kubelet.yml")


def _with_removed(text: str, names: tuple[str, ...]) -> str:
    if not names:
        return re.sub(r"(?s)- name: Fail if removed.*?\n\n", "", text)
    listed = "".join(f"      - {name}\n" for name in names)
    return re.sub(r"(?m)(removed_vars:\n)( {6}- .*\n)+", rf"\1{listed}", text)


def _all_nodes_by_default(text: str) -> str:
    """Without ``node``, these removed every node."""
    _, rest = text.split("\n\n", 1)
    return "---\n" + rest.replace("no_node_named", "etcd:k8s_cluster:calico_rr")


def _facts_of_the_ansible_server(text: str) -> str:
    """The play that looks for a named node sets neither facts nor become."""
    keywords = "  hosts: localhost\n  gather_facts: false\n  become: false\n"
    return text.replace(keywords, "  hosts: localhost\n")


def _line(name: str, value: str) -> Callable[[str], str]:
    """Sets ``name: value`` at its place in a YAML text."""
    return lambda text: re.sub(rf"(?m)^( *{name}:) .*$", rf"\1 {value}", text)


def _edit(path: Path, *changes: Callable[[str], str]) -> None:
    """Change a file."""
    text = path.read_text()
    for change in changes:
        text = change(text)
    path.write_text(text)
