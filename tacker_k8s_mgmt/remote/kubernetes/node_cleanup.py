"""What is left of nodes that go: their pods, their volumes, their Node objects."""

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.pods import Pod, read_pods
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient

LOG = logging.getLogger(__name__)

# With it the cluster, too, lets go of the node's pods and volumes without waiting for
# its kubelet (Kubernetes, "Non-graceful node shutdown handling").
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
_ATTACHMENT = "VolumeAttachment"


def evict_dead(client: KubeClient, names: Sequence[str]) -> None:
    """Free pods and volumes of nodes that are in the cluster and have no machine.

    :raises RemoteError: kubectl failed or the control-plane node cannot be reached.
    :raises ClusterError: kubectl's answer could not be understood.
    """
    if not names:
        return
    client.run("taint", "node", *names, _OUT_OF_SERVICE, "--overwrite")
    for name in names:
        delete_pods(client, pods_on(client, name))
    _delete_attachments(client, _attachments(client, names))


def remove_nodes(client: KubeClient, names: Sequence[str], limit: float) -> None:
    """Delete the Node objects of these names and the VolumeAttachments of the nodes.

    :param limit: seconds until the Node objects have to be gone, and as many until
        the volumes have to be detached.
    :raises RemoteError: kubectl failed or the control-plane node cannot be reached.
    :raises ClusterError: a Node object is still there at the limit. A volume that is
        still being detached is only logged, since its driver goes on with that.
    """
    if not names:
        return
    client.delete(_object("v1", "Node", name) for name in names)
    waiting = Backoff(limit)
    while True:
        left, volumes = _remains(client, names)
        if not left:
            break
        if waiting.spent():
            raise errors.ClusterError(
                detail=f"The nodes {', '.join(left)} are still in the cluster "
                f"{limit:g} s after they were deleted.",
                hint="Look at their finalizers, and whether a kubelet registers them "
                "again.",
            )
        waiting.pause()
    _delete_attachments(client, volumes)
    waiting = Backoff(limit)
    while volumes:
        if waiting.spent():
            shown = ", ".join(volumes)
            LOG.warning("%s: still being detached: %s", client.host, shown)
            return
        waiting.pause()
        volumes = _attachments(client, names)


def pods_on(client: KubeClient, node: str) -> tuple[Pod, ...]:
    """Return all pods that are bound to a node.

    :raises RemoteError, ClusterError: as :meth:`KubeClient.get`.
    """
    where = f"--field-selector=spec.nodeName={node}"
    return client.get("pods", "--all-namespaces", where, read=read_pods)


def delete_pods(client: KubeClient, pods: Iterable[Pod]) -> None:
    """Delete pods at once, without waiting for their kubelet.

    :raises RemoteError: kubectl failed or the control-plane node cannot be reached.
    """
    found = [_object("v1", "Pod", pod.name, namespace=pod.namespace) for pod in pods]
    if found:
        client.delete(found, "--grace-period=0", "--force")


def _remains(client: KubeClient, names: Collection[str]) -> tuple[list[str], list[str]]:
    """Which of these Node objects are there, and VolumeAttachments of the nodes."""
    fields = (".kind", ".metadata.name", ".spec.nodeName")
    found = client.table("nodes,volumeattachments", fields, read=lambda *row: row)
    nodes = {name for kind, name, _ in found if kind == "Node"}
    volumes = [
        name for kind, name, node in found if kind == _ATTACHMENT and node in names
    ]
    return sorted(nodes.intersection(names)), volumes


def _attachments(client: KubeClient, nodes: Collection[str]) -> list[str]:
    fields = (".metadata.name", ".spec.nodeName")
    found = client.table("volumeattachments", fields, read=lambda *row: row)
    return [name for name, node in found if node in nodes]


def _delete_attachments(client: KubeClient, names: Sequence[str]) -> None:
    if names:
        group = "storage.k8s.io/v1"
        client.delete(_object(group, _ATTACHMENT, name) for name in names)


def _object(version: str, kind: str, name: str, **metadata: str) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, **metadata},
    }
