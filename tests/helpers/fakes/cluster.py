# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import SecretStr

from lab.kubeapi.patches import merge
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.node_settings.marks import NodeMetadata, Workload
from tacker_k8s_mgmt.model.nodes import CORDONED
from tacker_k8s_mgmt.model.plan import PodMove
from tacker_k8s_mgmt.model.services import PROXY_MODE, Service
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tests.helpers.fakes.nodes import FakeNode, no_other_node
from tests.helpers.fakes.state import SiteState


@dataclass(frozen=True)
class FakeAccess:
    token: SecretStr = field(default_factory=lambda: SecretStr("t0ken"))
    ca_certificate: str = "-----BEGIN CERTIFICATE-----"
    uid: str = "4f0e9a55-3a1c-4f1d-8e3f-7b5e0f0a5a0a"


def marks_of(site: SiteState) -> list[NodeMetadata]:
    """What the Node objects have of their settings."""
    return [
        replace(
            site.marks.get(node.name, NodeMetadata(node.name)),
            unschedulable=node.name in site.cordoned,
        )
        for node in site.cluster_nodes
    ]


def mark(site: SiteState, changes: Mapping[str, Mapping[str, Any]]) -> None:
    for marks in marks_of(site):
        change = changes.get(marks.name)
        if change is None:
            continue
        metadata, spec = change.get("metadata", {}), change.get("spec", {})
        site.marks[marks.name] = replace(
            marks,
            labels=merge(marks.labels, metadata.get("labels", {})),
            annotations=merge(marks.annotations, metadata.get("annotations", {})),
            taints=tuple(spec.get("taints", marks.taints)),
        )
        if "unschedulable" in spec:
            names = {marks.name}
            cordoned = site.cordoned - names
            site.cordoned = cordoned | names if spec["unschedulable"] else cordoned


class FakeMetadataClient:
    """What the settings of nodes ask the cluster."""

    def __init__(self, site: SiteState) -> None:
        self._site = site

    def metadata(self) -> Sequence[NodeMetadata]:
        self._site.touch("cluster.marks")
        return marks_of(self._site)

    def change(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        self._site.touch("cluster.mark")
        if self._site.conflicts:
            self._site.conflicts -= 1
            return
        mark(self._site, changes)
        self._site.changes.append("marks")

    def workloads(self) -> Sequence[Workload]:
        self._site.touch("cluster.workloads")
        return self._site.workloads


class FakeCluster:
    def __init__(self, site: SiteState) -> None:
        self._site = site

    def nodes(self) -> Sequence[FakeNode]:
        self._site.touch("cluster.nodes")
        return [
            replace(
                node,
                unschedulable=node.unschedulable or marks.unschedulable,
                cordoned_by_us=CORDONED in marks.annotations,
                in_maintenance=marks.in_maintenance,
                labels={**node.labels, **marks.labels},
                taints=(*node.taints, *marks.taints),
            )
            for node, marks in zip(
                self._site.cluster_nodes, marks_of(self._site), strict=True
            )
        ]

    def api_readiness(self) -> str:
        return ""

    def version(self) -> str:
        return self._site.version

    def admin_access(self) -> FakeAccess:
        self._site.touch("cluster.admin_access")
        return FakeAccess()

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]:
        self._site.touch("cluster.cordon")
        marks = {one.name: one for one in marks_of(self._site) if one.name in names}
        new = set(names) - self._site.cordoned
        self._site.change("cordoned", self._site.cordoned | new)
        mark(
            self._site,
            {name: {"metadata": {"annotations": {CORDONED: "true"}}} for name in new},
        )
        ours = {one.name for one in marks.values() if CORDONED in one.annotations}
        return tuple(sorted(new | ours))

    def uncordon(self, names: Sequence[str]) -> None:
        self._site.touch("cluster.uncordon")
        self._site.change("cordoned", self._site.cordoned - set(names))
        mark(
            self._site,
            {name: {"metadata": {"annotations": {CORDONED: None}}} for name in names},
        )

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None:
        self._site.touch("cluster.drain")
        assert set(names) <= self._site.cordoned
        assert not set(names) & {name for name, _ in self._site.routes}
        if self._site.budget:
            raise self._kept(names, [self._site.budget])
        for name in names:
            self._site.pods.pop(name, None)

    def drain_outlook(
        self, names: Sequence[str], policy: DrainPolicy
    ) -> tuple[PodMove, ...]:
        self._site.touch("cluster.drain_outlook")
        return tuple(
            PodMove(
                name,
                pod,
                kept := self.kept_by(name),
                blocks=bool(kept) and policy.on_failure != "force",
                stranded=no_other_node(
                    [self._site.pod_specs.get(pod, {})], names, self.nodes()
                ),
            )
            for name in names
            for pod in self._site.pods.get(name, ())
        )

    def kept_by(self, node: str) -> tuple[str, ...]:
        """What keeps pods on a node."""
        return (self._site.budget,) if self._site.budget else ()

    def _kept(self, names: Sequence[str], outcomes: Sequence[str]) -> errors.DrainError:
        """The error of a drain whose pods stay."""
        pods = [pod for name in names for pod in self._site.pods.get(name, ())]
        specs = [self._site.pod_specs.get(pod, {}) for pod in pods]
        return errors.DrainError(
            failed=len(names),
            outcomes=outcomes,
            no_other_node=no_other_node(specs, names, self.nodes()),
        )

    def force_evict(self, names: Sequence[str]) -> None:
        self._site.touch("cluster.force_evict")
        for name in names:
            self._site.pods.pop(name, None)

    def remove_nodes(self, names: Sequence[str]) -> None:
        self._site.touch("cluster.remove_nodes")
        for name in names:
            self._site.remove(name)

    def services(self, namespace: str) -> Sequence[Service]:
        self._site.touch("cluster.services")
        return [one for one in self._site.services if one.namespace == namespace]

    def publish(self, service: Service, address: str) -> None:
        self._site.touch("cluster.publish")
        ingress = (address,) if address else ()
        modes = (PROXY_MODE,) if address else ()
        changed = replace(service, ingress=ingress, modes=modes, published=address)
        self._site.change(
            "services", [changed if s == service else s for s in self._site.services]
        )

    def uncertified(self, addresses: Sequence[str]) -> tuple[str, ...]:
        self._site.touch("cluster.uncertified")
        self._site.looks_for_certificate -= 1
        if self._site.looks_for_certificate < 0:
            return tuple(a for a in addresses if a not in self._site.certified)
        return tuple(addresses)
