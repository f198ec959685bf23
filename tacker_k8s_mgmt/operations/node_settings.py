# SPDX-License-Identifier: Apache-2.0
"""Labels, annotations, taints and maintenance of the nodes are set as wanted."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import node_marks, node_settings
from tacker_k8s_mgmt.model.node_marks import NodeMetadata
from tacker_k8s_mgmt.model.node_settings import NodeSettings
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.operations.state import ClusterState

# A kubelet or a controller may change a Node object between look and change.
_TRIES = 10


def wanted(state: ClusterState) -> Mapping[str, NodeSettings]:
    """The settings of the nodes, by their names; maintenance where it has begun."""
    settings = {n: state.deps.settings.of(n, state.params) for n in state.nodes}
    return {
        node.name: one if state.in_maintenance(node) else without_maintenance(one)
        for node, one in settings.items()
    }


def is_set(state: ClusterState) -> bool:
    """Whether every Node object is as wanted."""
    return not _changes(state)


def apply(state: ClusterState) -> None:
    """Change the Node objects that are not as wanted, and see that they are.

    :raises ClusterError: others change them, too, each time.
    """
    for _ in range(_TRIES):
        changes = _changes(state)
        if not changes:
            return
        state.cluster().mark(changes)
    raise errors.ClusterError(
        detail="The settings of these nodes are changed again and again by something "
        f"else: {', '.join(changes)}.",
        hint="Find out what else sets their labels or taints.",
    )


def _changes(state: ClusterState) -> dict[str, dict[str, object]]:
    settings = wanted(state)
    changes = {
        marks.name: node_marks.change(marks, settings[marks.name])
        for marks in state.cluster().marks()
        if marks.name in settings
    }
    return {name: change for name, change in changes.items() if change}


def without_maintenance(settings: NodeSettings) -> NodeSettings:
    """The settings of a node that is not in maintenance yet."""
    taints = dict(settings.taints)
    taints.pop(node_settings.MAINTENANCE_TAINT, None)
    return replace(settings, taints=taints, maintenance=False)


def named(
    nodes: Collection[Node], marks: Collection[NodeMetadata]
) -> dict[Node, NodeMetadata]:
    """What the Node object of each of these nodes has, where there is one."""
    objects = {one.name: one for one in marks}
    return {node: objects[node.name] for node in nodes if node.name in objects}
