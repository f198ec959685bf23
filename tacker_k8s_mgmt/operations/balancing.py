# SPDX-License-Identifier: Apache-2.0
"""The external load balancer, by calls of its script; a cluster need not have one.

Nodes that a feature takes out of service get no routes.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import chain

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import exposure, load_balancer
from tacker_k8s_mgmt.model.load_balancer import (
    BalancerStatus,
    ExposedService,
    ScriptCall,
    expose,
)
from tacker_k8s_mgmt.model.nodes import ROLES, Machine, Node, Role, of_role
from tacker_k8s_mgmt.operations.records import SERVICES_FILE
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.remote.balancer_vm import Balancer
from tacker_k8s_mgmt.request.installation import LoadBalancer


def exists(state: ClusterState) -> bool:
    """Whether the cluster has a load balancer."""
    return bool(state.machines.load_balancer and state.params.load_balancer)


def require(
    state: ClusterState, leaves: Callable[[str], bool] = lambda server_id: False
) -> None:
    """Check that a load balancer that the cluster has, has a VM that can be used.

    :param leaves: whether the operation rebuilds the VM with this server id.
    :raises ClusterError: it has not, and the operation does not rebuild it.
    """
    vm = state.machines.incomplete_balancer()
    if vm and not leaves(vm.server_id):
        raise errors.ClusterError(
            detail=f"The load balancer has no VM that can be used: {vm.state}. The "
            "nodes reach the API through it. Nothing was changed.",
            hint="Heal its VNFC first.",
        )


def expect(state: ClusterState) -> None:
    """Begin to log in to its VM in the background."""
    if exists(state):
        state.site.expect(_target(state)[0])


def install(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Install it in front of these nodes; services that it exposes are kept.

    Specification, "Instantiate Kubernetes cluster VNF", last step. The script reads the
    proxies' URLs, which may hold passwords, from standard input.

    :raises LoadBalancerError: its script failed; the earlier configuration stays.
    """
    proxies, lines = _proxies(state)
    call = load_balancer.install(_target(state)[1].options)
    routes = (
        (spec.route, server)
        for role, spec in ROLES.items()
        if spec.route
        for server in _servers(state, nodes, role)
    )
    arguments = (*call.arguments, *chain.from_iterable(routes), *proxies)
    _remote(state).call(replace(call, arguments=arguments, stdin=lines))


def verify(state: ClusterState) -> None:
    """Check that it works as installed.

    :raises LoadBalancerError: it does not.
    """
    machine, wanted = _target(state)
    report = _remote(state).status()
    working = report.active and report.current
    if not working or any(one.difference(report) for one in wanted.options):
        raise errors.LoadBalancerError(
            host=machine.ssh_address,
            verb="install",
            reason="HAProxy does not run with what was installed.",
            hint="Look at `systemctl status haproxy` on it, and fix it.",
        )


def set_control_planes(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Set its control planes to those of these nodes; of its workers, keep these.

    :raises LoadBalancerError: its script failed; the earlier configuration stays.
    """
    if exists(state):
        routed = {server.name for server in status(state).workers}
        wanted = [n for n in nodes if n.is_control_plane or n.name in routed]
        install(state, wanted)


def add(state: ClusterState, workers: Sequence[Node]) -> None:
    """Add the routes of these workers; existing ones stay.

    Specification, "Scale-out Worker nodes", the new routes.
    """
    servers = _servers(state, workers, Role.WORKER)
    if servers and exists(state):
        _remote(state).call(ScriptCall("add-worker", servers))


def remove(state: ClusterState, workers: Sequence[Node]) -> None:
    """Remove the routes of these workers; missing ones are no error.

    Specification, "Scale-in Worker nodes", first step.
    """
    if workers and exists(state):
        names = tuple(node.name for node in workers)
        _remote(state).call(ScriptCall("remove-worker", names))


def report(state: ClusterState) -> BalancerStatus:
    return _remote(state).status()


def heal_is_finished(state: ClusterState) -> bool:
    """Whether no heal has rebuilt its VM without completing it."""
    return state.healing.balancer in ("", _target(state)[0].server_id)


def is_complete(state: ClusterState, seen: BalancerStatus) -> bool:
    """Whether it has everything that it is to have; else only the records say what.

    :param seen: its status report.
    """
    return seen.api_port is not None and heal_is_finished(state)


def status(state: ClusterState) -> BalancerStatus:
    """Its status report; the services that no CNF's driver exposes are recorded."""
    seen = report(state)
    if not is_complete(state, seen):
        return seen
    services = [s for s in seen.services if exposure.of_service(s) is None]
    state.write_json(SERVICES_FILE, [_recorded(service) for service in services])
    return seen


def _recorded(service: ExposedService) -> dict[str, object]:
    """Its record, which an earlier release can read if it knows such a service."""
    content = vars(replace(service, servers=())).items()
    defaults = {field.name: field.default for field in fields(service)}
    return {
        key: value
        for key, value in content
        if key != "servers" and value != defaults[key]
    }


def change_services(
    state: ClusterState, services: Sequence[ExposedService], gone: Sequence[str] = ()
) -> None:
    """Expose services and remove others, in one change of the configuration.

    The first UDP port installs packages, so the script gets the proxies.

    :param gone: names of services.
    :raises LoadBalancerError: its script failed; the earlier configuration stays.
    """
    call = expose(services, gone)
    if any(service.protocol == "udp" for service in services):
        proxies, lines = _proxies(state)
        arguments = (*call.arguments, *proxies)
        call = replace(call, arguments=arguments, stdin=lines, limit=None)
    _remote(state).call(call)


def restore_services(state: ClusterState) -> None:
    """Expose the recorded services on a new load balancer, and what features have.

    If one fails, the services before it stay exposed.
    """
    for service in state.records.services():
        change_services(state, [service])
    for work in state.works:
        work.balancer_installed()


def _proxies(state: ClusterState) -> tuple[tuple[str, ...], str]:
    """The script's options for the proxies, and its standard input with their URLs."""
    proxy = state.params.proxy
    urls = {
        "--http-proxy": proxy.http_proxy if proxy else None,
        "--https-proxy": proxy.https_proxy if proxy else None,
    }
    given = {option: url.get_secret_value() for option, url in urls.items() if url}
    options = tuple(chain.from_iterable((option, "-") for option in given))
    return options, "".join(f"{url}\n" for url in given.values())


def _remote(state: ClusterState) -> Balancer:
    return state.site.balancer(_target(state)[0])


def _target(state: ClusterState) -> tuple[Machine, LoadBalancer]:
    machine, wanted = state.machines.load_balancer, state.params.load_balancer
    if machine is None or wanted is None:
        raise errors.ClusterError(detail="The load balancer has no complete VM.")
    return machine, wanted


def _servers(state: ClusterState, nodes: Sequence[Node], role: Role) -> tuple[str, ...]:
    """NAME=ADDRESS of those with this role, without those out of service.

    While the only control plane in service is healed, the API is at the others.
    """
    ours = of_role(nodes, role)
    in_service = [node for node in ours if state.in_service(node)]
    if role is Role.CONTROL_PLANE:
        in_service = in_service or [*ours]
    return tuple(f"{node.name}={node.address}" for node in in_service)
