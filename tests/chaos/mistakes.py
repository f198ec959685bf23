# SPDX-License-Identifier: Apache-2.0
"""What people do to a cluster who should not: files, Nodes, routes, requests."""

import contextlib
import json
from functools import partial
from typing import Any

from lab import client
from lab.kubeapi import EVICTION_ANNOTATION
from tests.chaos.hosts import Fix
from tests.chaos.scene import Scene
from tests.helpers.kubeapi import GONE_WEBHOOK, custom, definition
from tests.integration import workloads
from tests.integration.cluster import eventually, operations
from tests.integration.laboratory import cloud

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


def forbid_evictions(scene: Scene) -> Fix:
    """Have a PodDisruptionBudget that allows none."""
    cluster = scene.subject.cluster
    cluster.kubectl("apply", "-f", "-", stdin=_BUDGET)

    def allow() -> None:
        cluster.kubectl("delete", "pdb", "web-budget", "--ignore-not-found")

    return allow


def fail_evictions(scene: Scene, **how: int) -> Fix:
    """Have evictions of the workload's pods fail, as of a webhook that is broken.

    :param how: see :mod:`lab.kubeapi`.
    """
    cluster, pods = scene.subject.cluster, ("pods", "-l", "app=web", "--overwrite")
    fault = {"code": 500, "message": 'failed calling webhook "guard.example.com"'}
    cluster.kubectl(
        "annotate", *pods, f"{EVICTION_ANNOTATION}={json.dumps(fault | how)}"
    )

    def allow() -> None:
        cluster.kubectl("annotate", *pods, f"{EVICTION_ANNOTATION}-")

    return allow


def _defined(scene: Scene, *documents: dict[str, Any]) -> Fix:
    """Apply a custom kind and what follows; how it goes."""
    cluster = scene.subject.cluster

    def applied(document: dict[str, Any]) -> bool:
        # A kind is served a moment after it was defined.
        with contextlib.suppress(RuntimeError):
            cluster.kubectl("apply", "-f", "-", stdin=json.dumps(document))
            return True
        return False

    for document in documents:
        eventually(partial(applied, document))
    name = documents[0]["metadata"]["name"]

    def forget() -> None:
        cluster.kubectl("delete", "crd", name, "--wait=false")

    return forget


def break_kind(scene: Scene) -> Fix:
    """Have a custom kind whose objects nobody converts any more."""
    return _defined(
        scene,
        definition(versions=("v1beta1", "v1")),
        custom("old", "default", "snapshot.storage.k8s.io/v1beta1"),
        definition(conversion=GONE_WEBHOOK),
    )


def deprecate_kind(scene: Scene) -> Fix:
    """Have a custom kind that the API advises against."""
    made = definition("ranks", "example.org", "Rank")
    for version in made["spec"]["versions"]:
        version["deprecated"] = True
    return _defined(scene, made, custom("old", "default", "example.org/v1", "Rank"))


def mark_unhealthy(scene: Scene) -> Fix:
    """Mark a worker unhealthy in Heat."""
    if not (found := _member(scene)):
        raise LookupError(f"Heat has no member with the server {scene.victim}")
    mark = ("openstack", "stack", "resource", "mark", "unhealthy")
    client.command([*mark, *found], limit=120)

    def reset() -> None:
        if _member(scene) == found:
            client.command([*mark, "--reset", *found], limit=120)

    return reset


def _member(scene: Scene) -> tuple[str, str] | None:
    """The victim's stack of a scaling group and name in it; None: Heat has none."""
    stack = min(scene.subject.cluster.stacks(), key=len)
    line = ("openstack", "stack", "resource", "list", "-n", "3", "-f", "json", stack)
    rows = json.loads(client.command(line, limit=120))
    of = [
        row["stack_name"] for row in rows if row["physical_resource_id"] == scene.victim
    ]
    found = [
        (row["stack_name"], row["resource_name"])
        for row in rows
        if of and of[0].startswith(f"{row['stack_name']}-{row['resource_name']}-")
    ]
    return max(found, key=lambda one: len(one[0]), default=None)


def add_address(scene: Scene) -> None:
    """Give the control plane's port another address."""
    used = {one for host in client.hosts() for one in host.addresses}
    free = [f"10.10.0.{number}" for number in range(100, 250)]
    address = scene.chance.choice([one for one in free if one not in used])
    cloud("add-address", scene.subject.cluster.server("masterNode"), address)


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
