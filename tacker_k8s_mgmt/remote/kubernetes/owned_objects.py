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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import object_shapes, untrusted
from tacker_k8s_mgmt.model.manifests import (
    OWNER,
    Listing,
    Object,
    key,
    named,
    reference,
    title,
)
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.timing import Backoff

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
_NO_KIND = re.compile(r'no matches for kind "([^"]+)"(?: in version "([^"]+)")?')
# Its advice in the line after that.
_CRD_ADVICE = "ensure CRDs are installed first"
# kubectl's word for what an API server advises, on success and failure alike.
_WARNING = "Warning: "
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9./-]{0,500}")
_SHOWN = 5  # objects that are named in an error
# What the cluster makes itself: endpoints have copies of a Service's labels.
_MADE_BY_OTHERS = frozenset(
    {"endpoints", "endpointslices.discovery.k8s.io", "events", "events.events.k8s.io"}
)
# Kubernetes itself makes these in every namespace, with the token of each account.
_USUAL = (("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"))
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105
# Of a reference to an object, and what tells whether a namespace has it of its own.
_REFERENCE = (
    *(".apiVersion", ".kind", ".metadata.namespace", ".metadata.name"),
    *(".type", ".metadata.ownerReferences"),
)
_LISTED = "--verbs=list,delete"
_SERVED_VERSIONS = ".spec.versions[?(@.served==true)].name"
# What the API server answers when it serves: with etcd, and with its roles.
_SERVES = ("get", "--raw=/api/v1/namespaces?limit=1")

_Row = tuple[str, str, str, str, Any, Any]


