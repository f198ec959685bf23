# SPDX-License-Identifier: Apache-2.0
"""The cluster as a VIM of Tacker."""

from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps import helm, preflight
from tacker_k8s_mgmt.model.cluster import ClusterAccess
from tacker_k8s_mgmt.model.nodes import api_url
from tacker_k8s_mgmt.request.params import API_PORT


def endpoints(state: ClusterState) -> frozenset[str]:
    """The URLs at which a VIM of the cluster may have its API."""
    if state.params.load_balancer:
        return frozenset((state.endpoint(),))
    # The first control plane comes last after its heal, and the VIM stays.
    return frozenset(api_url(n.ssh_address, API_PORT) for n in state.planes())


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
        uid=access.uid,
    )
    state.site.vims.register(spec)
