# SPDX-License-Identifier: Apache-2.0
"""The records of applications, each a Secret in a namespace of this driver's own.

Not in the applications' namespaces: users who may write Secrets there could have this
driver apply objects of their choice, with its own rights.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import applications, untrusted
from tacker_k8s_mgmt.model.applications import Record
from tacker_k8s_mgmt.model.manifests import OWNER
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests

NAMESPACE = "tacker-k8s-mgmt-applications"
_OWNER = "applications"
_KIND = "tacker-k8s-mgmt/application"
_NO_NAMESPACE = f'namespaces "{NAMESPACE}" not found'
_LIMIT = 60.0  # seconds


class ApplicationRecords:
    """The records of one cluster's applications.

    Each method raises ``RemoteError`` if kubectl fails or the node cannot be reached.

    :param client: kubectl on a control plane.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._manifests = Manifests(client)

    def read(self) -> dict[str, Record]:
        """Return the records by the applications' names.

        :raises ClusterError: one cannot be understood.
        """
        selector = f"{OWNER}={_OWNER}"
        records, size, values = {}, 0, 0
        for one in self._manifests.get("secrets", NAMESPACE, selector):
            name = one["metadata"]["name"]
            with _naming(name):
                packed = applications.decoded(one["data"]["record"])
                text = applications.unpacked(packed, applications.LARGEST - size)
                size += len(text)
                values += untrusted.limit(text, untrusted.MOST_JSON_VALUES - values)
                records[name] = applications.read(text)
        return records

    def write(self, record: Record) -> None:
        """Write a record."""
        content = {"type": _KIND, "stringData": {"record": record.pack()}}
        secret = {**_bare(record.name), **content}
        try:
            self._manifests.apply([secret], owner=_OWNER, timeout=_LIMIT)
        except errors.CommandFailed as error:
            if _NO_NAMESPACE not in error.fields["output"]:
                raise
            metadata = {"name": NAMESPACE}
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            self._manifests.apply([space, secret], owner=_OWNER, timeout=_LIMIT)

    def remove(self, name: str) -> None:
        """Remove a record."""
        self._manifests.delete([_bare(name)], _LIMIT)


def _bare(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say which record cannot be understood."""
    try:
        yield
    except (applications.Spoiled, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, applications.Spoiled) else "it is none"
        raise errors.ClusterError(
            detail=f"The record of the application {name}, Secret {NAMESPACE}/{name}, "
            f"cannot be used: {reason}.",
            hint="Delete that Secret; the application is then brought in agreement "
            "with its request as if it were new, and cannot go back.",
        ) from None
