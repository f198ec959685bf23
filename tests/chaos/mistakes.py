# SPDX-License-Identifier: Apache-2.0
"""What people do to a cluster who should not: files, Nodes, routes, requests."""

from lab import client
from tests.chaos.hosts import Mend
from tests.chaos.scene import Scene
from tests.integration import workloads
from tests.integration.cluster import operations

#: What becomes of a file, by the words of the catalogue.
SPOILED = {
    "emptied": ": >{path}",
    "truncated": "truncate -s $(($(stat -c %s {path}) / 2)) {path}",
    "deleted": "rm {path}",
}

# Allows no eviction of the workload's pods.
_BUDGET = workloads.BUDGET.format(at_least=4)


def spoil(scene: Scene, name: str, line: str) -> None:
    """Spoil a file of the cluster's directory by one of :data:`SPOILED`."""
    path = f"{scene.subject.cluster.directory}/{name}"
    scene.subject.lab.ansible(f"[ ! -e {path} ] || {line.format(path=path)}")


def delete(scene: Scene, name: str) -> None:
    """Delete a directory of the cluster's, or the whole one."""
    directory = scene.subject.cluster.directory
    scene.subject.lab.ansible(f"rm -r {directory}/{name}")


def delete_node(scene: Scene) -> None:
    """Delete a worker's Node object."""
    scene.subject.cluster.kubectl("delete", "node", scene.victims_node, "--wait=false")


def cordon(scene: Scene) -> None:
    """Cordon a worker."""
    scene.subject.cluster.kubectl("cordon", scene.victims_node)


def delete_route(scene: Scene) -> None:
    """Remove a worker's route on the load balancer."""
    scene.subject.cluster.balancer("remove-worker", scene.victims_node)


def forbid_evictions(scene: Scene) -> Mend:
    """Have a PodDisruptionBudget that allows none."""
    cluster = scene.subject.cluster
    cluster.kubectl("apply", "-f", "-", stdin=_BUDGET)

    def allow() -> None:
        cluster.kubectl("delete", "pdb", "web-budget", "--ignore-not-found")

    return allow


def update_stack(scene: Scene) -> None:
    """Update the VNF's Heat stack with what it has already."""
    stack = min(scene.subject.cluster.stacks(), key=len)
    line = ["openstack", "stack", "update", "--existing", stack]
    scene.record.add("request", operation=" ".join(line), second=True)
    client.command(line, limit=120)


def second_operation(scene: Scene) -> None:
    """Send another operation of a VNF instance that has one under way."""
    cluster, tacker = scene.subject.cluster, scene.subject.lab.tacker
    body = {
        "type": scene.chance.choice(("SCALE_OUT", "SCALE_IN")),
        "aspectId": "worker_instance",
        "numberOfSteps": 1,
    }
    scene.subject.shrinks += body["type"] == "SCALE_IN"
    path = f"{tacker.LCM}/vnf_instances/{cluster.id}/scale"
    before = operations(tacker, cluster.id)
    status, text = tacker.refused("POST", path, json=body)
    scene.record.add(
        "request", operation=body["type"], second=True, status=status, text=text[:300]
    )
    scene.others += sorted(operations(tacker, cluster.id) - before)
