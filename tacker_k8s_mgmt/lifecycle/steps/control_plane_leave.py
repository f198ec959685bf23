# SPDX-License-Identifier: Apache-2.0
"""A control plane leaves a highly available cluster, so that its VM can be rebuilt.

Source: kubespray's docs/operations/nodes.md, "Adding/replacing a control plane node",
"Removal of first kube_control_plane and etcd-master" and "Removing an etcd node", and,
for a dead one, recover-control-plane.md. Whether etcd keeps its majority is checked
before anything is changed (:mod:`.control_plane_guard`).
"""

from collections.abc import Sequence
from dataclasses import replace

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps import inventory, playbooks
from tacker_k8s_mgmt.lifecycle.steps.control_plane_guard import (
    LeavingPlane,
    belongs,
    etcd_without,
)
from tacker_k8s_mgmt.lifecycle.steps.leave import Leave
from tacker_k8s_mgmt.model.nodes import Node, Role, api_url, names_of, of_role
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.request.params import API_PORT

LOG = logging.getLogger(__name__)


class ControlPlaneLeave:
    """The steps with which a control plane leaves, besides those of a worker.

    :param leave: the nodes that leave, at most one control plane among them.
    """

    def __init__(self, state: ClusterState, leave: Leave) -> None:
        self._state = state
        self._leave = leave

    def none_leaves(self) -> bool:
        """Whether only workers leave."""
        return self._leave.plane is None

    def note(self) -> None:
        """Record its names, and whether another one has to become the first.

        The record of an earlier try stays: the inventory has changed since.
        """
        leaving = self._leave.plane
        if leaving is None:
            return
        self._leave.note_unfinished()
        healing, name = self._state.healing, leaving.node.name
        if healing.plane is None or healing.plane.name != name:
            first = of_role(self._state.previous(), Role.CONTROL_PLANE)[0]
            healing = replace(healing, first=first.name == name)
        inventory.write_healing(self._state, replace(healing, plane=leaving.node))

    def is_behind(self) -> bool:
        """Whether another control plane is already the first."""
        return self._leave.plane is None or not self._state.healing.first

    def put_behind(self) -> None:
        """Make another one the first, because kubespray does not remove the first.

        With a dead etcd member ``cluster.yml`` would fail: it waits until all members
        are healthy. Then the run that joins the new VM does this work, too.
        """
        state, leave, leaving = self._state, self._leave, self._leave.plane
        if leaving is None:
            return
        inventory.write_inputs(state, self._behind(leaving.node))
        answers = leaving.is_well and leaving.node in leave.alive
        if answers and not leave.balancer_is_gone:
            self._pin_members(leaving)
        inventory.write_healing(state, replace(state.healing, first=False))

    def _pin_members(self, leaving: LeavingPlane) -> None:
        """Run ``cluster.yml`` for the control planes in their new order."""
        state, silent = self._state, self._leave.silent
        planes = state.planes()
        without = [node.name for node in planes if node.name in silent]
        request = runs.join_control_planes(
            leaving.voters, state.inputs, without=without
        )
        if state.site.playbooks.done(request):
            return
        playbooks.run(state, runs.facts(silent), len(state.nodes))
        playbooks.run(state, request, len(planes))

    def _behind(self, plane: Node) -> tuple[Node, ...]:
        """The inventory's nodes, with this control plane after the others."""
        listed = [node for node in self._state.previous() if node.name != plane.name]
        planes = of_role(listed, Role.CONTROL_PLANE)
        return (*planes, plane, *of_role(listed, Role.WORKER))

    def run_remove(self) -> None:
        """Run kubespray's ``remove-node.yml`` for it, after what the run needs."""
        state, leave, leaving = self._state, self._leave, self._leave.plane
        if leaving is None or leaving.node.name not in leave.listed:
            return
        plane = leaving.node
        is_dead = plane.name in leave.silent
        members = etcd_without(state, [plane]).members()
        own = [member for member in members if belongs(member, plane)]
        others = [member for member in members if member not in own]
        if plane not in (*leave.alive, *leave.dead) and (is_dead or not own):
            return
        if own and (is_dead or _is_mistaken(plane, others)):
            self._remove_members(own)
            own = []
        if not own:
            # kubespray would look for a member, and find none or take another one.
            nodes = self._behind(plane)
            inventory.write_inputs(state, nodes, without_etcd={plane.name})
        else:
            inventory.put_leader_first(state)
        leave.note_unfinished()
        request = runs.remove(
            [plane.name],
            state.params.drain,
            dead=is_dead,
            undrained=leave.undrained,
            without=leave.silent,
        )
        playbooks.run(state, request, 1)

    def _remove_members(self, members: Sequence[EtcdMember]) -> None:
        for member in members:
            LOG.info("etcd's member %s (%s) is removed", member.name, member.member_id)
            etcd = self._state.through(self._state.site.etcd)
            etcd.run("member", "remove", member.member_id)

    def leave_etcd(self) -> None:
        """Remove it from etcd and from the address that new nodes are given."""
        state, leaving = self._state, self._leave.plane
        if leaving is None:
            return
        plane = leaving.node
        members = etcd_without(state, [plane]).members()
        self._remove_members([member for member in members if belongs(member, plane)])
        other = of_role(self._leave.staying, Role.CONTROL_PLANE)[0]
        server = api_url(other.address, API_PORT)
        if state.cluster().move_cluster_info(plane.address, server):
            LOG.info("New nodes find the API at %s from now on", server)

    def see_out(self) -> None:
        """Check that etcd has lost this member and no other.

        :raises ClusterError: naming the control planes without a member.
        """
        leaving = self._leave.plane
        if leaving is None:
            return
        members = self._state.through(self._state.site.etcd).members()
        others = [node for node in leaving.voters if node.name != leaving.node.name]
        lost = [n for n in others if not any(belongs(member, n) for member in members)]
        if lost:
            raise errors.ClusterError(
                detail=f"etcd has no member of {names_of(lost)} any longer, which was "
                "not to leave it.",
                hint="Look at `etcdctl member list` on a control plane, and at the log "
                "of the last run, and add the member again.",
            )


def _is_mistaken(plane: Node, others: Sequence[EtcdMember]) -> bool:
    """Whether kubespray would take another member for this one's.

    Up to v2.25 it looks for the address anywhere in a line of the list.
    """
    return any(plane.address in member.address for member in others)
