# SPDX-License-Identifier: Apache-2.0
"""What Node objects have of their settings, what has to change, and their workloads.

Each Node object keeps in an annotation which labels, annotations and taints were set
for settings. Only those are ever removed: what others have set stays. One request sets
them and the annotation, so that an interruption leaves no doubt.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.node_settings.settings import NodeSettings, Taint, shown
from tacker_k8s_mgmt.model import object_shapes, untrusted
from tacker_k8s_mgmt.model.nodes import CORDONED, MAINTENANCE_TAINT, Node
from tacker_k8s_mgmt.model.pods import Placement
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.site import Site

#: The annotation with what was set for settings.
APPLIED = "tacker-k8s-mgmt/applied"


@dataclass(frozen=True)
class NodeMetadata:
    """A Node object, as far as settings change it.

    :param version: its ``resourceVersion``.
    :param taints: as in its ``spec``.
    """

    name: str
    version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    unschedulable: bool = False

    @property
    def values(self) -> Mapping[Taint, str]:
        """The values of the taints by key and effect."""
        return {_identity(taint): taint.get("value", "") for taint in self.taints}

    @property
    def in_maintenance(self) -> bool:
        return MAINTENANCE_TAINT in self.values

    def shown(self) -> dict[str, str]:
        """What it has, as :meth:`.NodeSettings.shown`."""
        whole = "true" if self.unschedulable else "not cordoned"
        state = whole if self.in_maintenance else ""
        return shown(self.labels, self.annotations, self.values, state)


@dataclass(frozen=True)
class _Applied:
    """The content of :data:`APPLIED`."""

    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    taints: frozenset[Taint] = frozenset()
    cordoned: bool = False

    @classmethod
    def read(cls, node: NodeMetadata) -> "_Applied":
        """Of a Node object; without a valid annotation, nothing was set."""
        try:
            values = untrusted.parse_json(node.annotations.get(APPLIED, "{}"))
            return cls(
                frozenset(map(str, values.get("labels", ()))),
                frozenset(map(str, values.get("annotations", ()))),
                frozenset((str(k), str(e)) for k, e in values.get("taints", ())),
                values.get("cordoned") is True,
            )
        except (ValueError, TypeError, AttributeError):
            return cls()

    def text(self) -> str | None:
        """As an annotation; None for none."""
        values = {
            "labels": sorted(self.labels),
            "annotations": sorted(self.annotations),
            "taints": sorted(self.taints),
            "cordoned": self.cordoned,
        }
        kept = {name: value for name, value in values.items() if value}
        return json.dumps(kept) if kept else None


def change(node: NodeMetadata, wanted: NodeSettings) -> dict[str, Any]:
    """The JSON merge patch that gives a Node object its settings; {} if it has them.

    A list of taints is replaced as a whole, so its patch is for this version only.
    """
    before = _Applied.read(node)
    after = _Applied(
        _kept(before.labels, node.labels, wanted.labels),
        _kept(before.annotations, node.annotations, wanted.annotations),
        _kept(before.taints, node.values, wanted.taints),
        wanted.maintenance
        and (before.cordoned or not node.unschedulable or CORDONED in node.annotations),
    )
    annotations = _merge(before.annotations, node.annotations, wanted.annotations)
    own = {APPLIED: after.text()}
    if wanted.maintenance:
        # From now on it is cordoned for its maintenance, not for an operation.
        own[CORDONED] = None
    annotations |= {k: v for k, v in own.items() if node.annotations.get(k) != v}
    metadata: dict[str, Any] = {}
    if labels := _merge(before.labels, node.labels, wanted.labels):
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    spec: dict[str, Any] = {}
    if _merge(before.taints, node.values, wanted.taints):
        metadata["resourceVersion"] = node.version
        spec["taints"] = _taints(before, node, wanted)
    if wanted.maintenance and not node.unschedulable:
        spec["unschedulable"] = True
    if before.cordoned and not wanted.maintenance and node.unschedulable:
        spec["unschedulable"] = None
    parts = {"metadata": metadata, "spec": spec}
    return {name: part for name, part in parts.items() if part}


def _kept(
    own: Collection[Any], actual: Mapping[Any, str], wanted: Mapping[Any, str]
) -> frozenset[Any]:
    """What is ours when it is as wanted: not what others have set to the same value."""
    return frozenset(
        key for key in wanted if key in own or actual.get(key) != wanted[key]
    )


def _merge(
    own: Collection[Any], actual: Mapping[Any, str], wanted: Mapping[Any, str]
) -> dict[Any, str | None]:
    removed = {key: None for key in own if key not in wanted and key in actual}
    return {**removed, **{k: v for k, v in wanted.items() if actual.get(k) != v}}


def _taints(before: _Applied, node: NodeMetadata, wanted: NodeSettings) -> list[Any]:
    ours = before.taints | wanted.taints.keys()
    others = [
        taint
        for taint in node.taints
        if _identity(taint) not in ours
        or taint.get("value", "") == wanted.taints.get(_identity(taint))
    ]
    there = {_identity(taint) for taint in others}
    new = [
        {"key": key, "effect": effect, **({"value": value} if value else {})}
        for (key, effect), value in wanted.taints.items()
        if (key, effect) not in there
    ]
    return [*others, *new]


def _identity(taint: Mapping[str, Any]) -> Taint:
    return str(taint["key"]), str(taint["effect"])


def labels_after(node: NodeMetadata, wanted: NodeSettings) -> NodeMetadata:
    """The Node object with its labels as they will be."""
    own = _Applied.read(node).labels
    changes = _merge(own, node.labels, wanted.labels)
    labels = {**node.labels, **changes}
    return replace(node, labels={k: v for k, v in labels.items() if v is not None})


def served(node: NodeMetadata, in_service: bool) -> NodeMetadata:
    """The Node object as it will be in service, or in maintenance."""
    if in_service and not node.in_maintenance:
        return node
    others = tuple(t for t in node.taints if _identity(t) != MAINTENANCE_TAINT)
    key, effect = MAINTENANCE_TAINT
    out = () if in_service else ({"key": key, "effect": effect},)
    return replace(node, taints=(*others, *out), unschedulable=not in_service)


def differences(node: NodeMetadata, wanted: NodeSettings) -> Iterator[str]:
    """What a Node object has otherwise than its settings want it, in words."""
    actual, values = node.shown(), wanted.shown()
    for name, value in values.items():
        if name not in actual:
            yield f"{name} is missing"
        elif actual[name] != value:
            yield f"{name} has another value than wanted"
    for name in applied(node):
        if name in actual and name not in values:
            yield f"{name} is set, and no request wants it any more"


def values_changed(
    node: NodeMetadata, wanted: NodeSettings
) -> Iterator[tuple[str, str | None, str | None]]:
    """What :func:`change` changes: words, value before, value after; None for none."""
    actual, values = node.shown(), wanted.shown()
    for name, value in values.items():
        if actual.get(name) != value:
            yield name, actual.get(name), value
    for name in applied(node):
        if name in actual and name not in values:
            yield name, actual[name], None


def applied(node: NodeMetadata) -> tuple[str, ...]:
    """What was set for settings, in the words of :meth:`NodeMetadata.shown`."""
    own = _Applied.read(node)
    return tuple(
        shown(
            dict.fromkeys(own.labels, ""),
            dict.fromkeys(own.annotations, ""),
            dict.fromkeys(own.taints, ""),
            "true" if own.cordoned else "",
        )
    )


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


_FIELDS = (
    ".metadata.name",
    ".metadata.resourceVersion",
    ".metadata.labels",
    ".metadata.annotations",
    ".spec.taints",
    ".spec.unschedulable",
)
_KINDS = {
    "deployments.apps": "Deployment",
    "statefulsets.apps": "StatefulSet",
    "daemonsets.apps": "DaemonSet",
    "cronjobs.batch": "CronJob",
}
_TEMPLATE = ".spec.template.spec"
_TEMPLATES = {"cronjobs.batch": f".spec.jobTemplate{_TEMPLATE}"}
# Kubernetes refuses a change of an object that has another version by now.
_CONFLICT = "Error from server (Conflict)"


class MetadataClient:
    """Reads and changes what Node objects have of their settings."""

    @classmethod
    def through(cls, site: Site, control_plane: Node) -> "MetadataClient":
        """The cluster, through a control plane."""
        return cls(site.kubectl(control_plane))

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def metadata(self) -> tuple[NodeMetadata, ...]:
        """What the Node objects have."""
        return tuple(self._client.table("nodes", _FIELDS, read=_metadata))

    def change(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Change Node objects, with one command for all that change alike.

        :param changes: JSON merge patches by the nodes' names. One with a
            ``resourceVersion`` that is out of date has no effect.
        """
        alike: dict[str, list[str]] = defaultdict(list)
        for name, change in changes.items():
            alike[json.dumps(change)].append(name)
        for patch, names in alike.items():
            try:
                self._client.run("patch", "node", *names, "--type=merge", "-p", patch)
            except errors.CommandFailed as error:
                if _CONFLICT not in error.fields["output"]:
                    raise

    def workloads(self) -> Sequence[Workload]:
        """The workloads that are bound to nodes by labels.

        Bare pods are left out, because they are never scheduled again.
        """
        every = [
            workload
            for resource, kind in _KINDS.items()
            for workload in self._client.table(
                resource,
                _workload_fields(resource),
                partial(Workload.read, kind),
                everywhere=True,
            )
        ]
        return [workload for workload in every if workload.placement.is_bound]


def _metadata(
    name: str,
    version: str,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    taints: Sequence[Mapping[str, Any]] | None,
    cordon: bool | None,
) -> NodeMetadata:
    for taint in taints or ():
        object_shapes.check(taint, object_shapes.Taint)
    own = labels or {}, annotations or {}, tuple(taints or ())
    return NodeMetadata(name, version, *own, cordon is True)


def _workload_fields(resource: str) -> tuple[str, ...]:
    pod = _TEMPLATES.get(resource, _TEMPLATE)
    fields = (f"{pod}.{name}" for name in Placement.FIELDS)
    return (".metadata.namespace", ".metadata.name", *fields)
