# SPDX-License-Identifier: Apache-2.0
"""Objects of this driver's own, by server-side apply of kubectl.

Each object has two labels, so that what an owner has in the cluster is found without
any other record: also after a record was lost, and for objects of kinds that a later
version of their manifests does not have any more.
"""

import copy
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.model.manifest_objects import OWNER, Object, title
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient

LOG = logging.getLogger(__name__)

FIELD_MANAGER = "tacker-k8s-mgmt"
MANAGED_BY = "app.kubernetes.io/managed-by"

# The driver declares these fields, so it takes back what others have set in them
# (Kubernetes, "Server-Side Apply", "Conflicts").
_APPLY = (
    *("apply", "--server-side", "--force-conflicts"),
    *("--field-manager", FIELD_MANAGER, "-f", "-"),
)
# Others need them, and kubectl finds the kind of a custom resource only when its
# definition is there.
_FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass")
_MARGIN = 30.0  # seconds from the limit of a wait to that of the command
_CHECK_LIMIT = 180.0  # seconds
# kubectl: the API of an aggregated server, such as that of metrics, is not available.
_INCOMPLETE = "unable to retrieve the complete list of server APIs"
# kubectl reports one error a line, and the same one for each object of a namespace.
_NO_NAMESPACE = re.compile(r'namespaces "([^"]+)" not found')
_NO_KIND = re.compile(r'no matches for kind "([^"]+)"')
# Its advice in the line after that.
_CRD_ADVICE = "ensure CRDs are installed first"
_SHOWN = 5  # objects that are named in an error
# What the cluster makes itself: endpoints have copies of a Service's labels.
_MADE_BY_OTHERS = frozenset(
    {"endpoints", "endpointslices.discovery.k8s.io", "events", "events.events.k8s.io"}
)
_REFERENCE = (
    r'jsonpath={range .items[*]}{.apiVersion}{"\t"}{.kind}{"\t"}'
    r'{.metadata.namespace}{"\t"}{.metadata.name}{"\n"}{end}'
)


