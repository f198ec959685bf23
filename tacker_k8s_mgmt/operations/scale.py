# SPDX-License-Identifier: Apache-2.0
"""Scaling: VMs that Tacker adds become workers; workers leave before VMs are deleted.

Scale-out: Tacker's v1 API has no hook for its rollback, and calls none at its retry.
There a failure undoes what would stay behind when the VMs are deleted; the next
operation joins a VM that stays. In the v2 API a retry continues after the failure, and
the rollback has a hook, :class:`ScaleOutRollback`.

Scale-in: all work is in ``scale_start``; there is none when the VMs are gone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, names_of, of_role
from tacker_k8s_mgmt.model.plan import LEAVES
from tacker_k8s_mgmt.operations import balancing, playbook_inputs, preconditions
from tacker_k8s_mgmt.operations.compare import compare, rebuilt_too, refuse_unfinished
from tacker_k8s_mgmt.operations.join import Join
from tacker_k8s_mgmt.operations.leave import Leave, delete_nodes
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Step
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.membership import Membership
from tacker_k8s_mgmt.topology.scaling_groups import Group, Member

LOG = logging.getLogger(__name__)


class ScaleOut(Operation):
    """The steps of ``scale_end``.

    :param stacks: ids of the servers, or stacks of group members, that Tacker added.
    :param takes_back: a failure undoes what was done.
    """

    def __init__(
        self,
        deps: OperationContext,
        *,
        stacks: Collection[str],
        takes_back: bool = True,
    ) -> None:
        self._state = ClusterState(deps)
        self._join = Join(self._state)
        self._stacks = frozenset(stacks)
        self._takes_back = takes_back
        self._members: Membership

    def steps(self) -> tuple[Step, ...]:
        join = self._join
        return (
            Step(
                "compare",
                "compare Heat, inventory and cluster",
                self._choose,
                verify=self._see_all,
                reads=True,
                effects=lambda: rebuilt_too(self._state, self._members, ()),
            ),
            *join.prepare(join.has_begun),
            *join.steps(),
        )

    def left(self) -> str:
        """Undo the join, if it is to be undone; what stays behind then."""
        joining = self._join.nodes
        if not self._join.is_written:
            return "The cluster is as it was."
        names = names_of(joining)
        if not self._takes_back:
            return f"{names} stay in the inventory."
        if failed := self._undo_join():
            return (
                f"Taking back the join of {names} did not work completely: "
                f"{' '.join(failed)} {names} stay in the inventory: the next scale-out "
                "or heal joins them or, when their VMs are gone, removes what is left."
            )
        rest = "the cluster is as it was"
        if old := [node for node in joining if not self._is_target(node)]:
            rest = (
                f"the next scale-out or heal joins {names_of(old)}, left by an earlier "
                "operation"
            )
        return (
            f"Taken back: routes, Node objects and inventory entries of {names}; "
            f"{rest}."
        )

    def members_before(self, name: str) -> int | None:
        """How many members a group had; None before Heat has listed it.

        :param name: of the group.
        """
        for group in self._state.machines.groups:
            if group.name == name:
                return len(group.members) - len(group.having(self._stacks))
        return None

    def _choose(self) -> None:
        self._members = members = compare(self._state)[0]
        refuse_unfinished(self._state)
        if members.added:
            raise errors.UnsupportedOperation(
                detail="There are new VMs of the control plane, which cannot be "
                f"scaled: {names_of(members.added)}.",
                hint="Take the scaling aspect of the control plane out of the VNFD.",
            )
        self._join.choose(members, self._is_target)

    def _is_target(self, machine: Machine) -> bool:
        return bool(self._around(machine) & self._stacks)

    def _around(self, machine: Machine) -> frozenset[str]:
        return self._state.machines.places.get(machine.server_id, frozenset())

    def _see_all(self) -> None:
        """Check that each new group member is a worker that joins or has joined.

        Members of a group that is none of the cluster's are left alone.
        """
        joined = (self._around(node) for node in self._state.nodes)
        missing = self._stacks.difference(*joined)
        machines = self._state.machines
        late = {
            stack: vm.state
            for vm in machines.unfinished
            for stack in vm.stacks | machines.places.get(vm.server_id, frozenset())
        }
        there = frozenset().union(*machines.places.values())
        bad = {one: late.get(one, "it is gone") for one in missing - (there - {*late})}
        if bad:
            listed = ", ".join(f"{one} ({bad[one]})" for one in sorted(bad))
            raise errors.ClusterError(
                detail="No complete worker VM was found in these new members of the "
                f"Heat group (stacks or servers): {listed}.",
                hint="Look at them with `openstack stack resource list`.",
            )
        if missing:
            LOG.info(
                "New members that are none of the cluster's: %s",
                ", ".join(sorted(missing)),
            )

    def _undo_join(self) -> Sequence[str]:
        """Undo the join; returns what went wrong.

        The inventory is written last: what a failure leaves behind is found by it, when
        the VMs are gone. A full member is not taken apart.
        """
        state, joining = self._state, self._join.nodes
        kept = tuple(node for node in state.nodes if node not in joining)
        for undoings in (
            (state.site.playbooks.stop,),
            (lambda: playbook_inputs.forget_members(state, joining),),
            (
                lambda: balancing.remove(state, joining),
                lambda: delete_nodes(state, joining),
            ),
            (lambda: playbook_inputs.write_without(state, kept, joining),),
        ):
            if failed := [text for text in map(_attempt, undoings) if text]:
                return failed
        return ()


class ScaleOutRollback(Operation):
    """The steps of ``scale_rollback_start``, before Tacker deletes the new VMs.

    :param known: ids of the servers that the VNF had before the scale-out.
    """

    def __init__(self, deps: OperationContext, *, known: Collection[str]) -> None:
        self._state = ClusterState(deps)
        self._known = frozenset(known)
        self._leaving: tuple[Node, ...] = ()
        self._staying: tuple[Node, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        state = self._state
        return (
            Step(
                "stop-playbook",
                "stop a running playbook",
                lambda: state.site.playbooks.stop(),
            ),
            Step("compare", "compare Heat, inventory and cluster", self._choose),
            Step(
                "remove-routes",
                "remove routes to the new workers",
                lambda: balancing.remove(state, self._leaving),
            ),
            Step(
                "delete-nodes",
                "delete their Node objects, if any",
                lambda: delete_nodes(state, self._leaving),
            ),
            Step(
                "shrink-inventory",
                "remove them from the inventory",
                self._write_staying,
            ),
        )

    def left(self) -> str:
        return "No VM was deleted."

    def _choose(self) -> None:
        members, _ = compare(self._state)
        self._leaving = tuple(
            node
            for node in members.nodes
            if not node.is_control_plane and node.server_id not in self._known
        )
        listed = {node.name for node in self._state.inventory_nodes()}
        staying = (n for n in members.without(self._leaving) if n.name in listed)
        # Their Node objects are cleaned up by the next scaling or heal.
        self._staying = (*staying, *members.vm_gone)
        LOG.info("These workers are taken back: %s", names_of(self._leaving))

    def _write_staying(self) -> None:
        if self._leaving:
            playbook_inputs.write_without(self._state, self._staying, self._leaving)


def _attempt(undo: Callable[[], object]) -> str:
    try:
        undo()
    except (errors.K8sMgmtError, OSError, ValueError) as error:
        LOG.warning("Taking back a failed scale-out: %s", error)
        return str(error)
    return ""


_COMPLETE = (
    "Fix what `openstack stack failures list --long {stack}` shows, and have Heat "
    "complete the group with `openstack stack update --existing --wait {stack}` "
    "(Tacker heals nothing in a stack that has failed)."
)


class ScaleIn(Operation):
    """The steps of ``scale_start``.

    :param stacks: ids of the group members' stacks that Tacker deletes
        (``scale_out_id_list``).
    :param size: the size that Tacker gives the group, having marked these members
        unhealthy; None if it sends a signal to the group's policy.
    :param steps: how many steps Tacker will count less, each of a member or more.
    """

    def __init__(
        self,
        deps: OperationContext,
        *,
        stacks: Collection[str],
        size: int | None = None,
        steps: int = 0,
    ) -> None:
        self._state = ClusterState(deps)
        self._stacks = stacks
        self._size, self._steps = size, steps
        # A changed login can only be that of the VMs that stay.
        self._leave = Leave(self._state, renews_logins=True)

    def steps(self) -> tuple[Step, ...]:
        leave = self._leave
        return (
            Step(
                "compare",
                "compare Heat, inventory and cluster",
                self._choose,
                reads=True,
            ),
            *leave.emptying(),
            Step(
                "remove-nodes",
                f"run {runs.REMOVE}",
                leave.run_remove,
                effects=lambda: leave.departures(LEAVES),
            ),
            Step("delete-nodes", "delete their Node objects", leave.delete_objects),
            Step(
                "shrink-inventory",
                "remove them from the inventory",
                leave.write_staying,
            ),
        )

    def left(self) -> str:
        return self._leave.left()

    def _is_target(self, server_id: str) -> bool:
        around = self._state.machines.places.get(server_id, frozenset())
        return not around.isdisjoint(self._stacks)

    def _see_announced(self) -> None:
        """Check that Tacker deletes as many members as it will count less.

        :raises UnsupportedOperation: it does not.
        """
        if len(self._stacks) >= self._steps:
            return
        groups = self._state.machines.groups
        failed = [str(one) for group in groups for one in group.members if one.failed]
        told = f"Failed: {', '.join(failed)}." if failed else "No member has failed."
        raise errors.UnsupportedOperation(
            detail=f"Tacker counts {self._steps} steps of this scale-in, and announces "
            f"fewer members: {len(self._stacks)}. It keeps as many of those that have "
            f"not failed in Heat as the group's min_size. {told} Nothing was changed.",
            hint="Heal the VNFCs whose members have failed, then scale in. If there is "
            "none, a heal of any VNFC has Tacker count the VMs that there are.",
        )

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
        refuse_unfinished(state)
        members, seen = compare(state, lambda: balancing.expect(state), self._is_target)
        self._see_announced()
        leaving = membership.leaving(members.nodes, state.machines, self._stacks)
        if planes := of_role(leaving, Role.CONTROL_PLANE):
            raise errors.UnsupportedOperation(
                detail=f"{names_of(planes)} is of the control plane, which cannot be "
                "scaled; nothing was changed.",
                hint="Take the scaling aspect of the control plane out of the VNFD.",
            )
        rest = [node for node in members.nodes if node not in leaving]
        preconditions.see_enough(rest, state.params)
        staying = {node.server_id: node.name for node in rest}
        for group in state.machines.groups:
            self._see_choice(group, staying)
        self._leave.classify(leaving, members, seen)
        orphans = [node for node in members.joining if node not in leaving]
        if orphans:
            LOG.warning(
                "These workers have a VM and are not in the cluster; the next scale-out"
                " or heal joins them: %s",
                names_of(orphans),
            )
