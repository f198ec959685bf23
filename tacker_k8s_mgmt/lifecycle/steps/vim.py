# SPDX-License-Identifier: Apache-2.0
"""The cluster as a VIM of Tacker."""

from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps import helm, preflight
from tacker_k8s_mgmt.model.cluster import ClusterAccess


def register(state: ClusterState, access: ClusterAccess) -> None:
    """Register the cluster as a VIM at its current address.

    Where Helm is asked for, Tacker can log in to the control planes before.
    """
    spec = ports.VimSpec(
        name=preflight.vim_name(state.params, state.deps.vnf_id),
        auth_url=state.endpoint(),
        token=access.token,
        ca_certificate=access.ca_certificate,
        helm=helm.prepare(state, access),
    )
    state.site.vims.register(spec)
