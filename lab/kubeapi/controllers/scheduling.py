# SPDX-License-Identifier: Apache-2.0
"""Which node a pod goes to: taints, node selectors, pins; the emptiest that fits."""

import copy
from collections import Counter

from .. import events
from ..objects import Obj, dig, labels_of, name_of, namespace_of
from ..resources import NODES, PODS
from ..selectors import expression_matches
from ..store import Store
from ..taints import daemon_tolerations, tolerates

_SCHEDULER = "default-scheduler"
_REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def pinned_to(spec: Obj, node: str) -> Obj:
    """A pod spec that only that node satisfies, made as DaemonSets make it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    tolerations = daemon_tolerations(spec.get("tolerations"))
    pinned = {**copy.deepcopy(spec), "affinity": affinity, "tolerations": tolerations}
    return pinned


def attracted(spec: Obj, labels: dict[str, str]) -> bool:
    """Whether a pod's required node affinity admits a node with these labels."""
    wanted = [
        term.get("matchExpressions") or []
        for term in dig(spec, f"{_REQUIRED}.nodeSelectorTerms", [])
        if not term.get("matchFields")
    ]
    return not wanted or any(
        all(expression_matches(e, labels) for e in expressions)
        for expressions in wanted
    )


def pinned_node(pod: Obj) -> str | None:
    """The node that :func:`pinned_to` names; None for other pods."""
    for term in dig(pod, f"spec.{_REQUIRED}.nodeSelectorTerms", []):
        for field in term.get("matchFields") or []:
            return str(field["values"][0])
    return None


def fits(pod: Obj, node: Obj) -> bool:
    """Whether the pod may be put on the node."""
    spec, labels = pod["spec"], labels_of(node)
    return (
        pinned_node(pod) in (None, name_of(node))
        and attracted(spec, labels)
        and tolerates(node, spec.get("tolerations"))
        and all(labels.get(k) == v for k, v in (spec.get("nodeSelector") or {}).items())
    )


def schedule(store: Store, pod: Obj) -> None:
    """Bind the pod to a node, or write why not."""
    nodes = store.all(NODES)
    load = Counter(p["spec"].get("nodeName") for p in store.all(PODS))
    fitting = [name_of(node) for node in nodes if fits(pod, node)]
    condition = {"type": "PodScheduled", "status": "True" if fitting else "False"}
    spec = pod["spec"]
    if fitting:
        spec = {**spec, "nodeName": min(fitting, key=lambda name: load[name])}
    else:
        condition["reason"] = "Unschedulable"
        condition["message"] = f"0/{len(nodes)} nodes are available."
    status = {**pod["status"], "phase": "Pending", "conditions": [condition]}
    if not fitting and status == pod["status"]:
        return
    store.replace(PODS, pod, spec=spec, status=status)
    if fitting:
        text = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to "
        events.record(store, pod, "Scheduled", text + spec["nodeName"], _SCHEDULER)
    else:
        text, kind = condition["message"], "Warning"
        events.record(store, pod, "FailedScheduling", text, _SCHEDULER, kind)
