"""Taking away what the cluster and its load balancer have of nodes that are gone."""

from collections.abc import Sequence

from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.model.nodes import Node


def remove_routes(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Take the routes of these nodes out of the load balancer, if there is one."""
    balancing = state.balancing()
    if balancing is not None:
        balancing.remove(nodes)


def delete_nodes(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Delete these nodes from the cluster, their pods first."""
    names = [node.name for node in nodes]
    if names:
        state.cluster().evict_dead(names)
        state.cluster().remove_nodes(names)
