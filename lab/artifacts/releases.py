# SPDX-License-Identifier: Apache-2.0
"""Which versions a release of kubespray asks for, and which are built in their place.

Read off ``roles/kubespray_defaults`` of each release: the first key of each
``*_checksums`` for amd64 in ``vars/main/checksums.yml``, the ``*_supported_versions``
of its default Kubernetes, and ``defaults/main/download.yml``.
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
