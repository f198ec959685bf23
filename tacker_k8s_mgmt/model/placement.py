# SPDX-License-Identifier: Apache-2.0
"""Workloads that are bound to nodes by labels: ``nodeSelector`` and node affinity.

Rules: Kubernetes' documentation, "Assigning Pods to Nodes". Preferences are left out,
because pods run without them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.model.node_marks import NodeMarks
from tacker_k8s_mgmt.model.pods import matches

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Workload:
    """A Deployment, StatefulSet or DaemonSet.

    :param selector: its ``nodeSelector``.
    :param terms: of its required node affinity; one of them has to match, if there are.
    """

    kind: str
    namespace: str
    name: str
    selector: Mapping[str, str] = field(default_factory=dict)
    terms: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(
        cls, kind: str, namespace: str, name: str, selector: str, affinity: str
    ) -> "Workload":
        """Of the fields of an object; the last two as JSON, "" for none."""
        required = json.loads(affinity or "{}").get(_REQUIRED) or {}
        terms = required.get("nodeSelectorTerms") or ()
        return cls(kind, namespace, name, json.loads(selector or "{}"), terms)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def accepts(self, node: NodeMarks) -> bool:
        """Whether the labels of the node allow its pods there."""
        plain = all(node.labels.get(k) == v for k, v in self.selector.items())
        return plain and (not self.terms or any(_term(t, node) for t in self.terms))


def stranded(
    workloads: Iterable[Workload],
    before: Sequence[NodeMarks],
    after: Sequence[NodeMarks],
) -> Iterator[Workload]:
    """The workloads that a node accepted before, and none does after a change."""
    for workload in workloads:
        if any(map(workload.accepts, before)) and not any(map(workload.accepts, after)):
            yield workload


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
