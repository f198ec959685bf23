"""The load balancer."""

from collections.abc import Iterable, Sequence

from tacker_k8s_mgmt.model.load_balancer import (
    BalancerSpec,
    BalancerStatus,
    ExposedService,
    Server,
)
from tests.helpers.fakes.state import SiteState


class FakeBalancer:
    def __init__(self, site: SiteState) -> None:
        self._site = site

    def install(self, spec: BalancerSpec) -> None:
        self._site.touch("balancer.install")
        self._site.change("balanced", spec)
        self._site.change("routes", frozenset(spec.workers))

    def add_workers(self, workers: Sequence[tuple[str, str]]) -> None:
        self._site.touch("balancer.add_workers")
        self._site.change("routes", self._site.routes | set(workers))

    def remove_workers(self, names: Sequence[str]) -> None:
        self._site.touch("balancer.remove_workers")
        kept = {route for route in self._site.routes if route[0] not in names}
        self._site.change("routes", frozenset(kept))

    def expose(self, services: Sequence[ExposedService]) -> None:
        self._site.touch("balancer.expose")
        self._site.change("exposed", tuple(services))

    def status(self) -> BalancerStatus:
        self._site.touch("balancer.status")
        spec = self._site.balanced
        return BalancerStatus(
            active=self._site.balancer_runs,
            enabled=True,
            current=True,
            api_port=spec.api_port if spec else None,
            control_planes=_up(spec.control_planes if spec else ()),
            workers=_up(sorted(self._site.routes)),
            services=self._site.exposed,
        )


def _up(routes: Iterable[tuple[str, str]]) -> tuple[Server, ...]:
    return tuple(Server(name, address, "UP") for name, address in routes)
