# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes by requests that modify the VNF instance."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.integration.cluster import Cluster, eventually
from tests.real import workloads
from tests.real.cluster import consistent, named, replicas, settled

DISK = "example.com/disk"
DEDICATED = {"key": "example.com/dedicated", "value": "video"}
MAINTENANCE = {"key": "tacker-k8s-mgmt/maintenance", "effect": "NoExecute"}
#: Drains end soon when a budget forbids them.
DRAIN = {"timeout": 120}
#: What the requests of :func:`label` leave in the metadata.
ENTRIES = {
    f"k8s_nodes:worker:label:{DISK}": "ssd",
    f"k8s_nodes:worker:taint:{DEDICATED['key']}:PreferNoSchedule": "video",
}
# On every worker runs one of them.
_REPLICAS = 10


def label(cluster: Cluster) -> None:
    """Label and taint all workers; nonsense is refused first."""
    wrong = {"k8s_nodes:worker:label:k8s.io/a": "b", "k8s_nodes:vnfc:x:label:a": "b"}
    error = cluster.modify({**ENTRIES, **wrong}, expect="FAILED_TEMP")
    assert "The metadata of the VNF instance have 2 problem(s)" in error
    cluster.handle("fail", "FAILED")
    assert not any(DISK in node["metadata"]["labels"] for node in cluster.nodes())
    cluster.modify(ENTRIES)
    assert_labelled(cluster)


def assert_labelled(cluster: Cluster) -> None:
    """Check that all workers, and they alone, are as :func:`label` wants them."""
    for name, node in _nodes(cluster).items():
        is_worker = name.startswith("worker-")
        assert node["metadata"]["labels"].get(DISK) == ("ssd" if is_worker else None)
        taint = {**DEDICATED, "effect": "PreferNoSchedule"}
        assert (taint in node["spec"].get("taints", [])) == is_worker


def maintain(cluster: Cluster, go_on: Callable[[dict[str, Any]], object]) -> None:
    """Take a worker out of service and back; a budget blocks it at first.

    :param go_on: repeats the request that has failed, given its metadata.
    """
    workers = cluster.workers()
    address, server = next(iter(workers.items()))
    name, before = named(address), consistent(cluster, len(workers))
    out = {f"k8s_nodes:vnfc:{cluster.vnfc(server)}:maintenance": "true"}
    replicas(cluster, _REPLICAS)
    cluster.kubectl("apply", "-f", "-", stdin=workloads.budget(_REPLICAS))
    error = cluster.modify(out, expect="FAILED_TEMP")
    assert "PodDisruptionBudget" in error
    assert consistent(cluster, len(workers)) == before
    assert not _nodes(cluster)[name]["spec"].get("unschedulable")
    cluster.kubectl("delete", "pdb", "web")
    go_on(out)
    spec = _nodes(cluster)[name]["spec"]
    assert spec["unschedulable"] is True
    assert MAINTENANCE in [_plain(taint) for taint in spec["taints"]]
    assert cluster.routes() == before - {name}
    eventually(lambda: not _on(cluster, name))
    cluster.modify(dict.fromkeys(out))
    spec = _nodes(cluster)[name]["spec"]
    assert "unschedulable" not in spec
    assert MAINTENANCE not in [_plain(taint) for taint in spec.get("taints", [])]
    assert consistent(cluster, len(workers)) == before
    replicas(cluster, workloads.REPLICAS)
    settled(cluster)


def _nodes(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {node["metadata"]["name"]: node for node in cluster.nodes()}


def _plain(taint: Mapping[str, Any]) -> dict[str, Any]:
    """A taint without the time that Kubernetes adds."""
    return {key: taint[key] for key in ("key", "effect")}


def _on(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    """The workloads' pods on a node."""
    pods = [*cluster.pods("app=web"), *cluster.pods("app=agent")]
    return [pod for pod in pods if pod["spec"].get("nodeName") == name]
