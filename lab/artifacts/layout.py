# SPDX-License-Identifier: Apache-2.0
"""Where kubespray looks for its files and images in a mirror.

Paths are those of kubespray's ``*_download_url`` with ``files_repo`` set, names of
images those of ``*_image_repo`` with ``registry_host`` set, both as
``inventory/sample/group_vars/all/offline.yml`` of kubespray proposes and as the
management driver's ``cluster.offline`` sets them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lab.artifacts.releases import VARIABLES

GITHUB = "github.com"
KUBERNETES = "dl.k8s.io"
HELM = "get.helm.sh"
REGISTRY, DOCKER = "registry.k8s.io", "docker.io"
_KUBERNETES = f"{KUBERNETES}/release/v{{version}}/bin/linux/amd64"
_RELEASES = "releases/download/v{version}"


@dataclass(frozen=True)
class File:
    """A file that kubespray downloads.

    :ivar part: of :data:`.releases.VARIABLES`; the file has its version.
    :ivar path: below ``files_repo``, with ``{version}``.
    :ivar checksum: kubespray's variable for its SHA-256.
    :ivar members: of an archive: the directory in it that has the part's programs.
        None: it is the program of that name itself.
    """

    name: str
    part: str
    path: str
    checksum: str
    members: str | None = None

    @property
    def host(self) -> str:
        """The host that kubespray downloads it from without ``files_repo``."""
        return self.path.partition("/")[0]

    def place(self, version: str) -> str:
        """Its path below ``files_repo``: host and path of its own address."""
        return self.path.format(version=version)


@dataclass(frozen=True)
class Image:
    """An image that kubespray's nodes pull.

    :ivar repository: its name below ``registry_host``.
    :ivar tag: with ``{version}``.
    :ivar registry: that kubespray pulls it from without ``registry_host``.
    """

    repository: str
    part: str
    tag: str = "v{version}"
    registry: str = REGISTRY

    def reference(self, version: str) -> tuple[str, str]:
        """Repository and tag."""
        return self.repository, self.tag.format(version=version)


def _github(name: str, part: str, path: str, checksum: str, members: str) -> File:
    return File(name, part, f"{GITHUB}/{path}", checksum, members)


FILES = (
    *(
        File(name, "kubernetes", f"{_KUBERNETES}/{name}", f"{name}_binary_checksum")
        for name in ("kubelet", "kubectl", "kubeadm")
    ),
    _github(
        *("etcd", "etcd"),
        f"etcd-io/etcd/{_RELEASES}/etcd-v{{version}}-linux-amd64.tar.gz",
        *("etcd_binary_checksum", "etcd-v{version}-linux-amd64/"),
    ),
    _github(
        *("cni-plugins", "cni-plugins"),
        f"containernetworking/plugins/{_RELEASES}/cni-plugins-linux-amd64-v{{version}}.tgz",
        *("cni_binary_checksum", ""),
    ),
    _github(
        *("crictl", "crictl"),
        f"kubernetes-sigs/cri-tools/{_RELEASES}/crictl-v{{version}}-linux-amd64.tar.gz",
        *("crictl_binary_checksum", ""),
    ),
    File(
        *("runc", "runc"),
        f"{GITHUB}/opencontainers/runc/{_RELEASES}/runc.amd64",
        "runc_binary_checksum",
    ),
    _github(
        *("containerd", "containerd"),
        f"containerd/containerd/{_RELEASES}/containerd-{{version}}-linux-amd64.tar.gz",
        *("containerd_archive_checksum", "bin/"),
    ),
    _github(
        *("nerdctl", "nerdctl"),
        f"containerd/nerdctl/{_RELEASES}/nerdctl-{{version}}-linux-amd64.tar.gz",
        *("nerdctl_archive_checksum", ""),
    ),
    File(
        *("helm", "helm"),
        f"{HELM}/helm-v{{version}}-linux-amd64.tar.gz",
        *("helm_archive_checksum", "linux-amd64/"),
    ),
)
IMAGES = (
    Image("kube-apiserver", "kubernetes"),
    Image("kube-controller-manager", "kubernetes"),
    Image("kube-scheduler", "kubernetes"),
    Image("kube-proxy", "kubernetes"),
    Image("pause", "pause", "{version}"),
    Image("coredns/coredns", "coredns"),
    Image("flannel/flannel", "flannel", registry=DOCKER),
    Image("flannel/flannel-cni-plugin", "flannel-cni-plugin", registry=DOCKER),
    Image("library/nginx", "nginx", "{version}", DOCKER),
    Image("cpa/cluster-proportional-autoscaler", "cluster-proportional-autoscaler"),
)
#: Of what a request has to ask for. A mirror for clusters without it may lack them.
OPTIONAL_IMAGES = (
    Image("library/registry", "registry", "{version}", DOCKER),
    Image("rancher/local-path-provisioner", "local-path-provisioner", registry=DOCKER),
    Image("library/busybox", "busybox", "{version}", DOCKER),
)
#: A web server for tests, which is not kubespray's: it answers with its pod's name.
WEB = ("lab/web", "1")
#: Those of the sample application, Debian's programs under the names of Docker Hub.
MARIADB, PYTHON = ("library/mariadb", "11.4"), ("library/python", "3.12-slim")
#: All that are the tests' own.
OWN = (WEB, MARIADB, PYTHON)


def versions(wanted: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """The parts' versions when kubespray is given variables.

    :param wanted: by part.
    :param chosen: by variable of kubespray.
    """
    return {
        part: chosen.get(VARIABLES[part], version) for part, version in wanted.items()
    }
