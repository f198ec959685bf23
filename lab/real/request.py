# SPDX-License-Identifier: Apache-2.0
"""Requests for the real laboratory: a sample's, with what the laboratory needs.

The mirror is named by those parameters that an operator of a closed network would use.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.artifacts import releases
from lab.cloud.systemd import requirements
from lab.real.site import Site
from lab.services.mirror import FILES_URL, REGISTRY_ADDRESS

PARAMETERS = "k8s_cluster_installation_param"
PLUGIN = "flannel"
#: A mirror's own checksums: kubespray's are those of the files that projects publish.
CHECKSUMS = "checksums.yaml"
KUBERNETES_PROGRAMS = ("kubelet", "kubectl", "kubeadm")


def adapted(sample: Mapping[str, Any], site: Site) -> dict[str, Any]:
    """A body to instantiate a cluster, made from a sample request."""
    body = copy.deepcopy(dict(sample))
    body["additionalParams"][PARAMETERS].update(parameters(site.mirror))
    return body


def parameters(mirror: Path) -> dict[str, Any]:
    """Structures of our parameters that a sample request has not.

    :param mirror: the one of the release of kubespray.
    """
    registry = {
        "prefix": REGISTRY_ADDRESS,
        "mirrors": [f"http://{REGISTRY_ADDRESS}"],
        "skip_tls_verify": True,
    }
    offline = {"files_repo": FILES_URL, "registry_host": REGISTRY_ADDRESS}
    return {
        "cluster": {
            "network": {"plugin": PLUGIN},
            "offline": offline,
            "registries": [registry],
        },
        "kubespray_vars": {
            **requirements.kubespray(),
            # Nothing that is missing in the mirror comes to be there while one waits.
            "download_retries": 1,
            **_checksums(mirror),
        },
    }


def of_kubernetes(release: str, mirror: Path) -> dict[str, dict[str, Any]]:
    """What a request adds for the Kubernetes and etcd of a release of kubespray's.

    The rest has the checkout's defaults: containerd, the images' tags.

    :param release: such as ``v2.30.0``.
    :param mirror: the one of that release.
    """
    own = _checksums(mirror)
    pins = releases.find(release)
    # A newer checkout would choose the newest etcd that it knows for this Kubernetes.
    chosen: dict[str, Any] = {"etcd_version": pins.wanted["etcd"]}
    if own:
        names = ("etcd", *KUBERNETES_PROGRAMS)
        chosen = {name: own[name] for name in map("{}_binary_checksum".format, names)}
        chosen["etcd_version"] = pins.built("etcd")
    version = kubernetes_version(release)
    return {"cluster": {"kubernetes_version": version}, "kubespray_vars": chosen}


def kubernetes_version(release: str) -> str:
    """The Kubernetes that a release of kubespray installs, without v."""
    return releases.find(release).wanted["kubernetes"]


def _checksums(mirror: Path) -> dict[str, Any]:
    path = mirror / CHECKSUMS
    return yaml.safe_load(path.read_text()) if path.exists() else {}
