# SPDX-License-Identifier: Apache-2.0
"""A real cluster, its workloads, and what has to be so after each operation."""

import time
from typing import Any

import requests

from lab import client
from tests.integration.cluster import Cluster, eventually
from tests.integration.laboratory import Lab, cloud
from tests.real import workloads

#: Seconds for pods to come to run; images are pulled.
LIMIT = 300.0


def deploy(cluster: Cluster) -> None:
    """Put the workloads on a cluster and wait until all of them run.

    Pods of a CNF that had the same name have to be gone: they would not be spread.
    """
    eventually(lambda: not cluster.pods("app=web"))
    cluster.kubectl("apply", "-f", "-", stdin=workloads.manifests())
    settled(cluster)


def settled(cluster: Cluster, replicas: int = workloads.REPLICAS) -> None:
    """Wait until every replica runs on a Ready node, and the agent on every worker."""
    deadline = time.monotonic() + LIMIT

    def missing() -> str:
        ready = {name for name, is_so in cluster.ready_nodes().items() if is_so}
        web = [pod for pod in cluster.pods("app=web") if _runs(pod, ready)]
        on = {
            pod["spec"]["nodeName"]
            for pod in cluster.pods("app=agent")
            if _runs(pod, ready)
        }
        workers = {name for name in ready if name.startswith("worker-")}
        if len(web) != replicas:
            return f"{len(web)} replicas run, wanted are {replicas}"
        return f"no agent on {sorted(workers - on)}" if workers - on else ""

    while why := missing():
        assert time.monotonic() < deadline, why
        time.sleep(1)


def _runs(pod: dict[str, Any], ready: set[str]) -> bool:
    ours = pod["spec"].get("nodeName") in ready
    alive = "deletionTimestamp" not in pod["metadata"]
    conditions = pod["status"].get("conditions", [])
    is_ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in conditions
    )
    return ours and alive and is_ready


def answering_pods(
    cluster: Cluster, minimum: int = 2, port: int = workloads.NODE_PORT
) -> set[str]:
    """Names of the pods that answer over HTTP through each worker's port.

    Every worker's port is asked until so many pods of all have answered there.
    """
    answered: set[str] = set()
    for address in cluster.workers():
        outside = cluster.address(cluster.workers()[address])
        seen: set[str] = set()

        def asked(where: str = outside, found: set[str] = seen) -> bool:
            url = f"http://{where}:{port}/"
            try:
                answer = requests.get(url, timeout=10, headers={"Connection": "close"})
            except requests.ConnectionError:
                # kube-proxy hears of a new Service a moment later.
                return False
            answer.raise_for_status()
            found.add(answer.text.strip())
            return len(found) >= minimum

        eventually(asked)
        answered |= seen
    return answered


def consistent(cluster: Cluster, workers: int) -> set[str]:
    """Heat, the cluster, the inventory and the load balancer name the same workers."""
    nodes = cluster.ready_nodes()
    assert all(nodes.values()), nodes
    found = {name for name in nodes if name.startswith("worker-")}
    assert len(found) == workers, found
    addresses = {name.removeprefix("worker-").replace("-", ".") for name in found}
    assert set(cluster.workers()) == addresses
    listed = {name for name in cluster.inventory() if name.startswith("worker-")}
    assert listed == found
    assert cluster.routes() == found
    return found


def versions(cluster: Cluster) -> dict[str, str]:
    """What the nodes say that they run."""
    info = cluster.nodes()[0]["status"]["nodeInfo"]
    return {
        "kubelet": info["kubeletVersion"],
        "runtime": info["containerRuntimeVersion"],
        "system": info["osImage"],
        "kernel": info["kernelVersion"],
    }


def uids(cluster: Cluster) -> dict[str, str]:
    """Which object each node is, by name."""
    return {n["metadata"]["name"]: n["metadata"]["uid"] for n in cluster.nodes()}


def by_age(cluster: Cluster) -> list[str]:
    """Names of the workers, that which joined first before the others.

    A scale-in begins with the first of them in the v1 API, with the last in the v2 API.
    """
    workers = [
        node["metadata"]
        for node in cluster.nodes()
        if node["metadata"]["name"].startswith("worker-")
    ]
    workers.sort(key=lambda metadata: metadata["creationTimestamp"])
    return [str(metadata["name"]) for metadata in workers]


def named(address: str) -> str:
    """Name of the worker with an address."""
    return f"worker-{address.replace('.', '-')}"


def kill(cluster: Cluster, address: str, server: str) -> None:
    """Switch a worker off and wait until the cluster has noticed."""
    cloud("kill", server)
    eventually(lambda: cluster.ready_nodes()[named(address)] is False)


def replicas(cluster: Cluster, count: int) -> None:
    """Scale the Deployment and wait for its pods."""
    cluster.kubectl("scale", "deployment", "web", "--replicas", str(count))
    settled(cluster, count)


def members(server: str) -> str:
    """What etcdctl lists on a control plane."""
    words = ["set -a", ". /etc/etcd.env", "etcdctl member list"]
    line = "; ".join([*words, "etcdctl endpoint health --cluster"])
    return client.on_host(server, "bash", "-c", line)


def reaches(lab: Lab, cluster: Cluster, task: str, after: int) -> None:
    """Wait until the run after so many has come to a task."""

    def there() -> bool:
        runs = cluster.runs()
        if len(runs) <= after:
            return False
        events = f"cat {cluster.directory}/runs/{runs[-1]}/events.jsonl; true"
        return task in lab.ansible(events)

    eventually(there)
