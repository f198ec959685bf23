# SPDX-License-Identifier: Apache-2.0
"""Workloads that are bound to nodes by labels: ``nodeSelector`` and node affinity.

Bare pods are left out, because they are never scheduled again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.model.node_marks import NodeMetadata
from tacker_k8s_mgmt.model.node_settings import MAINTENANCE_TAINT
from tacker_k8s_mgmt.model.pods import Placement

# Taints of conditions, such as not-ready and unschedulable.
_OWN = "node.kubernetes.io/"


@dataclass(frozen=True)
class Workload:
    """A Deployment, StatefulSet, DaemonSet or CronJob, and where its pods can run."""

    kind: str
    namespace: str
    name: str
    placement: Placement = field(default_factory=Placement)

    @classmethod
    def read(cls, kind: str, namespace: str, name: str, *placement: Any) -> "Workload":
        """Of the fields of an object; the last are those of its placement."""
        return cls(kind, namespace, name, Placement.read(*placement))

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def accepts(self, node: NodeMetadata) -> bool:
        """Whether the labels of the node allow its pods there."""
        return self.placement.accepts(node.name, node.labels)

    def belongs(self, node: NodeMetadata) -> bool:
        """Whether its pods may run there when nothing is wrong with the node."""
        lasting = (t for t in node.taints if not _is_passing(t))
        return self.accepts(node) and all(map(self.placement.tolerates, lasting))

    def can_start(self, node: NodeMetadata) -> bool:
        """Whether a new pod may be scheduled there now.

        A node that is not Ready may be so again soon, and counts.
        """
        # Their controller tolerates that for them.
        cordoned = node.unschedulable and self.kind != "DaemonSet"
        return self.belongs(node) and not cordoned and not node.in_maintenance


def stranded(
    workloads: Iterable[Workload],
    before: Sequence[NodeMetadata],
    after: Sequence[NodeMetadata],
) -> Iterator[Workload]:
    """The workloads that lose a node by a change of labels and can start on none.

    :param before, after: the same nodes in the same order.
    """
    for workload in workloads:
        loses = any(
            workload.belongs(former) and not workload.accepts(node)
            for former, node in zip(before, after, strict=True)
        )
        if loses and not any(map(workload.can_start, after)):
            yield workload


def _is_passing(taint: Mapping[str, Any]) -> bool:
    """Whether a taint goes with its cause: of Kubernetes' own, or a maintenance."""
    key = str(taint["key"])
    return key.startswith(_OWN) or (key, taint["effect"]) == MAINTENANCE_TAINT
