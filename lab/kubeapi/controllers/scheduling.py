"""Which node a pod goes to: taints, node selectors, pins; the emptiest that fits."""

import copy
from collections import Counter

from ..objects import Obj, dig, labels_of, name_of
from ..resources import NODES, PODS
from ..store import Store


def _tolerated(taint: Obj, toleration: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key")
    if toleration.get("operator") == "Exists":
        return key in (None, "", taint["key"])
    return key == taint["key"] and toleration.get("value", "") == taint.get("value", "")


def tolerates(node: Obj, tolerations: list[Obj] | None) -> bool:
    """Whether pods with those tolerations may be put on the node."""
    return all(
        any(_tolerated(taint, toleration) for toleration in tolerations or [])
        for taint in node["spec"].get("taints") or []
        if taint["effect"] != "PreferNoSchedule"
    )


def pinned_to(spec: Obj, node: str) -> Obj:
    """A pod spec that only that node satisfies, made as DaemonSets make it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    # Its node may be anything: what must not run there was not made in the first place.
    tolerations = [*(spec.get("tolerations") or []), {"operator": "Exists"}]
    pinned = {**copy.deepcopy(spec), "affinity": affinity, "tolerations": tolerations}
    return pinned


def pinned_node(pod: Obj) -> str | None:
    """The node that :func:`pinned_to` names; None for other pods."""
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    for term in dig(pod, f"{path}.nodeSelectorTerms", []):
        for field in term.get("matchFields") or []:
            return field["values"][0]
    return None


def _fits(pod: Obj, node: Obj) -> bool:
    spec, labels = pod["spec"], labels_of(node)
    return (
        pinned_node(pod) in (None, name_of(node))
        and tolerates(node, spec.get("tolerations"))
        and all(labels.get(k) == v for k, v in (spec.get("nodeSelector") or {}).items())
    )


def schedule(store: Store, pod: Obj) -> None:
    """Bind the pod to a node, or write why not."""
    nodes = store.all(NODES)
    load = Counter(p["spec"].get("nodeName") for p in store.all(PODS))
    fitting = [name_of(node) for node in nodes if _fits(pod, node)]
    condition = {"type": "PodScheduled", "status": "True" if fitting else "False"}
    spec = pod["spec"]
    if fitting:
        spec = {**spec, "nodeName": min(fitting, key=lambda name: load[name])}
    else:
        condition["reason"] = "Unschedulable"
        condition["message"] = f"0/{len(nodes)} nodes are available."
    status = {**pod["status"], "phase": "Pending", "conditions": [condition]}
    store.replace(PODS, pod, spec=spec, status=status)
