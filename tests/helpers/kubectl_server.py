# SPDX-License-Identifier: Apache-2.0
"""A cluster behind the SSH server: the API stand-in, the real kubectl, hollow nodes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.kubeapi.server import start, stop
from lab.kubeapi.settings import Settings
from tests.helpers import kubeapi as bed
from tests.helpers.sshd import Sshd

NODES = ("m1", "w1", "w10", "w2")

needs_kubectl = pytest.mark.skipif(not bed.KUBECTL, reason="no kubectl on PATH")

# sudo without root: what follows `--` and `env` with its variables is run as it is.
SUDO = """
while [ "$1" != -- ]; do shift; done
shift 2
while [[ $1 == *=* ]]; do shift; done
exec "$@"
"""
# The administrator's credentials are those of the stand-in. "down" takes the API away.
_KUBECTL = """
printf '%s\\n' "$*" >>"$HOME/calls"
[ "$1 $2" = "--kubeconfig /etc/kubernetes/admin.conf" ] || exit 9
shift 2
if [ -e "$HOME/down" ]; then
    echo "The connection to the server 10.0.0.5:6443 was refused" >&2
    exit 1
fi
# No collection of garbage in what lives for milliseconds: a fifth of its time.
GOGC=off exec {kubectl} --server={url} --certificate-authority={ca} --token={token} "$@"
"""


@dataclass(frozen=True)
class KubeSite:
    """The cluster, and what its control-plane node has."""

    kube: bed.Kube
    sshd: Sshd

    def calls(self, verb: str) -> list[str]:
        """The kubectl commands with that verb, in their order."""
        lines = (self.sshd.home / "calls").read_text().splitlines()
        return [line for line in lines if f" {verb} " in line]

    def take_api_away(self) -> None:
        (self.sshd.home / "down").touch()

    def node(self, name: str) -> dict[str, Any]:
        node: dict[str, Any] = self.kube.get(f"/api/v1/nodes/{name}")
        return node

    def node_names(self) -> list[str]:
        return [
            node["metadata"]["name"] for node in self.kube.get("/api/v1/nodes")["items"]
        ]

    def silence(self, name: str) -> None:
        """The node's kubelet is not heard any longer."""
        self.kube.kubectl("annotate", "node", name, "kapi.sim/ready=false")
        bed.wait_for(lambda: name not in self.kube.ready_nodes())

    def run(self, *manifests: dict[str, Any]) -> None:
        """Apply, and wait until every pod there is runs."""
        self.kube.apply(*manifests)
        bed.wait_for(self.all_run)

    def all_run(self) -> bool:
        """Whether every pod runs, after two rounds of the controllers."""
        time.sleep(0.3)
        pods = self.kube.get("/api/v1/pods")["items"]
        return all(pod["status"]["phase"] in ("Running", "Succeeded") for pod in pods)

    def pods_on(self, node: str) -> set[str]:
        """Pods of the node, of any namespace, whether they end or not."""
        query = f"fieldSelector=spec.nodeName={node}"
        found = self.kube.get(f"/api/v1/pods?{query}")["items"]
        return {pod["metadata"]["name"] for pod in found}

    def attach(self, name: str, node: str, *finalizers: str) -> None:
        """A volume is attached to the node."""
        source = {"persistentVolumeName": f"pv-{name}"}
        attachment = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": name, "finalizers": list(finalizers)},
            "spec": {"attacher": "csi.test", "nodeName": node, "source": source},
        }
        self.kube.apply(attachment)

    def attachments(self) -> list[str]:
        found = self.kube.get("/apis/storage.k8s.io/v1/volumeattachments")["items"]
        return [one["metadata"]["name"] for one in found]


def pod(name: str, node: str = "", **more: Any) -> dict[str, Any]:
    """A bare pod, on that node if one is named; ``more`` goes into its spec."""
    containers = [{"name": "main", "image": "none"}]
    place = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"containers": containers, **place, **more},
    }


def with_metadata(manifest: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], **changes}}


def open_site(
    sshd: Sshd,
    certificate: Path,
    key: Path,
    nodes: Sequence[str] = NODES,
    settings: Settings = bed.QUICK,
    state: Path | None = None,
) -> KubeSite:
    """Start the cluster and give the SSH server its kubectl.

    :param state: a file with what is in the cluster, which has all changes at the end.
    """
    server = start(bed.listener(certificate, key), settings, state, nodes)
    kube = bed.Kube(server, certificate)
    bed.wait_for(lambda: kube.ready_nodes() == set(nodes))
    words = {"kubectl": bed.KUBECTL, "url": kube.url, "ca": certificate}
    sshd.program("kubectl", _KUBECTL.format(**words, token=bed.ADMIN_TOKEN))
    sshd.program("sudo", SUDO)
    return KubeSite(kube, sshd)


def close_site(site: KubeSite) -> None:
    stop(site.kube.server)
