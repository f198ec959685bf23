"""The external load balancer; a cluster need not have one."""

from collections.abc import Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps.records import SERVICES_FILE
from tacker_k8s_mgmt.model.load_balancer import BalancerSpec, BalancerStatus
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

    :raises LoadBalancerError: its script failed; the earlier configuration stays.
    """
    proxy = state.params.proxy
    spec = BalancerSpec(
        api_port=_target(state)[1].api_port,
        control_planes=_addresses(nodes, Role.CONTROL_PLANE),
        workers=_addresses(nodes, Role.WORKER),
        http_proxy=proxy.http_proxy if proxy else None,
        https_proxy=proxy.https_proxy if proxy else None,
    )
    _remote(state).install(spec)


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
    """Add the routes of these workers; existing ones stay."""
    if workers and exists(state):
        _remote(state).add_workers(_addresses(workers, Role.WORKER))


def remove(state: ClusterState, workers: Sequence[Node]) -> None:
    """Remove the routes of these workers; missing ones are no error."""
    if workers and exists(state):
        _remote(state).remove_workers([node.name for node in workers])


def status(state: ClusterState) -> BalancerStatus:
    """Its status report; the services that it exposes are recorded."""
    report = _remote(state).status()
    keys = ("name", "port", "node_port", "check_port")
    services = [
        {key: getattr(service, key) for key in keys} for service in report.services
    ]
    state.write_json(SERVICES_FILE, services)
    return report


def expose_again(state: ClusterState) -> None:
    """Expose the recorded services on a new load balancer."""
    _remote(state).expose(state.records.services())


def _remote(state: ClusterState) -> ports.Balancer:
    return state.site.balancer(_target(state)[0])


def _target(state: ClusterState) -> tuple[Machine, LoadBalancer]:
    machine, wanted = state.machines.load_balancer, state.params.load_balancer
    if machine is None or wanted is None:
        raise errors.ClusterError(detail="The load balancer has no complete VM.")
    return machine, wanted


def _addresses(nodes: Sequence[Node], role: Role) -> tuple[tuple[str, str], ...]:
    return tuple((node.name, node.address) for node in nodes if node.role is role)
