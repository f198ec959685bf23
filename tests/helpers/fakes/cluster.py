"""The Kubernetes API."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tests.helpers.fakes.nodes import FakeNode
from tests.helpers.fakes.state import SiteState


@dataclass(frozen=True)
class FakeAccess:
    token: SecretStr = field(default_factory=lambda: SecretStr("t0ken"))
    ca_certificate: str = "-----BEGIN CERTIFICATE-----"


class FakeCluster:
    def __init__(self, site: SiteState) -> None:
        self._site = site

    def nodes(self) -> Sequence[FakeNode]:
        self._site.touch("cluster.nodes")
        return self._site.cluster_nodes

    def version(self) -> str:
        return self._site.version

    def admin_access(self) -> FakeAccess:
        self._site.touch("cluster.admin_access")
        return FakeAccess()

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]:
        self._site.touch("cluster.cordon")
        new = set(names) - self._site.cordoned
        self._site.change("cordoned", self._site.cordoned | new)
        return tuple(sorted(new))

    def uncordon(self, names: Sequence[str]) -> None:
        self._site.touch("cluster.uncordon")
        self._site.change("cordoned", self._site.cordoned - set(names))

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None:
        self._site.touch("cluster.drain")
        assert set(names) <= self._site.cordoned
        assert not set(names) & {name for name, _ in self._site.routes}
        if self._site.budget:
            raise errors.DrainError(failed=len(names), outcomes=[self._site.budget])
        for name in names:
            self._site.pods.pop(name, None)

    def evict_dead(self, names: Sequence[str]) -> None:
        self._site.touch("cluster.evict_dead")
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
        changed = replace(service, ingress=ingress, published=address)
        self._site.change(
            "services", [changed if s == service else s for s in self._site.services]
        )

    def uncertified(self, addresses: Sequence[str]) -> tuple[str, ...]:
        self._site.touch("cluster.uncertified")
        self._site.looks_for_certificate -= 1
        if self._site.looks_for_certificate < 0:
            return tuple(a for a in addresses if a not in self._site.certified)
        return tuple(addresses)
