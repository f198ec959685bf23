"""The external load balancer, by calls of its script; a cluster need not have one."""

from collections.abc import Sequence
from itertools import chain

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps.records import SERVICES_FILE
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, Call, expose
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role
from tacker_k8s_mgmt.request.models import LoadBalancer


def exists(state: ClusterState) -> bool:
    """Whether the cluster has a load balancer."""
    return bool(state.machines.load_balancer and state.params.load_balancer)


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
    wanted, proxy = _target(state)[1], state.params.proxy
    proxies = {
        "--http-proxy": proxy.http_proxy if proxy else None,
        "--https-proxy": proxy.https_proxy if proxy else None,
    }
    urls = {option: url.get_secret_value() for option, url in proxies.items() if url}
    options = [
        ("--api-port", str(wanted.api_port)),
        *(("--control-plane", plane) for plane in _servers(nodes, Role.CONTROL_PLANE)),
        *(("--worker", worker) for worker in _servers(nodes, Role.WORKER)),
        *((option, "-") for option in urls),
    ]
    lines = "".join(f"{url}\n" for url in urls.values())
    arguments = tuple(chain.from_iterable(options))
    _remote(state).call(Call("install", arguments, lines, limit=None))


def verify(state: ClusterState) -> None:
    """Check that it works as installed.

    :raises LoadBalancerError: it does not.
    """
    machine, wanted = _target(state)
    report = _remote(state).status()
    working = report.active and report.current
    if not working or report.api_port != wanted.api_port:
        raise errors.LoadBalancerError(
            host=machine.ssh_address,
            verb="install",
            reason="HAProxy does not run with what was installed.",
            hint="Look at `systemctl status haproxy` on it, and mend it.",
        )


def balance(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Set its control planes to those of these nodes; of its workers, keep these.

    :raises LoadBalancerError: its script failed; the earlier configuration stays.
    """
    if exists(state):
        routed = {server.name for server in status(state).workers}
        wanted = [n for n in nodes if n.role is Role.CONTROL_PLANE or n.name in routed]
        install(state, wanted)


def add(state: ClusterState, workers: Sequence[Node]) -> None:
    """Add the routes of these workers; existing ones stay.

    Specification, "Scale-out Worker nodes", the new routes.
    """
    servers = _servers(workers, Role.WORKER)
    if servers and exists(state):
        _remote(state).call(Call("add-worker", servers))


def remove(state: ClusterState, workers: Sequence[Node]) -> None:
    """Remove the routes of these workers; missing ones are no error.

    Specification, "Scale-in Worker nodes", first step.
    """
    if workers and exists(state):
        names = tuple(node.name for node in workers)
        _remote(state).call(Call("remove-worker", names))


def status(state: ClusterState) -> BalancerStatus:
    """Its status report; the services that it exposes are recorded."""
    report = _remote(state).status()
    services = [
        {key: value for key, value in vars(service).items() if key != "servers"}
        for service in report.services
    ]
    state.write_json(SERVICES_FILE, services)
    return report


def expose_again(state: ClusterState) -> None:
    """Expose the recorded services on a new load balancer.

    If one fails, the services before it stay exposed.
    """
    for service in state.records.services():
        _remote(state).call(expose(service))


def _remote(state: ClusterState) -> ports.Balancer:
    return state.site.balancer(_target(state)[0])


def _target(state: ClusterState) -> tuple[Machine, LoadBalancer]:
    machine, wanted = state.machines.load_balancer, state.params.load_balancer
    if machine is None or wanted is None:
        raise errors.ClusterError(detail="The load balancer has no complete VM.")
    return machine, wanted


def _servers(nodes: Sequence[Node], role: Role) -> tuple[str, ...]:
    """NAME=ADDRESS of those with this role."""
    return tuple(f"{node.name}={node.address}" for node in nodes if node.role is role)
