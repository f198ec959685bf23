# SPDX-License-Identifier: Apache-2.0
"""Scale-in: the workers whose VMs Tacker is about to delete leave the cluster.

All work is in ``scale_start``; there is none when the VMs are gone.
"""

from collections.abc import Collection, Mapping

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
from tacker_k8s_mgmt.topology.scaling_groups import Group, Member

LOG = logging.getLogger(__name__)

_COMPLETE = (
    "Fix what `openstack stack failures list --long {stack}` shows, and have Heat "
    "complete the group with `openstack stack update --existing --wait {stack}` "
    "(Tacker heals nothing in a stack that has failed)."
)


class ScaleIn:
    """The steps of ``scale_start``.

    :param stacks: ids of the group members' stacks that Tacker deletes
        (``scale_out_id_list``).
    :param size: the size that Tacker gives the group, having marked these members
        unhealthy; None if it sends a signal to the group's policy.
    """

    def __init__(
        self, deps: Dependencies, *, stacks: Collection[str], size: int | None = None
    ) -> None:
        self._state = ClusterState(deps)
        self._stacks = stacks
        self._size = size
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

    def _see_choice(self, group: Group, staying: Mapping[str, str]) -> None:
        """Check that Heat removes the members of a group that Tacker has announced.

        Heat removes failed members first, whichever they are.

        :param staying: names of the nodes that are to stay, by server id.
        :raises UnsupportedOperation: it does not.
        """
        announced = group.having(self._stacks)
        if not announced:
            return
        stack = self._state.machines.stack_id
        if self._size is None:
            if not group.status.endswith("_COMPLETE"):
                raise errors.UnsupportedOperation(
                    detail=f"The group {group.name} is {group.status} in Heat, which "
                    "ignores the scale-in of such a group: it would delete no VM. "
                    "Nothing was changed.",
                    hint=_COMPLETE.format(stack=stack),
                )
            does = group.signalled(announced)
        else:
            group = group.marked(announced)
            does = group.resized(self._size)
        chosen = {one.name for one in announced}
        wrong = [one for one in does.removed if self._nodes(one, staying)]
        wrong += [one for one in does.rebuilt if self._nodes(one, staying)]
        kept = chosen - {one.name for one in does.removed}
        if not wrong and not kept:
            return
        former = {one.name: one for one in self._group(group.name).members}
        told = ", ".join(str(former[name]) for name in sorted(chosen))
        removed = ", ".join(str(former[one.name]) for one in does.removed)
        rebuilt = ", ".join(str(former[one.name]) for one in does.rebuilt)
        nodes = [name for one in wrong for name in self._nodes(one, staying)]
        failed = [str(one) for one in former.values() if one.failed or one.is_unhealthy]
        first = ", ".join(nodes) or "the failed member"
        raise errors.UnsupportedOperation(
            detail=f"Heat would not do what Tacker announces. Tacker announces that "
            f"these members of the group {group.name} are deleted: {told}. Heat would "
            f"delete {removed or 'none'} and rebuild {rebuilt or 'none'}, because of "
            f"{', '.join(failed) or 'the status of the group'}. Nothing was changed.",
            hint=f"Heal the VNFC of {first} first, then scale in. `openstack stack "
            f"failures list --long {stack}` says why it has failed.",
        )

    def _group(self, name: str) -> Group:
        groups = self._state.machines.groups
        return next(group for group in groups if group.name == name)

    @staticmethod
    def _nodes(member: Member, staying: Mapping[str, str]) -> list[str]:
        return [staying[one] for one in sorted(member.ids & staying.keys())]

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
        staying = {
            node.server_id: node.name for node in members.nodes if node not in leaving
        }
        for group in state.machines.groups:
            self._see_choice(group, staying)
        self._leave.sort(leaving, members, seen)
        orphans = [node for node in members.joining if node not in leaving]
        if orphans:
            LOG.warning(
                "These workers have a VM and are not in the cluster; the next scale-out"
                " or heal joins them: %s",
                names_of(orphans),
            )
