# SPDX-License-Identifier: Apache-2.0
"""What operations need of Kubernetes' objects, as Protocols; see :mod:`.ports`."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tacker_k8s_mgmt.model.manifests import Listing

#: An object of Kubernetes, as in its JSON.
Object = Mapping[str, Any]


class ManifestsReader(Protocol):
    """Objects in the cluster, read-only."""

    def present(self, objects: Sequence[Object]) -> Sequence[Object]: ...

    def get(
        self, kind: str, namespace: str = "", selector: str = ""
    ) -> Sequence[Object]: ...

    def serves(self, version: str, kind: str) -> bool: ...


class Manifests(ManifestsReader, Protocol):
    """Objects in the cluster that belong to an owner."""

    def apply(
        self, objects: Sequence[Object], *, owner: str, timeout: float
    ) -> None: ...

    def check(self, objects: Sequence[Object], *, owner: str = "") -> Sequence[str]: ...

    def owned(self, owner: str) -> Listing: ...

    def content(self, namespace: str) -> Listing: ...

    def delete(self, objects: Sequence[Object], timeout: float) -> None: ...

    def wait_gone(self, objects: Sequence[Object], timeout: float) -> None: ...
