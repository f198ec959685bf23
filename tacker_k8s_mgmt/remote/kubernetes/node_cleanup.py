# SPDX-License-Identifier: Apache-2.0
"""Cleanup after nodes that leave: pods, VolumeAttachments, Node objects."""

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.pods import Pod
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient

LOG = logging.getLogger(__name__)

# With this taint the cluster frees the node's pods and volumes without waiting for its
# kubelet, too (Kubernetes, "Non-graceful node shutdown handling").
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
_ATTACHMENT = "VolumeAttachment"


def evict_dead(client: KubeClient, names: Sequence[str]) -> None:
    """Free pods and volumes of nodes without a machine; see ``KubeControl``."""
    if not names:
        return
    client.run("taint", "node", *names, _OUT_OF_SERVICE, "--overwrite")
    for name in names:
        delete_pods(client, pods_on(client, name))
    _delete_attachments(client, _remaining(client, names)[1])


def remove_nodes(client: KubeClient, names: Sequence[str], limit: float) -> None:
    """Delete Node objects and their VolumeAttachments; see ``KubeControl``.

    :param limit: seconds until the Node objects are gone, and again until the volumes
        are detached. A late volume is only logged, because its driver continues.
    """
    if not names:
        return
    client.delete(_object("v1", "Node", name) for name in names)
    waiting = Backoff(limit)
    while True:
        left, volumes = _remaining(client, names)
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
        volumes = _remaining(client, names)[1]


def pods_on(client: KubeClient, node: str) -> tuple[Pod, ...]:
    """Return all pods that are bound to a node."""
    where = f"--field-selector=spec.nodeName={node}"
    return tuple(client.table("pods", Pod.FIELDS, Pod.read, where, everywhere=True))


def delete_pods(client: KubeClient, pods: Iterable[Pod]) -> None:
    """Delete pods at once, without waiting for their kubelet."""
    items = [_object("v1", "Pod", pod.name, namespace=pod.namespace) for pod in pods]
    if items:
        client.delete(items, "--grace-period=0", "--force")


def _remaining(
    client: KubeClient, names: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return those nodes that still exist, and VolumeAttachments of all of them."""
    fields = (".kind", ".metadata.name", ".spec.nodeName")
    rows = client.table("nodes,volumeattachments", fields, read=lambda *row: row)
    nodes = (name for kind, name, _ in rows if kind == "Node" and name in names)
    volumes = [name for kind, name, at in rows if kind == _ATTACHMENT and at in names]
    return sorted(nodes), volumes


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
