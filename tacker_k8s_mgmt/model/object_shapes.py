# SPDX-License-Identifier: Apache-2.0
"""The types of what the driver reads in objects of Kubernetes.

Manifests of packages and answers of API servers may have anything in their place. Only
what the code reads is here; an API server has rules for all of it.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)


class _Metadata(_Shape):
    name: str
    namespace: str | None = None
    uid: str | None = None
    generation: int | None = None
    labels: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[dict[str, Any]] | None = None


class _Condition(_Shape):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class _Status(_Shape):
    conditions: list[_Condition] | None = None


class _Any(_Shape):
    apiVersion: str
    kind: str
    metadata: _Metadata


class Expression(_Shape):
    """One of ``matchExpressions``."""

    key: str
    operator: str
    values: list[str] | None = None


class Term(_Shape):
    """One of ``nodeSelectorTerms``."""

    matchExpressions: list[Expression] | None = None
    matchFields: list[Expression] | None = None


class Selector(_Shape):
    """A selector of labels."""

    matchLabels: dict[str, str] | None = None
    matchExpressions: list[Expression] | None = None


class Toleration(_Shape):
    """One of a pod's ``tolerations``."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Taint(_Shape):
    """One of a node's ``taints``."""

    key: str
    effect: str
    value: str | None = None


class _Required(_Shape):
    nodeSelectorTerms: list[Term] | None = None


class _NodeAffinity(_Shape):
    requiredDuringSchedulingIgnoredDuringExecution: _Required | None = None


class _Affinity(_Shape):
    nodeAffinity: _NodeAffinity | None = None


class _PodSpec(_Shape):
    nodeName: str | None = None
    nodeSelector: dict[str, Any] | None = None
    affinity: _Affinity | None = None
    tolerations: list[Toleration] | None = None
    initContainers: list[dict[str, Any]] | None = None
    containers: list[dict[str, Any]] | None = None


class _TemplateMetadata(_Shape):
    annotations: dict[str, Any] | None = None


class Template(_Shape):
    """The template of pods, or a pod."""

    metadata: _TemplateMetadata | None = None
    spec: _PodSpec | None = None


class _Strategy(_Shape):
    type: str | None = None


class _WorkloadSpec(_Shape):
    selector: Selector | None = None
    template: Template | None = None
    updateStrategy: _Strategy | None = None
    volumeClaimTemplates: list[dict[str, Any]] | None = None


class _Workload(_Any):
    spec: _WorkloadSpec | None = None
    status: _Status | None = None


class _Pod(_Any):
    spec: _PodSpec | None = None


class _JobTemplate(_Shape):
    spec: _WorkloadSpec | None = None


class _CronJobSpec(_Shape):
    jobTemplate: _JobTemplate | None = None


class _CronJob(_Any):
    spec: _CronJobSpec | None = None


class _Names(_Shape):
    kind: str
    plural: str | None = None


class _Version(_Shape):
    name: str
    served: bool | None = None


class _DefinitionSpec(_Shape):
    group: str
    names: _Names
    scope: str | None = None
    versions: list[_Version] | None = None


class _Definition(_Any):
    spec: _DefinitionSpec
    status: _Status | None = None


_OF_KINDS: Mapping[str, type[_Shape]] = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "Job"), _Workload),
    "Pod": _Pod,
    "CronJob": _CronJob,
    "CustomResourceDefinition": _Definition,
}


def checked(one: Any) -> dict[str, Any]:
    """The object itself.

    :raises ValueError: naming a place in it that has another type.
    """
    kind = one.get("kind") if isinstance(one, dict) else None
    check(one, _OF_KINDS.get(kind, _Any) if isinstance(kind, str) else _Any)
    found: dict[str, Any] = one
    return found


def check(value: Any, shape: type[_Shape]) -> None:
    """:raises ValueError: as of :func:`checked`."""
    try:
        shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part)[:64] for part in first["loc"]) or "it"
        # Without the value, which may be a secret.
        raise ValueError(f"{place} is missing or has another type") from None


def fits(value: Any, shape: type[_Shape]) -> bool:
    """Whether a value has the types of a shape."""
    try:
        check(value, shape)
    except ValueError:
        return False
    return True
