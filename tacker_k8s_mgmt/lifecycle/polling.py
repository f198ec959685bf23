"""Waiting until something in the cluster is well."""

from collections.abc import Callable

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.model.cluster import NodeObject

_FIRST_PAUSE = 0.2  # seconds; each later one doubles it, up to the poll interval
_MAY_PASS = (errors.ConnectError, errors.CommandTimeout, errors.CommandFailed)


def until_well(
    problem: Callable[[], str], clock: ports.Clock, limit: float, interval: float
) -> str:
    """Look again and again until there is no problem left.

    An API server that has just been set up may come and go for a while, so a look that
    fails is one more problem.

    :param limit: seconds; it is looked at least once, whatever the limit.
    :param interval: longest pause between two looks, seconds.
    :returns: the problem that there is at the limit; "" if there is none.
    :raises RemoteError: the look at the limit fails.
    """
    deadline = clock.now() + limit
    pause = min(_FIRST_PAUSE, interval)
    while True:
        late = clock.now() >= deadline
        try:
            left = problem()
        except _MAY_PASS:
            if late:
                raise
        else:
            if late or not left:
                return left
        clock.sleep(pause)
        pause = min(2 * pause, interval)


def not_ready(node: NodeObject | None) -> str:
    """Why a node is not Ready; "" if it is."""
    if node is None:
        return "not in the cluster"
    return "" if node.ready else node.reason or "not Ready"
