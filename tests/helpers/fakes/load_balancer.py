# SPDX-License-Identifier: Apache-2.0
"""The load balancer."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from tacker_k8s_mgmt.model.load_balancer import (
    BalancerStatus,
    ExposedService,
    ScriptCall,
    Server,
)
from tests.helpers.fakes.state import Balanced, SiteState


def _servers(arguments: Iterable[str]) -> tuple[tuple[str, str], ...]:
    parts = (argument.partition("=") for argument in arguments)
    return tuple((name, address) for name, _, address in parts)


def _services(arguments: Sequence[str]) -> tuple[list[ExposedService], list[str]]:
    """What ``expose`` is to expose, and to remove."""
    services: list[ExposedService] = []
    gone: list[str] = []
    fields = {"--port": "port", "--node-port": "node_port"}
    fields |= {"--check-port": "check_port", "--health-port": "health_port"}
    words = iter(arguments)
    for word in words:
        if not word.startswith("--"):
            services.append(ExposedService(word, 0, 0, servers=()))
            continue
        value = next(words)
        if word == "--unexpose":
            gone.append(value)
        elif word in fields:
            services[-1] = replace(
                services[-1], **cast(Any, {fields[word]: int(value)})
            )
        elif word == "--protocol":
            services[-1] = replace(services[-1], protocol=value)
        elif word == "--proxy-protocol":
            services[-1] = replace(services[-1], proxy_protocol=True)
        elif word == "--source":
            sources = (*services[-1].sources, value)
            services[-1] = replace(services[-1], sources=sources)
        else:
            assert (word, value) in (("--http-proxy", "-"), ("--https-proxy", "-"))
    return services, gone


class FakeBalancer:
    """The script's verbs, by their arguments."""

    def __init__(self, site: SiteState) -> None:
        self._site = site

    def call(self, call: ScriptCall) -> str:
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
        services, gone = _services(arguments)
        changed = {*gone, *(service.name for service in services)}
        others = (one for one in self._site.exposed if one.name not in changed)
        self._site.change("exposed", (*others, *services))

    def status(self) -> BalancerStatus:
        self._site.touch("balancer.status")
        spec = self._site.balanced
        return BalancerStatus(
            active=self._site.balancer_runs,
            enabled=True,
            current=True,
            options={"api_port": spec.api_port if spec else None},
            control_planes=_up(spec.control_planes if spec else ()),
            workers=_up(sorted(self._site.routes)),
            services=self._site.exposed,
        )


def _up(routes: Iterable[tuple[str, str]]) -> tuple[Server, ...]:
    return tuple(Server(name, address, "UP") for name, address in routes)
