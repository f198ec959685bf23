# SPDX-License-Identifier: Apache-2.0
"""The cluster as a VIM of Tacker, and Helm on its control planes.

Tacker's v1 API runs Helm there over SSH.
"""

from collections.abc import Mapping

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Node, api_url, names_of
from tacker_k8s_mgmt.model.vim import CHARTS, ClusterAccess, HelmLogin, VimSpec
from tacker_k8s_mgmt.operations import preconditions
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.kubernetes.helm import HelmHost
from tacker_k8s_mgmt.request.reader import API_PORT

LOG = logging.getLogger(__name__)


def prepare(
    state: ClusterState, access: ClusterAccess | None = None
) -> HelmLogin | None:
    """Have Tacker's login on every control plane, and its charts on new ones.

    A control plane that does not answer is left to its own heal.

    :param access: what the cluster is registered with; None: it is read if need be.
    :returns: None: Helm is not asked for, or Tacker needs or can have no login.
    :raises HelmLoginError: a control plane refuses it.
    :raises RemoteError: no control plane answers, or another error of one.
    """
    if not state.params.cluster.helm:
        return None
    password = state.site.vims.helm_password()
    if password is None:
        return None
    bastion = state.params.bastion
    if bastion and "vms" in bastion.used_for:
        LOG.warning(
            "The VIM gets no helm_info: Tacker cannot log in to the control planes "
            "through a bastion. Charts can be installed through its v2 API."
        )
        return None
    access = access or state.cluster().admin_access()
    hosts: dict[Node, HelmHost] = {}
    new: dict[Node, HelmHost] = {}
    for plane in state.control_planes():
        try:
            host = state.site.helm(plane)
        except errors.ConnectError as error:
            LOG.warning("%s is not prepared for Helm: %s", plane.name, error)
            continue
        (new if host.prepare(password, access) else hosts)[plane] = host
        host.verify(password)
    if not hosts and not new:
        raise errors.ClusterError(detail="No control plane answers.")
    _share_charts(hosts, new)
    return HelmLogin(_addresses(state), password)


def steps(state: ClusterState) -> tuple[Step, ...]:
    """Have the VIM name the control planes' present addresses; VNFs may use it."""
    move = Step(
        "update-helm-hosts",
        "write the control planes' addresses for Helm into the VIM",
        lambda: state.site.vims.update_helm_hosts(_addresses(state)),
    )
    return (move,) if state.params.cluster.helm else ()


def _addresses(state: ClusterState) -> tuple[str, ...]:
    return tuple(node.ssh_address for node in state.control_planes())


def _share_charts(hosts: Mapping[Node, HelmHost], new: Mapping[Node, HelmHost]) -> None:
    """Tacker copies a chart to the control planes of its installation only."""
    if not hosts or not new:
        return
    try:
        charts = next(iter(hosts.values())).charts()
        for host in new.values():
            host.restore(charts)
    except errors.RemoteError as error:
        LOG.warning(
            "CNFs that were installed from a chart can be scaled only when %s is "
            "copied to %s: %s",
            CHARTS,
            names_of(tuple(new)),
            error,
        )


def endpoints(state: ClusterState) -> frozenset[str]:
    """The URLs at which a VIM of the cluster may have its API."""
    if state.params.load_balancer:
        return frozenset((state.endpoint(),))
    # The first control plane comes last after its heal, and the VIM stays.
    return frozenset(api_url(n.ssh_address, API_PORT) for n in state.control_planes())


def register(state: ClusterState, access: ClusterAccess) -> None:
    """Register the cluster as a VIM at its current address.

    Where Helm is asked for, Tacker can log in to the control planes before.
    """
    spec = VimSpec(
        name=preconditions.vim_name(state.params, state.deps.vnf_id),
        auth_url=state.endpoint(),
        token=access.token,
        ca_certificate=access.ca_certificate,
        helm=prepare(state, access),
        uid=access.uid,
    )
    state.site.vims.register(spec)
