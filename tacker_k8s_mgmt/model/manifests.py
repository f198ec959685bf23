# SPDX-License-Identifier: Apache-2.0
"""Objects of Kubernetes as manifests have them: read, identified and compared.

An object is a mapping as in its JSON. Nothing here asks the cluster. An object also
tells what it needs to run.
"""

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import yaml

from tacker_k8s_mgmt.model import kubernetes_yaml, object_shapes

Object = Mapping[str, Any]

#: The label that says whose an object of this driver is.
OWNER = "tacker-k8s-mgmt/owner"
JOB = "Job"
CLAIM = "PersistentVolumeClaim"
NAMESPACE = "Namespace"
#: Kinds whose pods are to run, in the order of ``kubectl rollout``.
ROLLED_OUT = ("Deployment", "StatefulSet", "DaemonSet")
#: Of Helm: the object is none of the release, but made at a point of its life.
_HOOK = "helm.sh/hook"
# Of a pod template, so that a changed configuration restarts the pods.
_CONFIG = "tacker-k8s-mgmt/config"
#: Of a Job: what it was made from, because a Job that is there cannot be changed.
JOB_DIGEST = "tacker-k8s-mgmt/digest"
#: Of Helm: ``keep`` has it leave the object when the release is removed.
_POLICY = "helm.sh/resource-policy"
#: The annotation of an object that Helm leaves.
KEEP = {_POLICY: "keep"}


@dataclass(frozen=True)
class Listing:
    """Objects of every kind.

    :param unlisted: why kinds could not be listed, by their names; what there is of
        them is not known.
    """

    objects: Sequence[Object]
    unlisted: Mapping[str, str] = field(default_factory=dict)

    def may_lack(self, one: Object) -> bool:
        """Whether an object may be there without being among these."""
        group, _ = key(one)
        # A kind is named as ``plural.group``, an API as ``group/version``.
        names = [name.partition(".")[2] for name in self.unlisted if "/" not in name]
        apis = [name.rpartition("/")[0] for name in self.unlisted if "/" in name]
        return group in (*names, *apis)

    @property
    def unknown(self) -> str:
        """The kinds that could not be listed, with the reasons; "" for none."""
        return "; ".join(f"{name} ({why})" for name, why in self.unlisted.items())


class Unusable(Exception):
    """A manifest that cannot be used; its text says why, without the content."""


