# SPDX-License-Identifier: Apache-2.0
"""Objects in the cluster, by owners; apply, look and delete as kubectl does."""

import base64
import copy
from collections.abc import Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.manifests import Listing
from tests.helpers.fakes.state import SiteState

Object = Mapping[str, Any]
_OWNER = "tacker-k8s-mgmt/owner"
_TOKEN = "kubernetes.io/service-account-token"


def key(one: Object) -> tuple[str, str, str]:
    """Kind, namespace and name."""
    metadata = one["metadata"]
    return one["kind"], metadata.get("namespace", ""), metadata["name"]


class FakeManifests:
    def __init__(self, site: SiteState) -> None:
        self._site = site

    def apply(self, objects: Sequence[Object], *, owner: str, timeout: float) -> None:
        self._site.touch("manifests.apply")
        new = dict(self._site.objects)
        for one in objects:
            made: Any = copy.deepcopy(dict(one))
            labels = made["metadata"].setdefault("labels", {})
            labels["app.kubernetes.io/managed-by"] = "tacker-k8s-mgmt"
            labels[_OWNER] = owner
            if made.get("type") == _TOKEN:
                text = base64.b64encode(f"token of {key(one)[2]}".encode()).decode()
                made["data"] = {"token": text, "ca.crt": text}
            new[key(one)] = made
        self._site.change("objects", new)

    def check(self, objects: Sequence[Object], *, owner: str = "") -> Sequence[str]:
        self._site.touch("manifests.check")
        everything = [*objects, *self._site.objects.values()]
        there = {key(one)[2] for one in everything if one["kind"] == "Namespace"}
        wanted = dict.fromkeys(key(one)[1] for one in objects)
        return [
            *(f'namespaces "{n}" not found' for n in wanted if n and n not in there),
            *(
                f"{' '.join(filter(None, key(one)))} is in the cluster already"
                for one in self._present(objects)
                if one["metadata"].get("labels", {}).get(_OWNER) != owner
            ),
        ]

    def owned(self, owner: str) -> Listing:
        self._site.touch("manifests.owned")
        everything = self._site.objects.values()
        return Listing(
            [
                o
                for o in everything
                if o["metadata"].get("labels", {}).get(_OWNER) == owner
            ]
        )

    def content(self, namespace: str) -> Listing:
        self._site.touch("manifests.content")
        everything = self._site.objects.items()
        found = [one for (_, where, _), one in everything if where == namespace]
        return Listing(found, self._site.unlisted)

    def wait_gone(self, objects: Sequence[Object], timeout: float) -> None:
        self._site.touch("manifests.wait_gone")
        if left := self._present(objects):
            raise errors.ClusterError(detail=f"Still there: {key(left[0])}.")

    def serves(self, version: str, kind: str) -> bool:
        return (version, kind) not in self._site.unserved

    def present(self, objects: Sequence[Object]) -> Sequence[Object]:
        self._site.touch("manifests.present")
        return self._present(objects)

    def _present(self, objects: Sequence[Object]) -> Sequence[Object]:
        there = self._site.objects
        return [there[key(one)] for one in objects if key(one) in there]

    def get(
        self, kind: str, namespace: str = "", selector: str = ""
    ) -> Sequence[Object]:
        self._site.touch(f"manifests.get {kind}")
        label, _, value = selector.partition("=")
        return [
            one
            for (its, where, _), one in self._site.objects.items()
            if kind in (f"{its.lower()}s", f"{its.lower()}es")
            and namespace in ("", where)
            and (not label or one["metadata"].get("labels", {}).get(label) == value)
        ]

    def delete(self, objects: Sequence[Object], timeout: float) -> None:
        self._site.touch("manifests.delete")
        gone = {key(one) for one in objects}
        namespaces = {name for kind, _, name in gone if kind == "Namespace"}
        kept = {
            where: one
            for where, one in self._site.objects.items()
            if where not in gone and where[1] not in namespaces
        }
        self._site.change("objects", kept)
