# SPDX-License-Identifier: Apache-2.0
"""The verbs of the guides on a cluster of the lab, as they are printed."""

from collections.abc import Mapping

from tests.integration.cluster import Cluster
from tests.integration.guide import Guide

#: What the guides call the cluster and the node.
_NAME, _NODE = "my-cluster", "worker-10-10-0-5"


def does(
    guide: Guide,
    scene: str,
    cluster: Cluster,
    address: str = "",
    values: Mapping[str, str] | None = None,
) -> str:
    """What a verb prints that begins an operation and waits until it is COMPLETED.

    :param address: of the worker that is meant, in the cluster.
    :param values: others by what the guides print in their place, such as ``+1``.
    """
    node = f"worker-{address.replace('.', '-')}"
    known = {_NAME: cluster.name, _NODE: node, **(values or {})}
    with cluster.by_command():
        return guide.does(scene, **known)


def handles(guide: Guide, scene: str, cluster: Cluster, expect: str) -> str:
    """What a verb prints for the last operation, which is to end in this state."""
    with cluster.handled(expect):
        return guide.does(scene, **{_NAME: cluster.name})