def parse(text: str) -> tuple[dict[str, Any], ...]:
    """The objects of a manifest: YAML or JSON, with several documents and lists.

    :raises Unusable: it is none.
    """
    try:
        documents = kubernetes_yaml.documents(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise Unusable(f"is no YAML{where}") from None
    except (ValueError, RecursionError):
        raise Unusable("is no YAML") from None
    found: list[dict[str, Any]] = []
    for number, document in enumerate(documents, 1):
        if document is not None:
            found += _objects(document, f"its document {number}")
    return tuple(found)


def _objects(document: Any, where: str) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        raise Unusable(f"{where} is no object of Kubernetes")
    if str(document.get("kind", "")).endswith("List") and "items" in document:
        items = document["items"] or ()
        if not isinstance(items, list):
            raise Unusable(f"{where} has no list of items")
        for number, item in enumerate(items, 1):
            yield from _objects(item, f"{where}, item {number},")
        return
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    texts = (document.get("apiVersion"), document.get("kind"), name)
    if not all(isinstance(text, str) and text for text in texts):
        raise Unusable(f"{where} has no apiVersion, kind or metadata.name")
    try:
        object_shapes.checked(document)
    except ValueError as error:
        raise Unusable(f"{where}: {error}") from None
    try:
        json.dumps(document, allow_nan=False)
    except (TypeError, ValueError):
        # It has infinity, or no number.
        raise Unusable(f"{where} has values that JSON cannot have") from None
    yield document


def reference(api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
    """An object by its name alone.

    :param namespace: "" for a kind without namespaces.
    """
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def named(one: Object) -> dict[str, Any]:
    """A copy with nothing but what names it."""
    metadata = one["metadata"]
    namespace = metadata.get("namespace") or ""
    return reference(one["apiVersion"], one["kind"], namespace, metadata["name"])


def title(one: Object) -> str:
    """What errors call an object: ``Deployment keystone/api``."""
    metadata = one["metadata"]
    namespace = metadata.get("namespace")
    return f"{one['kind']} {f'{namespace}/' if namespace else ''}{metadata['name']}"


def titles(objects: Iterable[Object]) -> str:
    return ", ".join(map(title, objects))


def in_namespace(
    objects: Iterable[Object], namespace: str, cluster_wide: Iterable[tuple[str, str]]
) -> tuple[dict[str, Any], ...]:
    """Copies of the objects, with a namespace where one belongs and none is given.

    :param cluster_wide: API group and kind of what is in no namespace; definitions
        among the objects add theirs.
    """
    wide = {*cluster_wide, *(d for one in objects if (d := _cluster_wide(one)))}
    made = []
    for one in objects:
        copied = copy.deepcopy(dict(one))
        if key(copied) not in wide:
            copied["metadata"].setdefault("namespace", namespace)
        made.append(copied)
    return tuple(made)


def key(one: Object) -> tuple[str, str]:
    """API group and kind."""
    group, _, _ = str(one["apiVersion"]).rpartition("/")
    return group, one["kind"]


def identity(one: Object) -> tuple[str, str, str, str]:
    """What tells an object from others: group, kind, namespace and name."""
    metadata = one["metadata"]
    return *key(one), metadata.get("namespace") or "", metadata["name"]


def without(objects: Iterable[Object], others: Iterable[Object]) -> list[Object]:
    """Those objects that are not among the others."""
    known = set(map(identity, others))
    return [one for one in objects if identity(one) not in known]


def of_kinds(objects: Iterable[Object], *kinds: str) -> list[Object]:
    """The objects of these kinds, without hooks of Helm."""
    return [one for one in objects if one["kind"] in kinds and not is_hook(one)]


def is_hook(one: Object) -> bool:
    """Whether Helm makes it apart from the release."""
    return _HOOK in (one["metadata"].get("annotations") or {})


def hook_runs(objects: Iterable[Object], action: str) -> int:
    """How many hooks Helm runs before and after an action.

    :param action: ``install``, ``upgrade``, ``rollback`` or ``delete``.
    """
    points = (f"pre-{action}", f"post-{action}")
    runs = 0
    for one in objects:
        annotations = one["metadata"].get("annotations") or {}
        named = map(str.strip, str(annotations.get(_HOOK, "")).lower().split(","))
        runs += sum(point in points for point in named)
    return runs


def is_kept(one: Object) -> bool:
    """Whether Helm leaves it when the release is removed."""
    annotations = one["metadata"].get("annotations") or {}
    return str(annotations.get(_POLICY, "")).strip().lower() == "keep"


def is_going(one: Object) -> bool:
    """Whether it was deleted and is there only until that has ended."""
    return bool(one["metadata"].get("deletionTimestamp"))


def template_of(one: Object) -> Mapping[str, Any]:
    """The template of an object's pods, or itself if it is a pod; empty for others."""
    if one["kind"] == "Pod":
        return one
    spec = one.get("spec") or {}
    if one["kind"] == "CronJob":
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    template = spec.get("template") if isinstance(spec, Mapping) else None
    # A custom resource may have anything of that name.
    is_template = object_shapes.fits(template, object_shapes.Template)
    return template if is_template and isinstance(template, Mapping) else {}


def images(objects: Iterable[Object]) -> dict[str, str]:
    """The images of pods that a node may have to pull, each with an object's title."""
    found: dict[str, str] = {}
    for one in objects:
        spec = template_of(one).get("spec") or {}
        for container in (
            *(spec.get("initContainers") or ()),
            *(spec.get("containers") or ()),
        ):
            if container.get("imagePullPolicy") != "Never" and container.get("image"):
                found.setdefault(str(container["image"]), title(one))
    return found


def registry_of(image: str) -> str:
    """The registry's host of an image, ``docker.io`` where it names none."""
    host, slash, _ = image.partition("/")
    is_host = slash and ("." in host or ":" in host or host == "localhost")
    return host if is_host else "docker.io"


def with_config(objects: Iterable[Object], digest: str) -> list[dict[str, Any]]:
    """Copies, whose pods are replaced when the digest of the configuration changes."""
    made = []
    for one in objects:
        copied = copy.deepcopy(dict(one))
        if copied["kind"] in ROLLED_OUT and template_of(copied):
            metadata = copied["spec"]["template"].setdefault("metadata", {})
            # An empty entry of YAML is null.
            metadata["annotations"] = {
                **(metadata.get("annotations") or {}),
                _CONFIG: digest,
            }
        made.append(copied)
    return made


def claims_of(objects: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Where claims of StatefulSets are: namespace, and selector of their labels.

    The controller labels them as the pods are selected.
    """
    for one in objects:
        spec = one.get("spec") or {}
        if one["kind"] == "StatefulSet" and spec.get("volumeClaimTemplates"):
            labels = (spec.get("selector") or {}).get("matchLabels") or {}
            if labels:
                pairs = ",".join(f"{name}={labels[name]}" for name in sorted(labels))
                yield one["metadata"].get("namespace") or "", pairs


def _cluster_wide(one: Object) -> tuple[str, str] | None:
    if one["kind"] != "CustomResourceDefinition":
        return None
    spec = one.get("spec") or {}
    if spec.get("scope") != "Cluster":
        return None
    return str(spec.get("group")), str((spec.get("names") or {}).get("kind"))


_QUANTITY = re.compile(
    r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|[kMGTPE]i?|Ki|[eE][+-]?[0-9]+)?"
)
_FACTORS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("MGTPE", 2)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def differing_paths(wanted: Any, actual: Any, path: str = "") -> Iterator[str]:
    """The paths of what is otherwise than wanted; what others have added is left out.

    Quantities are compared by value, for the API server writes them in its own way.
    """
    if isinstance(wanted, Mapping):
        present = actual if isinstance(actual, Mapping) else {}
        for name, value in wanted.items():
            below = f"{path}.{name}" if path else str(name)
            yield from differing_paths(value, present.get(name), below)
    elif isinstance(wanted, list):
        # The API server leaves out empty lists.
        items = actual if isinstance(actual, list) else []
        if len(wanted) != len(items):
            yield path
            return
        for number, (value, other) in enumerate(zip(wanted, items, strict=True)):
            yield from differing_paths(value, other, f"{path}[{number}]")
    elif wanted != actual and not _are_equal(wanted, actual):
        yield path


def _are_equal(wanted: Any, actual: Any) -> bool:
    values = [_quantity(value) for value in (wanted, actual)]
    return values[0] is not None and values[0] == values[1]


def _quantity(value: Any) -> Decimal | None:
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return None
    number, unit = Decimal(found[1]), found[2] or ""
    if unit in _FACTORS:
        return number * _FACTORS[unit]
    return Decimal(f"{number}{unit}")