@dataclass(frozen=True)
class _Kind:
    """A kind that the API server has.

    :param name: as kubectl takes it: ``deployments.apps``.
    :param version: the preferred one: ``apps/v1``.
    """

    name: str
    version: str
    kind: str
    namespaced: bool

    @property
    def key(self) -> tuple[str, str]:
        """API group and kind."""
        return key({"apiVersion": self.version, "kind": self.kind})


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
            problems += _refusals(error, objects)
        return tuple(problems)

    def owned(self, owner: str) -> Listing:
        """The objects of an owner, of every kind, by name only (without content)."""
        selector = f"--selector={OWNER}={owner}"
        kinds, unlisted = self._kinds()
        found = self._list(kinds, "--all-namespaces", selector)
        return Listing(found.objects, {**unlisted, **found.unlisted})

    def content(self, namespace: str) -> Listing:
        """What is in a namespace, of every kind, by name only (without content).

        Without what Kubernetes itself makes there, and without what is removed with its
        owner in the same namespace.
        """
        kinds, unlisted = self._kinds()
        wide = {one.key for one in kinds if not one.namespaced}
        inside = [one for one in kinds if one.namespaced]
        found = self._list(
            inside, f"--namespace={namespace}", counts=lambda row: _counts(row, wide)
        )
        return Listing(found.objects, {**unlisted, **found.unlisted})

    def _list(
        self,
        kinds: Sequence[_Kind],
        *options: str,
        counts: Callable[[_Row], bool] = lambda row: True,
    ) -> Listing:
        """List all kinds at once; if that fails, find those that cannot be listed.

        One kind, such as one whose conversion webhook is gone, fails the whole command:
        then it is repeated in parts, down to single kinds.
        """
        shown = f"all {' '.join(options)}"

        def get(asked: Sequence[_Kind]) -> tuple[list[_Row], dict[str, str]]:
            names = ",".join(one.name for one in asked)
            try:
                return self._client.table(
                    names,
                    _REFERENCE,
                    _row,
                    *options,
                    "--ignore-not-found",
                    patience=0,
                    shown=shown,
                ), {}
            except errors.CommandFailed as error:
                reason = str(error.fields["tail"])
            if len(asked) == 1:
                return [], {names: reason}
            if len(asked) == len(kinds):
                self._client.run(*_SERVES)  # while it restarts, all kinds fail
            first, rest = _parted(asked, reason)
            rows, broken = get(first)
            more, others = get(rest)
            return rows + more, {**broken, **others}

        rows, unlisted = get(kinds)
        for name, reason in unlisted.items():
            LOG.warning("Objects of %s cannot be listed: %s", name, reason)
        with self._client.understanding(f"get {shown}"):
            found = {row[:4]: row for row in rows if counts(row)}
            objects = tuple(reference(*names) for names in found)
        return Listing(objects, unlisted)

    def present(self, objects: Sequence[Object]) -> tuple[dict[str, Any], ...]:
        """Those of these objects that are in the cluster, as they are there.

        Of a kind that the API server does not have there are none.
        """
        if not objects:
            return ()
        items = _list([named(one) for one in objects])
        command = ("get", "-f", "-", "--ignore-not-found", "-o", "json")
        try:
            text = self._client.run(*command, stdin=items)
        except errors.CommandFailed as error:
            absent = _NO_KIND.findall(str(error.fields["output"]))
            others = [
                one for one in objects if (one["kind"], one["apiVersion"]) not in absent
            ]
            if len(others) == len(objects):
                raise
            return self.present(others)
        with self._client.understanding("get -f -"):
            answer = untrusted.parse_json(text or '{"kind": "List", "items": []}')
            found = answer["items"] if answer["kind"] == "List" else [answer]
            return tuple(map(object_shapes.checked, found))

    def delete(self, objects: Sequence[Object], timeout: float) -> None:
        """Delete objects, the last first, and wait until they and theirs are gone.

        :param timeout: seconds for all of it.
        :raises ClusterError: naming what is left and its finalizers.
        """
        references = [named(one) for one in reversed(self.present(objects))]
        if references:
            # The owner is gone when its dependents are.
            self._client.delete(references, "--cascade=foreground")
            self.wait_gone(references, timeout)

    def wait_gone(self, objects: Sequence[Object], timeout: float) -> None:
        """Wait until objects that were deleted are gone.

        :param timeout: seconds for all of it.
        :raises ClusterError: naming what is left and its finalizers.
        """
        waiting, references = Backoff(timeout), [named(one) for one in objects]
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
            *(kind, where, *chosen),
            read=lambda answer: tuple(map(object_shapes.checked, answer["items"])),
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

    def api_versions(self) -> tuple[str, ...]:
        """The versions of the API and their kinds, as Helm names them.

        ``apps/v1`` and ``apps/v1/Deployment``; of versions that are not preferred, the
        kinds of custom resources only: Helm itself knows the others.
        """
        versions = self._client.run("api-versions").split()
        kinds, _ = self._discovered()
        custom = self._client.table(
            "customresourcedefinitions",
            (".spec.group", ".spec.names.kind", _SERVED_VERSIONS),
            read=lambda group, kind, names: [
                f"{group}/{name}/{kind}" for name in names
            ],
        )
        names = (f"{one.version}/{one.kind}" for one in kinds)
        return tuple(dict.fromkeys((*versions, *names, *chain(*custom))))

    def serves(self, version: str, kind: str) -> bool:
        """Whether the API server has a kind that is in no namespace, in this version.

        :param version: such as ``rbac.authorization.k8s.io/v1``, as it is preferred.
        """
        group = version.rpartition("/")[0]
        kinds, _ = self._discovered("--namespaced=false", f"--api-group={group}")
        return any((one.version, one.kind) == (version, kind) for one in kinds)

    def cluster_wide(self) -> frozenset[tuple[str, str]]:
        """API group and kind of everything that is in no namespace."""
        kinds, _ = self._discovered("--namespaced=false")
        return frozenset(one.key for one in kinds if not one.namespaced)

    def _kinds(self) -> tuple[list[_Kind], dict[str, str]]:
        """All kinds whose objects can be listed and deleted, but copies of others.

        :returns: and why those of an API are not known, by its group and version.
        """
        kinds, unlisted = self._discovered(_LISTED)
        return [one for one in kinds if one.name not in _MADE_BY_OTHERS], unlisted

    def _discovered(self, *options: str) -> tuple[list[_Kind], dict[str, str]]:
        """The kinds that kubectl lists with these options; see :meth:`_kinds`."""
        command = ("api-resources", *options, "--no-headers")
        try:
            rows = map(str.split, self._client.run(*command).splitlines())
            with self._client.understanding(" ".join(command)):
                # Name, short names if there are any, version, namespaced, kind.
                return [
                    _kind(row[0], row[-3], row[-1], row[-2]) for row in rows if row
                ], {}
        except errors.CommandFailed as error:
            if _INCOMPLETE not in error.fields["output"]:
                raise
        found, silent = self._resources_of_answering_groups()
        with self._client.understanding("get --raw /apis"):
            return [
                _kind(one["name"], version, one["kind"], str(one["namespaced"]).lower())
                for version, one in found
                if _LISTED not in options or {"list", "delete"} <= set(one["verbs"])
            ], silent

    def _resources_of_answering_groups(
        self,
    ) -> tuple[list[tuple[str, Mapping[str, Any]]], dict[str, str]]:
        """Version and description of each kind of the API servers that answer.

        :returns: and why others do not, by their group and version.
        """
        groups = self._client.raw(
            "/apis",
            read=lambda answer: [
                _word(group["preferredVersion"]["groupVersion"])
                for group in answer["groups"]
            ],
        )
        found, silent = [], {}
        for version in ("v1", *groups):
            path = f"/apis/{version}" if "/" in version else f"/api/{version}"
            try:
                kinds = self._client.raw(path, read=_resources)
            except errors.CommandFailed as error:
                LOG.warning("Objects of the API %s are not seen: %s", path, error)
                silent[version] = str(error.fields["tail"])
                continue
            found += [(version, kind) for kind in kinds]
        return found, silent

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
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _kind(plural: str, version: str, kind: str, namespaced: str) -> _Kind:
    group = _word(version).rpartition("/")[0]
    name = f"{plural}.{group}" if group else plural
    return _Kind(_word(name), version, _word(kind), namespaced == "true")


