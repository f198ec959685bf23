# SPDX-License-Identifier: Apache-2.0
"""Volumes that Helm leaves when it changes or removes a release.

Helm deletes the PersistentVolumeClaims of a chart with the release, and at an upgrade
or a rollback those that the new manifest lacks. It leaves what is annotated with
``helm.sh/resource-policy: keep``. At an upgrade and a rollback it asks the object in
the cluster (``pkg/kube/client.go``), at the end of the release the manifest in its
record (``pkg/action/uninstall.go``).
"""

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import manifests, untrusted
from tacker_k8s_mgmt.model.manifests import CLAIM, KEEP, Unusable
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests

# Between two documents, as Helm reads them (pkg/releaseutil/manifest.go).
_SEPARATOR = re.compile(r"(?:^|\n)---\s*", re.ASCII)
# Of the records of a release (pkg/storage/driver/secrets.go).
_REVISION = (".metadata.labels.version", ".metadata.name")
_LARGEST = 32 * 1024 * 1024  # bytes of a record, which a Secret has compressed


class ChartVolumes:
    """The claims of one cluster's releases.

    Each method raises ``RemoteError`` if kubectl fails or the node cannot be reached.

    :param client: kubectl on a control plane.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._manifests = Manifests(client)

    def keep(self, manifest: str, namespace: str) -> None:
        """Have upgrades and rollbacks leave the claims of a manifest.

        :raises ClusterError: the manifest cannot be understood.
        """
        claims = manifests.placed(_claims(manifest), namespace, ())
        change = {"metadata": {"annotations": KEEP}}
        present = self._manifests.present(claims)
        with self._client.understanding("get -f -"):
            places = [manifests.identity(one)[2:] for one in present]
        for place, name in places:
            about = ("persistentvolumeclaims", name, f"--namespace={place}")
            self._client.patch(*about, change=change, read=lambda answer: None)

    def keep_at_end(self, manifest: str, name: str, namespace: str) -> None:
        """Have the end of a release leave its claims.

        :param manifest: of its latest revision.
        :raises ClusterError: its record cannot be understood; nothing was changed.
        """
        if is_kept(manifest):
            return
        where = f"--namespace={namespace}"
        selector = f"--selector=owner=helm,name={name}"
        revisions = self._client.table("secrets", _REVISION, _revision, where, selector)
        if not revisions:
            raise errors.ClusterError(
                detail=f"The record of the release {namespace}/{name} is gone."
            )
        _, latest = max(revisions)
        secret = self._client.get("secret", latest, where, read=dict)
        with self._client.understanding("get secrets"):
            release = _unpacked(secret["data"]["release"])
            release["manifest"] = _kept(release["manifest"])
        secret["data"]["release"] = _packed(release)
        # With its resourceVersion: what another Helm has written meanwhile stays.
        shown = f"kubectl replace Secret {secret['metadata']['name']}"
        self._client.run("replace", "-f", "-", stdin=json.dumps(secret), shown=shown)


def is_kept(manifest: str) -> bool:
    """Whether the end of a release with this manifest leaves its claims."""
    return all(map(manifests.is_kept, _claims(manifest)))


def _claims(manifest: str) -> list[dict[str, Any]]:
    """The claims in a manifest of a release.

    :raises ClusterError: it cannot be understood.
    """
    return [
        one for part in _parts(manifest) for one in _objects(part) if _is_claim(one)
    ]


def _parts(manifest: str) -> Iterator[str]:
    return filter(str.strip, _SEPARATOR.split(manifest))


def _objects(part: str) -> tuple[dict[str, Any], ...]:
    if CLAIM not in part:
        return ()
    try:
        return manifests.parse(part)
    except Unusable as error:
        raise errors.ClusterError(
            detail="What volumes a release has cannot be known, because its manifest "
            f"{error}.",
            hint="Nothing was changed. With `volumes: delete` it need not be known.",
        ) from None


def _is_claim(one: Mapping[str, Any]) -> bool:
    return manifests.key(one) == ("", CLAIM)


def _kept(manifest: str) -> str:
    """The manifest, with claims that Helm leaves; everything else is as it was."""
    texts = []
    for part in _parts(manifest):
        objects = _objects(part)
        if any(map(_is_claim, objects)):
            # Helm reads the policy of a List, not of what is in it.
            texts += [json.dumps(_annotated(one)) for one in objects]
        else:
            texts.append(part)
    return "".join(f"---\n{text}\n" for text in texts)


def _annotated(one: Mapping[str, Any]) -> Mapping[str, Any]:
    if not _is_claim(one):
        return one
    metadata = one["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **KEEP}
    return {**one, "metadata": {**metadata, "annotations": annotations}}


def _revision(number: str, name: str) -> tuple[int, str]:
    return int(number), name


def _unpacked(text: str) -> dict[str, Any]:
    try:
        data = base64.b64decode(base64.b64decode(text))
        release = untrusted.parse_json(untrusted.unpack_gzip(data, _LARGEST).decode())
    except (untrusted.Damaged, untrusted.TooLarge) as error:
        raise ValueError from error
    if not isinstance(release, dict):
        raise TypeError(type(release))
    return release


def _packed(release: Mapping[str, Any]) -> str:
    data = gzip.compress(json.dumps(release).encode(), mtime=0)
    return base64.b64encode(base64.b64encode(data)).decode()
