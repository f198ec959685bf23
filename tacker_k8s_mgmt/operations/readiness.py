# SPDX-License-Identifier: Apache-2.0
"""Waiting until the nodes and other parts of the cluster are healthy."""

from collections.abc import Callable, Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import MachineIdentity, Node, NodeObject
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects, OperationContext
from tacker_k8s_mgmt.remote.site import Site

_FIRST_PAUSE = 0.2  # seconds; each later one doubles it, up to the poll interval
_KUBELET = "Look at the kubelet's log on them, and fix it."
_TRANSIENT = (errors.ConnectError, errors.CommandTimeout, errors.CommandFailed)


def readiness_problem(node: NodeObject | None) -> str:
    """Why a node is not in service; "" if it is."""
    if node is None:
        return "not in the cluster"
    problem = node.problem
    return f"Ready, but {problem}" if problem and node.ready else problem


def wait_ready(state: ClusterState, nodes: Sequence[Node]) -> NodeObjects:
    """Wait until these nodes are in service; the cluster's Node objects then, by name.

    :raises ClusterError: with each node that is not after ``ready_timeout``.
    """
    seen: NodeObjects = {}

    def problem() -> str:
        nonlocal seen
        seen = state.node_objects()
        reasons = ((n.name, readiness_problem(seen.get(n.name))) for n in nodes)
        return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)

    def hint() -> str:
        found = (seen[node.name].faults for node in nodes if node.name in seen)
        remedies = (fault.remedy for faults in found for fault in faults)
        return " ".join(dict.fromkeys((_KUBELET, *remedies)))

    text = "these nodes are not Ready: {left}."
    wait_until_healthy(state.deps, problem, text, hint)
    return seen


def wait_until_healthy(
    deps: OperationContext,
    problem: Callable[[], str],
    detail: str,
    hint: str | Callable[[], str],
) -> None:
    """Call *problem* until it returns "".

    A call that fails counts as a problem, because an API server that was just set up
    may be unreachable for a while. There is at least one call, whatever the limit.

    :param detail: the error's text, with ``{left}`` for the problem.
    :param hint: what to do, or returns it for the last problem.
    :raises ClusterError: there is a problem after ``ready_timeout``.
    :raises RemoteError: the call after ``ready_timeout`` fails.
    """
    limits = deps.limits
    deadline = deps.clock.now() + limits.ready_timeout
    pause = min(_FIRST_PAUSE, limits.poll_interval)
    while True:
        late = deps.clock.now() >= deadline
        try:
            left = problem()
        except _TRANSIENT:
            if late:
                raise
        else:
            if not left:
                return
            if late:
                text = detail.format(left=left)
                raise errors.ClusterError(
                    detail=f"After {limits.ready_timeout:g} s {text}",
                    hint=hint if isinstance(hint, str) else hint(),
                )
        deps.clock.sleep(pause)
        pause = min(2 * pause, limits.poll_interval)


def verify_identity(vms: Site, seen: NodeObjects, nodes: Sequence[Node]) -> None:
    """Check that each Node object is of the node's VM, not of a former one.

    :raises ClusterError: naming the nodes that are of another machine.
    """

    def is_of(vm: MachineIdentity, node: Node) -> bool:
        reported = seen[node.name]
        return (vm.machine_id, vm.boot_id) == (reported.machine_id, reported.boot_id)

    doubtful = [node for node in nodes if not is_of(vms.identity(node), node)]
    # A VM may have booted again since it was asked.
    others = [n.name for n in doubtful if not is_of(vms.identity(n, again=True), n)]
    if others:
        raise errors.ClusterError(
            detail=f"The Node objects {', '.join(others)} are Ready, but another "
            "machine reports for them than the VM of that address.",
            hint="Look which host runs a kubelet with that name, stop it, and "
            "delete the Node object.",
        )