class Manifests:
    """Objects in the cluster that belong to an owner, such as ``app.keystone``.

    An owner is the value of a label. Each method raises ``RemoteError`` if kubectl
    fails or the node cannot be reached, and ``ClusterError`` if its answer cannot be
    parsed.
    The objects pass over standard input, because they may be Secrets.

    :param client: kubectl on a control plane.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def apply(self, objects: Sequence[Object], *, owner: str, timeout: float) -> None:
        """Apply objects in their order; namespaces and definitions first.

        Fields that a former call has set and *objects* lack are removed; objects are
        not (see :meth:`owned`).

        :param timeout: seconds for all of it.
        :raises ClusterError: a custom resource's definition was not established.
        """
        waiting = Backoff(timeout)
        for stage in _stages(objects):
            left = max(1.0, timeout - waiting.elapsed())
            items = _list([owned_by(owner, one) for one in stage])
            shown = f"kubectl apply --server-side of {titles(stage)}"
            self._client.run(*_APPLY, stdin=items, limit=left, shown=shown)
            self._wait_established(stage, waiting)

    def check(self, objects: Sequence[Object], *, owner: str = "") -> tuple[str, ...]:
        """What the API server has against these objects; changes nothing.

        What depends on objects of the same list (a namespace, the definition of a
        custom resource) is not checked before these are there.

        :param owner: whose they are to be; objects of another one, or of none, are
            problems too.
        :returns: a sentence for each problem.
        """
        problems = [*self._foreign(objects, owner)] if owner else []
        items = _list([owned_by(owner, one) if owner else one for one in objects])
        try:
            self._client.run(
                *(*_APPLY, "--dry-run=server"), stdin=items, limit=_CHECK_LIMIT
            )
        except errors.CommandFailed as error:
            lines = str(error.fields["output"]).splitlines()
            problems += _distinct(filter(None, map(str.strip, lines)), objects)
        return tuple(problems)

    def owned(self, owner: str) -> tuple[Object, ...]:
        """The objects of an owner, of every kind, by name only (without content)."""
        selector = f"--selector={OWNER}={owner}"
        return self._references(self._kinds(), "--all-namespaces", selector)

    def content(self, namespace: str, kinds: Sequence[str]) -> tuple[Object, ...]:
        """The objects of these kinds in a namespace, by name only."""
        return self._references(kinds, f"--namespace={namespace}")

    def _references(self, kinds: Sequence[str], *options: str) -> tuple[Object, ...]:
        options = (*options, "--ignore-not-found", "-o", _REFERENCE)
        shown = f"kubectl get all {' '.join(options[:-3])}"
        text = self._client.run("get", ",".join(kinds), *options, shown=shown)
        rows = (line.split("\t") for line in text.splitlines() if line)
        with self._client.understanding(shown.removeprefix("kubectl ")):
            found = {tuple(row): reference(*row) for row in rows}
        return tuple(found.values())

    def present(self, objects: Sequence[Object]) -> tuple[dict[str, Any], ...]:
        """Those of these objects that are in the cluster, as they are there."""
        if not objects:
            return ()
        items = _list([_bare(one) for one in objects])
        command = ("get", "-f", "-", "--ignore-not-found", "-o", "json")
        text = self._client.run(*command, stdin=items)
        with self._client.understanding("get -f -"):
            answer = json_text.parse(text or '{"kind": "List", "items": []}')
            return tuple(answer["items"] if answer["kind"] == "List" else [answer])

    def delete(self, objects: Sequence[Object], timeout: float) -> None:
        """Delete objects, the last first, and wait until they and theirs are gone.

        :param timeout: seconds for all of it.
        :raises ClusterError: naming what is left and its finalizers.
        """
        if objects:
            references = [_bare(one) for one in reversed(objects)]
            # The owner is gone when its dependents are.
            self._client.delete(references, "--cascade=foreground")
            self.wait_gone(references, timeout)

    def wait_gone(self, objects: Sequence[Object], timeout: float) -> None:
        """Wait until objects that were deleted are gone.

        :param timeout: seconds for all of it.
        :raises ClusterError: naming what is left and its finalizers.
        """
        waiting, references = Backoff(timeout), [_bare(one) for one in objects]
        while left := self.present(references):
            if waiting.spent():
                raise errors.ClusterError(
                    detail=f"Still there {timeout:g} s after they were deleted: "
                    f"{'; '.join(map(_with_finalizers, left))}.",
                    hint="See with `kubectl describe` what keeps them: a finalizer "
                    "whose controller is gone, or a pod whose node is silent. Then "
                    "repeat this.",
                )
            waiting.pause()

    def get(
        self, kind: str, namespace: str = "", selector: str = ""
    ) -> tuple[dict[str, Any], ...]:
        """The objects of a kind.

        :param namespace: "": of all, or a kind without namespaces.
        :param selector: of labels; "": all objects.
        """
        where = f"--namespace={namespace}" if namespace else "--all-namespaces"
        chosen = (f"--selector={selector}",) if selector else ()
        return self._client.get(
            kind, where, *chosen, read=lambda answer: tuple(answer["items"])
        )

    def _foreign(self, objects: Sequence[Object], owner: str) -> Iterable[str]:
        for one in self._present_of_known_kinds(objects):
            other = (one["metadata"].get("labels") or {}).get(OWNER)
            if other != owner:
                yield (
                    f"{title(one)} is in the cluster already and belongs to "
                    f"{other or 'none of its applications and tenants'}"
                )

    def _present_of_known_kinds(self, objects: Sequence[Object]) -> Sequence[Object]:
        """As :meth:`present`, without objects whose kind *objects* define."""
        defined = {kind for kind, _ in map(_defined, objects)}
        return self.present([one for one in objects if one["kind"] not in defined])

    def cluster_wide(self) -> frozenset[tuple[str, str]]:
        """API group and kind of everything that is in no namespace."""
        command = ("api-resources", "--namespaced=false", "--no-headers")
        try:
            rows = map(str.split, self._client.run(*command).splitlines())
            with self._client.understanding(" ".join(command)):
                # Name, short names if there are any, version, namespaced, kind.
                found = [(row[-3].rpartition("/")[0], row[-1]) for row in rows if row]
        except errors.CommandFailed as error:
            if _INCOMPLETE not in error.fields["output"]:
                raise
            found = [
                (group, str(kind["kind"]))
                for group, kind in self._resources_of_answering_groups()
                if not kind["namespaced"]
            ]
        return frozenset(found)

    def _kinds(self) -> list[str]:
        """Names of all kinds whose objects can be listed and deleted."""
        command = ("api-resources", "--verbs=list,delete", "-o", "name")
        try:
            names = self._client.run(*command).split()
        except errors.CommandFailed as error:
            if _INCOMPLETE not in error.fields["output"]:
                raise
            names = [
                f"{kind['name']}.{group}" if group else str(kind["name"])
                for group, kind in self._resources_of_answering_groups()
                if {"list", "delete"} <= set(kind["verbs"])
            ]
        return [name for name in names if name not in _MADE_BY_OTHERS]

    def _resources_of_answering_groups(
        self,
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Group and description of each kind of the API servers that answer."""
        groups = self._client.raw(
            "/apis",
            read=lambda answer: [
                (group["name"], f"/apis/{group['preferredVersion']['groupVersion']}")
                for group in answer["groups"]
            ],
        )
        for group, path in (("", "/api/v1"), *groups):
            try:
                kinds = self._client.raw(path, read=_resources)
            except errors.CommandFailed as error:
                LOG.warning("Objects of the API %s are not seen: %s", path, error)
                continue
            yield from ((group, kind) for kind in kinds)

    def _wait_established(self, objects: Sequence[Object], waiting: Backoff) -> None:
        """Wait until custom resources of these definitions can be made."""
        wanted = [one for one in objects if one["kind"] == "CustomResourceDefinition"]
        while names := [
            one["metadata"]["name"]
            for one in self.present(wanted)
            if not _is_established(one)
        ]:
            if waiting.spent():
                raise errors.ClusterError(
                    detail="These definitions of custom resources were not established "
                    f"in time: {', '.join(names)}.",
                    hint="See their conditions with `kubectl describe crd`.",
                )
            waiting.pause()


