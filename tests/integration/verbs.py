# SPDX-License-Identifier: Apache-2.0
"""The verbs of the guides on a cluster of the lab, as they are printed."""

from tests.integration.cluster import Cluster
from tests.integration.guide import Guide

#: What the guides call the cluster and the node.
_NAME, _NODE = "my-cluster", "worker-10-10-0-5"


def does(
    guide: Guide, scene: str, cluster: Cluster, address: str = "", workers: str = ""
) -> str:
    """What a verb prints that begins an operation and waits until it is COMPLETED.

    :param address: of the worker that is meant, in the cluster.
    :param workers: such as ``+2``, in place of the ``+1`` that is printed.
    """
    node = f"worker-{address.replace('.', '-')}"
    number = {f"{workers[0]}1": workers} if workers else {}
    with cluster.by_command():
        return guide.does(scene, **{_NAME: cluster.name, _NODE: node}, **number)


def handles(guide: Guide, scene: str, cluster: Cluster, expect: str) -> str:
    """What a verb prints for the last operation, which is to end in this state."""
    with cluster.handled(expect):
        return guide.does(scene, **{_NAME: cluster.name})
