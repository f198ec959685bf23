# SPDX-License-Identifier: Apache-2.0
"""The Table form that ``kubectl get`` asks for: which columns each kind shows."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .objects import Obj, age, dig, is_terminating, labels_of, name_of
from .resources import Resource

_ROLE_LABEL = "node-role.kubernetes.io/"

Cells = list[Any]


class Columns(NamedTuple):
    """Columns before ``Age``, and those after it (mostly for ``-o wide``)."""

    names: tuple[str, ...]
    cells: Callable[[Obj], Cells]
    wide_names: tuple[str, ...] = ()
    wide_cells: Callable[[Obj], Cells] = lambda _: []


def _node_status(node: Obj) -> str:
    conditions = dig(node, "status.conditions", [])
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    cordoned = ",SchedulingDisabled" if node["spec"].get("unschedulable") else ""
    return ("Ready" if ready else "NotReady") + cordoned


def _node_roles(node: Obj) -> str:
    roles = [
        label.removeprefix(_ROLE_LABEL)
        for label in labels_of(node)
        if label.startswith(_ROLE_LABEL)
    ]
    return ",".join(sorted(roles)) or "<none>"


def _address(node: Obj, kind: str) -> str:
    addresses = dig(node, "status.addresses", [])
    return next((a["address"] for a in addresses if a["type"] == kind), "<none>")


def _template(owner: Obj) -> Cells:
    """Containers, images and selector of what makes pods."""
    containers = dig(owner, "spec.template.spec.containers", [])
    labels = dig(owner, "spec.selector.matchLabels", {})
    return [
        ",".join(container["name"] for container in containers),
        ",".join(container.get("image", "") for container in containers),
        _joined(labels),
    ]


def _pod_cells(pod: Obj) -> Cells:
    statuses = pod["status"].get("containerStatuses", [])
    ready = sum(status["ready"] for status in statuses)
    phase = "Terminating" if is_terminating(pod) else pod["status"].get("phase")
    return [f"{ready}/{len(pod['spec'].get('containers', []))}", phase, 0]


def _deployment_cells(deployment: Obj) -> Cells:
    ready = dig(deployment, "status.readyReplicas", 0)
    return [
        f"{ready}/{deployment['spec']['replicas']}",
        dig(deployment, "status.updatedReplicas", 0),
        dig(deployment, "status.availableReplicas", 0),
    ]


def _daemon_set_cells(daemon_set: Obj) -> Cells:
    return [
        dig(daemon_set, f"status.{field}", 0)
        for field in (
            *("desiredNumberScheduled", "currentNumberScheduled", "numberReady"),
            *("updatedNumberScheduled", "numberAvailable"),
        )
    ] + [_joined(dig(daemon_set, "spec.template.spec.nodeSelector", {}))]


def _joined(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items()) or "<none>"


def _budget_cells(budget: Obj) -> Cells:
    return [
        str(budget["spec"].get("minAvailable", "N/A")),
        str(budget["spec"].get("maxUnavailable", "N/A")),
        dig(budget, "status.disruptionsAllowed", 0),
    ]


def _service_cells(service: Obj) -> Cells:
    ports = [
        f"{port['port']}{f':{node}' if (node := port.get('nodePort')) else ''}"
        f"/{port.get('protocol', 'TCP')}"
        for port in dig(service, "spec.ports", [])
    ]
    spec = service["spec"]
    return [spec["type"], spec.get("clusterIP"), _external(service), ",".join(ports)]


def _external(service: Obj) -> str:
    """As the real server lays it out (``getServiceExternalIP``)."""
    if service["spec"]["type"] != "LoadBalancer":
        return ",".join(service["spec"].get("externalIPs") or ()) or "<none>"
    entries = dig(service, "status.loadBalancer.ingress", [])
    given = [entry.get("ip") or entry.get("hostname") or "" for entry in entries]
    others = service["spec"].get("externalIPs") or ()
    return ",".join(filter(None, [*given, *others])) or "<pending>"


def _involved(event: Obj) -> str:
    involved = event["involvedObject"]
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


_TEMPLATE = ("Containers", "Images", "Selector")
_COLUMNS = {
    "nodes": Columns(
        ("Status", "Roles"),
        lambda n: [_node_status(n), _node_roles(n)],
        (
            *("Version", "Internal-IP", "External-IP"),
            *("OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        lambda n: [
            dig(n, "status.nodeInfo.kubeletVersion"),
            _address(n, "InternalIP"),
            _address(n, "ExternalIP"),
            dig(n, "status.nodeInfo.osImage", "<unknown>"),
            dig(n, "status.nodeInfo.kernelVersion", "<unknown>"),
            dig(n, "status.nodeInfo.containerRuntimeVersion", "<unknown>"),
        ],
    ),
    "pods": Columns(
        ("Ready", "Status", "Restarts"),
        _pod_cells,
        ("IP", "Node", "Nominated Node", "Readiness Gates"),
        lambda p: [
            dig(p, "status.podIP", "<none>"),
            dig(p, "spec.nodeName", "<none>"),
            *("<none>", "<none>"),
        ],
    ),
    "deployments": Columns(
        ("Ready", "Up-to-date", "Available"), _deployment_cells, _TEMPLATE, _template
    ),
    "daemonsets": Columns(
        (
            *("Desired", "Current", "Ready"),
            *("Up-to-date", "Available", "Node Selector"),
        ),
        _daemon_set_cells,
        _TEMPLATE,
        _template,
    ),
    "poddisruptionbudgets": Columns(
        ("Min Available", "Max Unavailable", "Allowed Disruptions"), _budget_cells
    ),
    "namespaces": Columns(("Status",), lambda n: [n["status"]["phase"]]),
    "secrets": Columns(
        ("Type", "Data"), lambda s: [s["type"], len(s.get("data") or {})]
    ),
    "services": Columns(
        ("Type", "Cluster-IP", "External-IP", "Port(s)"),
        _service_cells,
        ("Selector",),
        lambda s: [_joined(dig(s, "spec.selector", {}))],
    ),
    "events": Columns(
        ("Type", "Reason", "Object", "Message"),
        lambda e: [e["type"], e["reason"], _involved(e), e["message"]],
    ),
    "volumeattachments": Columns(
        ("Attacher", "PV", "Node", "Attached"),
        lambda v: [
            v["spec"].get("attacher", ""),
            dig(v, "spec.source.persistentVolumeName", "<none>"),
            v["spec"].get("nodeName", ""),
            str(dig(v, "status.attached", False)).lower(),
        ],
    ),
    "leases": Columns(("Holder",), lambda x: [dig(x, "spec.holderIdentity")]),
}
_NOTHING_MORE = Columns((), lambda _: [])


def _human(seconds: float) -> str:
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "m"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds) // size}{unit}"
    return f"{int(seconds) // 86400}d"


def _definition(name: str, priority: int) -> Obj:
    return {
        "name": name,
        "type": "string",
        "format": "name" if name == "Name" else "",
        "description": "",
        "priority": priority,
    }


def table(resource: Resource, objects: Iterable[Obj], list_version: str) -> Obj:
    """A Table of the objects.

    :param list_version: the list's resource version; "" for a single object.
    """
    columns = _COLUMNS.get(resource.plural, _NOTHING_MORE)
    shown = [(n, 0) for n in ("Name", *columns.names, "Age")]
    # VERSION is in plain `kubectl get nodes` as well.
    shown += [(n, 0 if n == "Version" else 1) for n in columns.wide_names]
    rows = []
    for obj in objects:
        how_old = _human(age(obj["metadata"]["creationTimestamp"]))
        cells = [name_of(obj), *columns.cells(obj), how_old, *columns.wide_cells(obj)]
        partial = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
        rows.append({"cells": cells, "object": partial})
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": list_version} if list_version else {},
        "columnDefinitions": [_definition(*column) for column in shown],
        "rows": rows,
    }
