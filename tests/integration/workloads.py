# SPDX-License-Identifier: Apache-2.0
"""What runs in a cluster of the lab while its nodes change."""

from tests.integration.cluster import Cluster, eventually

WORKLOADS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      volumes: [{name: scratch, emptyDir: {}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bare, labels: {app: bare}}
spec: {containers: [{name: bare, image: bare}]}
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web-budget}}
spec:
  minAvailable: {at_least}
  selector: {{matchLabels: {{app: web}}}}
"""


def pods(cluster: Cluster, label: str) -> list[dict[str, str]]:
    """Name, node and phase of the pods with this label."""
    return [
        {
            "name": pod["metadata"]["name"],
            "node": pod["spec"].get("nodeName", ""),
            "phase": pod["status"].get("phase", ""),
        }
        for pod in cluster.pods(label)
        if "deletionTimestamp" not in pod["metadata"]
    ]


def running(cluster: Cluster, replicas: int = 4) -> None:
    """Wait until every replica of the deployment runs."""

    def phases() -> list[str]:
        return [one["phase"] for one in pods(cluster, "app=web")]

    eventually(lambda: phases() == ["Running"] * replicas)


def agents_run(cluster: Cluster) -> None:
    """Wait until a pod of the daemon set runs on each worker, and on no lost node."""
    workers, nodes = names(cluster), set(cluster.ready_nodes())

    def placed() -> bool:
        found = pods(cluster, "app=agent")
        settled = {one["phase"] for one in found} == {"Running"}
        return settled and workers <= {one["node"] for one in found} <= nodes

    eventually(placed)


def names(cluster: Cluster) -> set[str]:
    """Names of the worker nodes, all of which are Ready."""
    nodes = cluster.ready_nodes()
    assert all(nodes.values()), nodes
    return {name for name in nodes if name.startswith("worker-")}


def consistent(cluster: Cluster, workers: int) -> set[str]:
    """Heat, the cluster, the inventory and the load balancer name the same workers."""
    found = names(cluster)
    addresses = {name.removeprefix("worker-").replace("-", ".") for name in found}
    assert len(found) == workers
    assert set(cluster.workers()) == addresses
    listed = {name for name in cluster.inventory() if name.startswith("worker-")}
    assert listed == found
    assert cluster.routes() == found
    return found


def machine_ids(cluster: Cluster) -> dict[str, str]:
    """What each node's kubelet says its machine is."""
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["machineID"]
        for node in cluster.nodes()
    }


def budget(cluster: Cluster, at_least: int) -> None:
    """A PodDisruptionBudget for the four replicas of the deployment."""
    text = BUDGET.format(at_least=at_least)
    cluster.kubectl("apply", "-f", "-", stdin=text)