def reference(api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
    """An object by its name alone.

    :param namespace: "" for a kind without namespaces.
    """
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def titles(objects: Sequence[Object]) -> str:
    """The titles of objects, or their number if there are many."""
    if len(objects) > _SHOWN:
        return f"{len(objects)} objects"
    return ", ".join(map(title, objects))


def owned_by(owner: str, one: Object) -> dict[str, Any]:
    """A copy of the object with the labels of its owner."""
    copied = copy.deepcopy(dict(one))
    labels = copied["metadata"].setdefault("labels", {})
    labels |= {MANAGED_BY: FIELD_MANAGER, OWNER: owner}
    return copied


def _bare(one: Object) -> dict[str, Any]:
    metadata = one["metadata"]
    namespace = metadata.get("namespace") or ""
    return reference(one["apiVersion"], one["kind"], namespace, metadata["name"])


def _list(objects: Iterable[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def _stages(objects: Sequence[Object]) -> Iterator[Sequence[Object]]:
    """The objects in two stages, without empty ones."""
    first = [one for one in objects if one["kind"] in _FIRST]
    then = [one for one in objects if one["kind"] not in _FIRST]
    return filter(None, (first, then))


def _defined(one: Object) -> tuple[str, str]:
    """Kind and group of the custom resources that a definition defines."""
    if one["kind"] != "CustomResourceDefinition":
        return "", ""
    return one["spec"]["names"]["kind"], one["spec"]["group"]


def _is_established(definition: Object) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _distinct(lines: Iterable[str], objects: Sequence[Object]) -> list[str]:
    """kubectl's errors, without those that the objects themselves will mend."""
    namespaces = {
        one["metadata"]["name"] for one in objects if one["kind"] == "Namespace"
    }
    kinds = {kind for kind, _ in map(_defined, objects)}
    problems: dict[str, None] = {}
    for line in lines:
        namespace, kind = _NO_NAMESPACE.search(line), _NO_KIND.search(line)
        if namespace and namespace[1] in namespaces:
            continue
        if (kind and kind[1] in kinds) or line == _CRD_ADVICE:
            continue
        problems[line] = None
    return list(problems)


def _with_finalizers(one: Object) -> str:
    finalizers = ", ".join(one["metadata"].get("finalizers") or ()) or "no finalizer"
    return f"{title(one)} ({finalizers})"


def _resources(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Without subresources, which have a slash in their names."""
    return [kind for kind in answer["resources"] if "/" not in kind["name"]]
