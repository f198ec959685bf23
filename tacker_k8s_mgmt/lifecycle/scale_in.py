# SPDX-License-Identifier: Apache-2.0
"""Scale-in: the workers whose VMs Tacker is about to delete leave the cluster.

All work is in ``scale_start``; there is none when the VMs are gone.
"""

from collections.abc import Collection

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import ClusterState, Dependencies
from tacker_k8s_mgmt.lifecycle.steps import load_balancer
from tacker_k8s_mgmt.lifecycle.steps.compare import compare
from tacker_k8s_mgmt.lifecycle.steps.leave import Leave
from tacker_k8s_mgmt.model.nodes import Role, names_of, of_role
from tacker_k8s_mgmt.topology import membership

LOG = logging.getLogger(__name__)


class ScaleIn:
    """The steps of ``scale_start``.

    :param stacks: ids of the group members' stacks that Tacker deletes
        (``scale_out_id_list``).
    """

    def __init__(self, deps: Dependencies, *, stacks: Collection[str]) -> None:
        self._state = ClusterState(deps)
        self._stacks = stacks
        # A changed login can only be that of the VMs that stay.
        self._leave = Leave(self._state, renews_logins=True)

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        leave = self._leave
        return (
            Step("compare Heat, inventory and cluster", self._choose),
            Step("take the leaving nodes out of the load balancer", leave.unroute),
            Step("cordon the leaving nodes", leave.cordon),
            Step("drain the leaving nodes", leave.drain),
            Step(f"run {runs.REMOVE}", leave.run_remove),
            Step("delete what is left of them in the cluster", leave.delete_objects),
            Step("write the inventory without them", leave.write_staying),
        )

    def left(self) -> str:
        """What stays behind when a step fails."""
        return self._leave.left()

    def _is_target(self, server_id: str) -> bool:
        around = self._state.machines.places.get(server_id, frozenset())
        return not around.isdisjoint(self._stacks)

    def _choose(self) -> None:
        state = self._state
        members, seen = compare(
            state, lambda: load_balancer.expect(state), self._is_target
        )
        leaving = membership.leaving(members.nodes, state.machines, self._stacks)
        if planes := of_role(leaving, Role.CONTROL_PLANE):
            raise errors.UnsupportedOperation(
                detail=f"{names_of(planes)} is of the control plane, which cannot be "
                "scaled; nothing was changed.",
                hint="Take the scaling aspect of the control plane out of the VNFD.",
            )
        self._leave.sort(leaving, members, seen)
        orphans = [node for node in members.joining if node not in leaving]
        if orphans:
            LOG.warning(
                "These workers have a VM and are not in the cluster; the next scale-out"
                " or heal joins them: %s",
                names_of(orphans),
            )