def _word(name: str) -> str:
    """A name, which becomes a part of a command.

    :raises TypeError, ValueError: it is none.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("no name of an API")
    return name


def _parted(
    kinds: Sequence[_Kind], reason: str
) -> tuple[Sequence[_Kind], Sequence[_Kind]]:
    """Kinds in two parts: those that an error names and the others, or halves."""
    words = set(re.split(r"[^\w.-]+", reason))
    blamed = [one for one in kinds if {one.kind, one.name} & words]
    if 0 < len(blamed) < len(kinds):
        return blamed, [one for one in kinds if one not in blamed]
    half = len(kinds) // 2
    return kinds[:half], kinds[half:]


def _row(
    version: str, kind: str, namespace: str | None, name: str, type_: Any, owners: Any
) -> _Row:
    return version, kind, namespace or "", name, type_, owners or ()


def _counts(row: _Row, wide: Collection[tuple[str, str]]) -> bool:
    """Whether a row of :data:`_REFERENCE` is something that a namespace has.

    :param wide: kinds that are in no namespace: what they own stays when it is removed.
    """
    _, kind, _, name, type_, owners = row
    if (kind, name) in _USUAL or (kind == "Secret" and type_ == _TOKEN):
        return False
    return not owners or any(key(owner) in wide for owner in owners)


def _refusals(error: errors.CommandFailed, objects: Sequence[Object]) -> list[str]:
    """What an API server has against these objects; its warnings are logged."""
    lines = [line.strip() for line in str(error.fields["output"]).splitlines()]
    warnings = [line for line in lines if line.startswith(_WARNING)]
    for line in dict.fromkeys(warnings):
        LOG.warning("%s: %s", titles(objects), line)
    others = [line for line in lines if line and line not in warnings]
    return _distinct(others or [str(error.fields["tail"])], objects)


def _distinct(lines: Iterable[str], objects: Sequence[Object]) -> list[str]:
    """kubectl's errors, without those that the objects themselves will fix."""
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
