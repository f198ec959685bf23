# SPDX-License-Identifier: Apache-2.0
"""The test that pods on new nodes reach those on others, and the API's Service.

What it finds otherwise shows only when pods of a CNF lie on two nodes: port security
drops their packets, or large ones are lost.
"""

from collections.abc import Callable, Collection, Sequence

from tacker_k8s_mgmt.features.pod_network import measurement
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.operations import readiness
from tacker_k8s_mgmt.operations.feature import Feature, Work
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.operations.step import Step

_PLUGIN_VARIABLE = "kube_network_plugin"


class PodNetworkWork(Work):
    """The step that verifies the pod network of new nodes."""

    def joined(
        self,
        new: Callable[[], Sequence[Node]],
        what: str,
        without: Callable[[], Collection[str]],
    ) -> Sequence[Step]:
        """The step; none if the request does not want it."""
        state = self._state
        if not state.params.cluster.verify_pod_network:
            return ()
        step = Step(
            "verify-pod-network",
            f"verify the pod network of {what}",
            lambda: _verify(state, new(), without()),
            probe=lambda: not new(),
        )
        return (step,)


class PodNetwork(Feature):
    """The test of the pod network."""

    def work(self, state: ClusterState) -> Work:
        return PodNetworkWork(state)


def _verify(state: ClusterState, new: Sequence[Node], without: Collection[str]) -> None:
    """:raises PodNetworkError: with what does not reach what."""
    seen = state.node_objects()
    others = [
        node
        for node in state.nodes
        if node not in new
        and node.name not in without
        and state.in_service(node)
        and not readiness.readiness_problem(seen.get(node.name))
    ]
    # A worker is like most nodes of the cluster.
    others.sort(key=lambda node: node.role is not Role.WORKER)
    measured = state.client(measurement.PodNetwork.through).measure(
        new, [*others, *new][0]
    )
    measurement.check(measured, _encapsulation(state))


def _encapsulation(state: ClusterState) -> str:
    cluster, variables = state.params.cluster, state.params.kubespray_vars
    name = str(variables.get(_PLUGIN_VARIABLE, cluster.network_plugin))
    plugin = network_plugins.PLUGINS.get(name)
    return plugin.encapsulation(cluster.network.encapsulation).name if plugin else ""
