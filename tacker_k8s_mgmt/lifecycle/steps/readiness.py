"""Waiting until what was made in the cluster is well."""

from collections.abc import Callable, Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import polling
from tacker_k8s_mgmt.lifecycle.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.model.nodes import Node


def wait_ready(state: ClusterState, nodes: Sequence[Node]) -> NodeObjects:
    """Wait until these nodes are Ready; the cluster's Node objects then, by name.

    :raises ClusterError: with every node that is not, after ``ready_timeout``.
    """
    seen: NodeObjects = {}

    def problem() -> str:
        nonlocal seen
        seen = state.seen()
        told = ((n.name, polling.not_ready(seen.get(n.name))) for n in nodes)
        return "; ".join(f"{name}: {why}" for name, why in told if why)

    wait_until_well(
        state,
        problem,
        "these nodes are not Ready: {left}.",
        "Look at the kubelet's log on them, and mend it.",
    )
    return seen


def wait_until_well(
    state: ClusterState, problem: Callable[[], str], detail: str, hint: str
) -> None:
    """Wait until there is no problem left.

    :param detail: what there is after ``ready_timeout``, with ``{left}`` in it.
    :raises ClusterError: with what is left then.
    """
    deps = state.deps
    limit = deps.ready_timeout
    left = polling.until_well(problem, deps.clock, limit, deps.poll_interval)
    if left:
        told = detail.format(left=left)
        raise errors.ClusterError(detail=f"After {limit:g} s {told}", hint=hint)


def verify_identity(
    state: ClusterState, seen: NodeObjects, nodes: Sequence[Node]
) -> None:
    """See that each Node object is of this VM and not of a former one.

    :raises ClusterError: naming the nodes that are of another machine.
    """
    others = []
    for node in nodes:
        own, told = state.site.identity(node), seen[node.name]
        if (own.machine_id, own.boot_id) != (told.machine_id, told.boot_id):
            others.append(node.name)
    if others:
        raise errors.ClusterError(
            detail=f"The Node objects {', '.join(others)} are Ready, but another "
            "machine reports for them than the VM of that address.",
            hint="Look which host runs a kubelet with that name, stop it, and "
            "delete the Node object.",
        )
