# SPDX-License-Identifier: Apache-2.0
"""What a request that modifies a VNF instance changes of its cluster."""

from collections.abc import Callable, Mapping
from typing import Any

from tacker_k8s_mgmt.lifecycle.modify import Concern
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps.applications import ApplicationChanges
from tacker_k8s_mgmt.lifecycle.steps.node_changes import NodeChanges
from tacker_k8s_mgmt.lifecycle.steps.tenants import TenantChanges
from tacker_k8s_mgmt.model import node_settings
from tacker_k8s_mgmt.request import metadata_lists

Make = Callable[[ClusterState], Concern]

#: What an entry of the metadata is for, in the order of work.
_CONCERNS: Mapping[Make, Callable[[str], bool]] = {
    NodeChanges: node_settings.is_entry,
    TenantChanges: metadata_lists.TENANTS.__eq__,
    ApplicationChanges: metadata_lists.APPLICATIONS.__eq__,
}


def concerns(patch: Mapping[str, Any]) -> tuple[Make, ...]:
    """The concerns of a request; none if nothing in it is for the cluster.

    :param patch: its ``metadata``.
    """
    return tuple(make for make, mine in _CONCERNS.items() if any(map(mine, patch)))
