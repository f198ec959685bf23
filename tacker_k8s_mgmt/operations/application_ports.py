# SPDX-License-Identifier: Apache-2.0
"""What the applications on a cluster need from the outside, as Protocols."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tacker_k8s_mgmt.model.applications import Chart, Progress, Record
from tacker_k8s_mgmt.model.manifests import Object
from tacker_k8s_mgmt.operations.object_ports import Manifests


class Objects(Manifests, Protocol):
    """Objects of an owner in the cluster, and what kinds there are."""

    def cluster_wide(self) -> frozenset[tuple[str, str]]: ...

    def api_versions(self) -> Sequence[str]: ...


class Records(Protocol):
    """The records of the applications, in the cluster."""

    def read(self) -> Mapping[str, Record]: ...

    def write(self, record: Record) -> None: ...

    def remove(self, name: str) -> None: ...


class Workloads(Protocol):
    """Workloads and Jobs: how far they are, and why they do not work."""

    def progress(
        self, objects: Sequence[Object], former: Collection[str] = ()
    ) -> Progress: ...

    def ended_jobs(self, namespace: str) -> Collection[str]: ...

    def diagnosis(self, one: Object) -> str: ...

    def probe(
        self, namespace: str, service: str, port: int, path: str, scheme: str
    ) -> str: ...


class Charts(Protocol):
    """Helm."""

    def render(
        self,
        chart: Chart,
        name: str,
        namespace: str,
        version: str,
        api_versions: Sequence[str] = (),
        *,
        upgrade: bool = False,
    ) -> str: ...

    def install(
        self,
        chart: Chart,
        name: str,
        namespace: str,
        limit: float,
        hooks: int,
        *,
        keep_volumes: bool,
    ) -> None: ...

    def rollback(
        self,
        name: str,
        namespace: str,
        revision: int,
        limit: float,
        *,
        keep_volumes: bool,
    ) -> None: ...

    def uninstall(
        self, name: str, namespace: str, limit: float, *, keep_volumes: bool
    ) -> None: ...

    def recover(
        self, name: str, namespace: str, *, keep_volumes: bool
    ) -> Collection[int]: ...

    def state(self, name: str, namespace: str) -> str: ...

    def revision(self, name: str, namespace: str) -> int: ...

    def manifest(self, name: str, namespace: str) -> str: ...


class Applications(Protocol):
    """The applications on a cluster, through one of its control planes."""

    @property
    def objects(self) -> Objects: ...

    @property
    def records(self) -> Records: ...

    @property
    def workloads(self) -> Workloads: ...

    @property
    def charts(self) -> Charts: ...

    def fetch(self, url: str, sha256: str) -> bytes: ...
