# SPDX-License-Identifier: Apache-2.0
"""What a Node object has of its settings, and what has to change.

Each Node object keeps in an annotation which labels, annotations and taints were set
for settings. Only those are ever removed: what others have set stays. One request sets
them and the annotation, so that an interruption leaves no doubt.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.node_settings import (
    MAINTENANCE_TAINT,
    NodeSettings,
    Taint,
    shown,
)

#: The annotation with what was set for settings.
APPLIED = "tacker-k8s-mgmt/applied"
#: The annotation of a node that an operation of this driver has cordoned.
CORDONED = "tacker-k8s-mgmt/cordoned"


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
        """Whether it is in maintenance."""
        return MAINTENANCE_TAINT in self.values

    def shown(self) -> dict[str, str]:
        """What it has, as :meth:`~.node_settings.NodeSettings.shown`."""
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
    def read(cls, marks: NodeMetadata) -> "_Applied":
        """Of a Node object; without a valid annotation, nothing was set."""
        try:
            values = untrusted.parse_json(marks.annotations.get(APPLIED, "{}"))
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


def change(marks: NodeMetadata, wanted: NodeSettings) -> dict[str, Any]:
    """The JSON merge patch that gives a Node object its settings; {} if it has them.

    A list of taints is replaced as a whole, so its patch is for this version only.
    """
    before = _Applied.read(marks)
    after = _Applied(
        _kept(before.labels, marks.labels, wanted.labels),
        _kept(before.annotations, marks.annotations, wanted.annotations),
        _kept(before.taints, marks.values, wanted.taints),
        wanted.maintenance
        and (
            before.cordoned or not marks.unschedulable or CORDONED in marks.annotations
        ),
    )
    annotations = _merge(before.annotations, marks.annotations, wanted.annotations)
    own = {APPLIED: after.text()}
    if wanted.maintenance:
        # From now on it is cordoned for its maintenance, not for an operation.
        own[CORDONED] = None
    annotations |= {k: v for k, v in own.items() if marks.annotations.get(k) != v}
    metadata: dict[str, Any] = {}
    if labels := _merge(before.labels, marks.labels, wanted.labels):
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    spec: dict[str, Any] = {}
    if _merge(before.taints, marks.values, wanted.taints):
        metadata["resourceVersion"] = marks.version
        spec["taints"] = _taints(before, marks, wanted)
    if wanted.maintenance and not marks.unschedulable:
        spec["unschedulable"] = True
    if before.cordoned and not wanted.maintenance and marks.unschedulable:
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


def _taints(before: _Applied, marks: NodeMetadata, wanted: NodeSettings) -> list[Any]:
    ours = before.taints | wanted.taints.keys()
    others = [
        taint
        for taint in marks.taints
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


def labels_after(marks: NodeMetadata, wanted: NodeSettings) -> NodeMetadata:
    """The Node object with its labels as they will be."""
    own = _Applied.read(marks).labels
    changes = _merge(own, marks.labels, wanted.labels)
    labels = {**marks.labels, **changes}
    return replace(marks, labels={k: v for k, v in labels.items() if v is not None})


def served(marks: NodeMetadata, in_service: bool) -> NodeMetadata:
    """The Node object as it will be in service, or in maintenance."""
    if in_service and not marks.in_maintenance:
        return marks
    others = tuple(t for t in marks.taints if _identity(t) != MAINTENANCE_TAINT)
    key, effect = MAINTENANCE_TAINT
    out = () if in_service else ({"key": key, "effect": effect},)
    return replace(marks, taints=(*others, *out), unschedulable=not in_service)


def differences(marks: NodeMetadata, wanted: NodeSettings) -> Iterator[str]:
    """What a Node object has otherwise than its settings want it, in words."""
    actual, values = marks.shown(), wanted.shown()
    for name, value in values.items():
        if name not in actual:
            yield f"{name} is missing"
        elif actual[name] != value:
            yield f"{name} has another value than wanted"
    for name in applied(marks):
        if name in actual and name not in values:
            yield f"{name} is set, and no request wants it any more"


def applied(marks: NodeMetadata) -> tuple[str, ...]:
    """What was set for settings, in the words of :meth:`NodeMetadata.shown`."""
    own = _Applied.read(marks)
    return tuple(
        shown(
            dict.fromkeys(own.labels, ""),
            dict.fromkeys(own.annotations, ""),
            dict.fromkeys(own.taints, ""),
            "true" if own.cordoned else "",
        )
    )
