# SPDX-License-Identifier: Apache-2.0
"""Workloads that are bound to nodes by labels: ``nodeSelector`` and node affinity.

Rules: Kubernetes' documentation, "Assigning Pods to Nodes" and "Taints and
Tolerations". Preferences are left out, because pods run without them, and so are bare
pods, which are never scheduled again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.model.node_marks import NodeMarks
from tacker_k8s_mgmt.model.node_settings import MAINTENANCE_TAINT
from tacker_k8s_mgmt.model.pods import matches

_EXCLUDING = ("NoSchedule", "NoExecute")
# Taints of conditions, such as not-ready and unschedulable.
_OWN = "node.kubernetes.io/"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Workload:
    """A Deployment, StatefulSet, DaemonSet or CronJob.

    :param selector: its ``nodeSelector``.
    :param terms: of its required node affinity; one of them has to match, if there are.
    :param tolerations: of taints.
    """

    kind: str
    namespace: str
    name: str
    selector: Mapping[str, str] = field(default_factory=dict)
    terms: Sequence[Mapping[str, Any]] = ()
    tolerations: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(
        cls,
        kind: str,
        namespace: str,
        name: str,
        selector: str,
        affinity: str,
        tolerations: str = "",
    ) -> "Workload":
        """Of the fields of an object; the last three as JSON, "" for none."""
        required = json_text.parse(affinity or "{}").get(_REQUIRED) or {}
        return cls(
            kind,
            namespace,
            name,
            json_text.parse(selector or "{}"),
            required.get("nodeSelectorTerms") or (),
            tuple(json_text.parse(tolerations or "[]")),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def accepts(self, node: NodeMarks) -> bool:
        """Whether the labels of the node allow its pods there."""
        plain = all(node.labels.get(k) == v for k, v in self.selector.items())
        return plain and (not self.terms or any(_term(t, node) for t in self.terms))

    def belongs(self, node: NodeMarks) -> bool:
        """Whether its pods may run there when nothing is wrong with the node."""
        lasting = (t for t in node.taints if not _is_passing(t))
        return self.accepts(node) and all(map(self._tolerates, lasting))

    def can_start(self, node: NodeMarks) -> bool:
        """Whether a new pod may be scheduled there now.

        A node that is not Ready may be so again soon, and counts.
        """
        # Their controller tolerates that for them.
        cordoned = node.unschedulable and self.kind != "DaemonSet"
        return self.belongs(node) and not cordoned and not node.in_maintenance

    def _tolerates(self, taint: Mapping[str, Any]) -> bool:
        return taint["effect"] not in _EXCLUDING or any(
            _matches(toleration, taint) for toleration in self.tolerations
        )


def stranded(
    workloads: Iterable[Workload],
    before: Sequence[NodeMarks],
    after: Sequence[NodeMarks],
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


def _matches(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    if key not in ("", taint["key"]) or effect not in ("", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return True
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(key) and same


def _term(term: Mapping[str, Any], node: NodeMarks) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    # An empty term matches no node.
    return bool(expressions or fields) and all(
        _expression(expression, values)
        for expressions, values in (
            (expressions, node.labels),
            (fields, {"metadata.name": node.name}),
        )
        for expression in expressions
    )


def _expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if expression["operator"] not in ("Gt", "Lt"):
        return matches(expression, labels)
    try:
        value, limit = int(labels[expression["key"]]), int(expression["values"][0])
    except (KeyError, ValueError):
        return False
    return value > limit if expression["operator"] == "Gt" else value < limit
