"""The load balancer."""

from collections.abc import Iterable, Sequence

from tacker_k8s_mgmt.model.load_balancer import (
    BalancerStatus,
    Call,
    ExposedService,
    Server,
)
from tests.helpers.fakes.state import Balanced, SiteState


def _servers(arguments: Iterable[str]) -> tuple[tuple[str, str], ...]:
    parts = (argument.partition("=") for argument in arguments)
    return tuple((name, address) for name, _, address in parts)


class FakeBalancer:
    """The script's verbs, by their arguments."""

    def __init__(self, site: SiteState) -> None:
        self._site = site

    def call(self, call: Call) -> str:
        self._site.touch(f"balancer.{call.verb}")
        getattr(self, f"_{call.verb.replace('-', '_')}")(call.arguments)
        return "changed\n"

    def _install(self, arguments: Sequence[str]) -> None:
        options: dict[str, list[str]] = {}
        for option, value in zip(arguments[::2], arguments[1::2], strict=True):
            options.setdefault(option, []).append(value)
        (port,) = options["--api-port"]
        planes = _servers(options["--control-plane"])
        workers = _servers(options.get("--worker", ()))
        self._site.change("balanced", Balanced(int(port), planes, workers))
        self._site.change("routes", frozenset(workers))

    def _add_worker(self, arguments: Sequence[str]) -> None:
        self._site.change("routes", self._site.routes | set(_servers(arguments)))

    def _remove_worker(self, names: Sequence[str]) -> None:
        kept = {route for route in self._site.routes if route[0] not in names}
        self._site.change("routes", frozenset(kept))

    def _expose(self, arguments: Sequence[str]) -> None:
        name, *rest = arguments
        options = dict(zip(rest[::2], map(int, rest[1::2]), strict=True))
        service = ExposedService(
            name,
            options["--port"],
            options["--node-port"],
            servers=(),
            check_port=options.get("--check-port"),
        )
        others = (one for one in self._site.exposed if one.name != name)
        self._site.change("exposed", (*others, service))

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
