# SPDX-License-Identifier: Apache-2.0
"""VMs and Node objects, and which pods the scheduler puts on them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.kubeapi import pods
from lab.kubeapi.objects import NOT_READY, UNSCHEDULABLE
from tacker_k8s_mgmt.model.nodes import Machine, NodeObject, Role

#: What kubeadm gives control planes.
CONTROL_PLANE_TAINT = {
    "key": "node-role.kubernetes.io/control-plane",
    "effect": "NoSchedule",
}


def machine(role: Role, number: int, server: str = "") -> Machine:
    """A VM with this number in its addresses."""
    inner, outer = f"10.10.0.{number}", f"192.0.2.{number + 100}"
    return Machine(role, server or f"server-{number}", outer, inner)


@dataclass(frozen=True)
class FakeNode(NodeObject):
    """A Node object; its identity is the id of the server whose kubelet reports."""

    ready: bool = True
    reason: str = ""
    boot_id: str = "boot"
    internal_ip: str = ""
    kubelet_version: str = "v1.31.9"
    created: str = "2026-01-02T03:04:05Z"


def takes(node: FakeNode, spec: Mapping[str, Any]) -> bool:
    """Whether the scheduler of the API's stand-in puts a pod of this spec on a node."""
    conditions = {UNSCHEDULABLE: node.unschedulable, NOT_READY: not node.ready}
    own = [
        {"key": key, "effect": "NoSchedule"}
        for key, is_so in conditions.items()
        if is_so
    ]
    return pods.fits(
        {"spec": dict(spec)},
        {
            "metadata": {"name": node.name, "labels": dict(node.labels)},
            "spec": {"taints": [*map(dict, node.taints), *own]},
        },
    )


def no_other_node(
    specs: Collection[Mapping[str, Any]],
    leaving: Collection[str],
    nodes: Iterable[FakeNode],
) -> bool:
    """Whether there are pods, and no node that stays takes one of them."""
    others = [node for node in nodes if node.name not in leaving]
    return bool(specs) and not any(takes(n, spec) for spec in specs for n in others)
