# SPDX-License-Identifier: Apache-2.0
"""What releases of kubespray download, in which versions, and from where in a mirror.

Versions are read off ``roles/kubespray_defaults`` of each release: the first key of
each ``*_checksums`` for amd64 in ``vars/main/checksums.yml``, the
``*_supported_versions`` of its default Kubernetes, and ``defaults/main/download.yml``.
Paths are those of
``*_download_url`` with ``files_repo`` set, names of images those of ``*_image_repo``
with ``registry_host`` set, both as kubespray's ``group_vars/all/offline.yml`` proposes
and the management driver's ``cluster.offline`` sets them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lab import LabError

DEFAULT, FORMER = "v2.31.0", "v2.30.0"
#: By part, the variable of kubespray that chooses its version.
VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "kubernetes": "kube_version",
        "etcd": "etcd_version",
        "containerd": "containerd_version",
        "runc": "runc_version",
        "crictl": "crictl_version",
        "nerdctl": "nerdctl_version",
        "helm": "helm_version",
        "cni-plugins": "cni_version",
        "coredns": "coredns_version",
        "flannel": "flannel_version",
        "flannel-cni-plugin": "flannel_cni_version",
        "pause": "pod_infra_version",
        "nginx": "nginx_image_tag",
        "cluster-proportional-autoscaler": "dnsautoscaler_version",
        "registry": "registry_version",
        "local-path-provisioner": "local_path_provisioner_version",
        "busybox": "local_path_provisioner_helper_image_tag",
    }
)
#: Parts that cannot be built, with the variable of kubespray that does without them.
SWITCHES: Mapping[str, str] = MappingProxyType(
    {"cluster-proportional-autoscaler": "enable_dns_autoscaler"}
)


@dataclass(frozen=True)
class Release:
    """One release of kubespray.

    :ivar wanted: by part, the version that it asks for.
    :ivar instead: the same for parts whose wanted version Go's module proxy does not
        have, or that come from Debian: the nearest that can be had.
    """

    name: str
    wanted: Mapping[str, str]
    instead: Mapping[str, str]

    def built(self, part: str) -> str:
        """The version of a part that is built here."""
        return self.instead.get(part, self.wanted[part])

    def variables(self) -> dict[str, str | bool]:
        """What kubespray has to be given, to ask for what is built here."""
        chosen = {VARIABLES[part]: version for part, version in self.instead.items()}
        return {**chosen, **dict.fromkeys(SWITCHES.values(), False)}


_NEWEST = Release(
    DEFAULT,
    wanted={
        "kubernetes": "1.35.4",
        "etcd": "3.6.10",
        "containerd": "2.2.3",
        "runc": "1.4.2",
        "crictl": "1.35.0",
        "nerdctl": "2.2.2",
        "helm": "3.18.4",
        "cni-plugins": "1.9.1",
        "coredns": "1.12.4",
        "flannel": "0.28.4",
        "flannel-cni-plugin": "1.7.1-flannel1",
        "pause": "3.10.1",
        "nginx": "1.28.2-alpine",
        "cluster-proportional-autoscaler": "1.8.8",
        "registry": "2.8.1",
        "local-path-provisioner": "0.0.32",
        "busybox": "latest",
    },
    instead={
        "crictl": "1.36.0",
        # The last one of the CNI project's own, before it became a project.
        "flannel-cni-plugin": "0.9.1",
        "nginx": "debian",
        # The one that serves the mirror's images.
        "registry": "3.1.2",
        "local-path-provisioner": "0.0.30",
        "busybox": "debian",
    },
)
_FORMER = Release(
    FORMER,
    wanted={
        **_NEWEST.wanted,
        "kubernetes": "1.34.3",
        "etcd": "3.5.26",
        "containerd": "2.2.1",
        "runc": "1.3.4",
        "crictl": "1.34.0",
        "nerdctl": "2.2.1",
        "cni-plugins": "1.8.0",
        "coredns": "1.12.1",
        "flannel": "0.27.3",
        "nginx": "1.28.0-alpine",
    },
    instead={**_NEWEST.instead, "etcd": "3.5.33", "flannel": "0.28.4"},
)
RELEASES: Mapping[str, Release] = MappingProxyType(
    {release.name: release for release in (_NEWEST, _FORMER)}
)


def find(name: str) -> Release:
    """A release by its tag.

    :raises LabError: there are no pins for it.
    """
    try:
        return RELEASES[name]
    except KeyError as error:
        raise LabError(
            f"There are no pins for kubespray {name}, only for {', '.join(RELEASES)}."
            " kubespray can download everything itself where there is internet",
            2,
        ) from error


GITHUB = "github.com"
KUBERNETES = "dl.k8s.io"
HELM = "get.helm.sh"
KUBERNETES_REGISTRY, DOCKER_REGISTRY = "registry.k8s.io", "docker.io"
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
    registry: str = KUBERNETES_REGISTRY

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
    Image("flannel/flannel", "flannel", registry=DOCKER_REGISTRY),
    Image("flannel/flannel-cni-plugin", "flannel-cni-plugin", registry=DOCKER_REGISTRY),
    Image("library/nginx", "nginx", "{version}", DOCKER_REGISTRY),
    Image("cpa/cluster-proportional-autoscaler", "cluster-proportional-autoscaler"),
)
#: Of what a request has to ask for. A mirror for clusters without it may lack them.
OPTIONAL_IMAGES = (
    Image("library/registry", "registry", "{version}", DOCKER_REGISTRY),
    Image(
        "rancher/local-path-provisioner",
        "local-path-provisioner",
        registry=DOCKER_REGISTRY,
    ),
    Image("library/busybox", "busybox", "{version}", DOCKER_REGISTRY),
)
#: A web server for tests, which is not kubespray's: it answers with its pod's name.
WEB = ("lab/web", "1")
#: Those of the sample application, Debian's programs under the names of Docker Hub.
MARIADB, PYTHON = ("library/mariadb", "11.4"), ("library/python", "3.12-slim")
#: All that are the tests' own.
OWN = (WEB, MARIADB, PYTHON)


def parts_versions(
    wanted: Mapping[str, str], chosen: Mapping[str, str]
) -> dict[str, str]:
    """The parts' versions when kubespray is given variables.

    :param wanted: by part.
    :param chosen: by variable of kubespray.
    """
    return {
        part: chosen.get(VARIABLES[part], version) for part, version in wanted.items()
    }
