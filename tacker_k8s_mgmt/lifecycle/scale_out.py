"""Scale-out: the VMs that Tacker has added become workers.

Tacker's v1 API has no hook for the rollback of a scale-out, and its retry ends without
one. There a failure takes back what would stay behind when the VMs are deleted; a VM
that stays is joined by the next operation. In the v2 API a retry goes on where the
failure was, and a rollback has a hook, :class:`ScaleOutRollback`.
"""

import logging
from collections.abc import Collection
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.operation import Operation
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies, names_of
from tacker_k8s_mgmt.lifecycle.steps.join import Join
from tacker_k8s_mgmt.model.nodes import Node, Role

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class ScaleOut(Join):
    """The steps of ``scale_end``.

    :param stacks: ids of what Tacker has added: servers, or stacks of group members.
    :param takes_back: whether a failure undoes what was done.
    """

    def __init__(
        self,
        deps: Dependencies,
        *,
        stacks: Collection[str],
        takes_back: bool = True,
    ) -> None:
        super().__init__(deps)
        self._stacks = frozenset(stacks)
        self._takes_back = takes_back
        self._touched = False

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        choose = Step(
            "compare Heat, inventory and cluster", self._choose, verify=self._see_all
        )
        return (choose, *self.join_steps())

    def left(self) -> str:
        """Take back what a rollback would leave behind, if it is to be, and say so."""
        if not self._touched:
            return "The cluster is as it was."
        names = names_of(self._joining)
        if not self._takes_back:
            return f"{names} stay in the inventory."
        old = [node for node in self._joining if not self._is_target(node)]
        whole = (
            f"the next scale-out or heal joins {names_of(old)}, left by an earlier "
            "operation"
            if old
            else "the cluster is as it was"
        )
        failed = [text for text in map(_attempt, self._undoings()) if text]
        if failed:
            return (
                f"Taking back the join of {names} did not work wholly: "
                f"{' '.join(failed)} The next operation tries again."
            )
        return (
            f"Taken back: routes, Node objects and inventory entries of {names}; "
            f"{whole}."
        )

    def _unlisted(self, names: str) -> errors.K8sMgmtError:
        return errors.UnsupportedOperation(
            detail="There are new VMs of the control plane, which cannot be scaled: "
            f"{names}.",
            hint="Take the scaling aspect of the control plane out of the VNFD.",
        )

    def workers_before(self) -> int | None:
        """How many workers there were; None before they are looked up."""
        if not self._machines.places:
            return None
        workers = self._machines.workers
        return sum(not self._is_new(one.server_id) for one in workers)

    def _is_target(self, node: Node) -> bool:
        return self._is_new(node.server_id)

    def _is_new(self, server_id: str) -> bool:
        return bool(self._around(server_id) & self._stacks)

    def _around(self, server_id: str) -> frozenset[str]:
        return self._machines.places.get(server_id, frozenset())

    def _see_all(self) -> None:
        """See that every new member of the group is a worker that joins or has joined.

        :raises ClusterError: Heat has not finished one, or it has no VM of ours.
        """
        found: set[str] = set()
        for node in self._nodes:
            found |= self._around(node.server_id)
        missing = sorted(self._stacks - found)
        if missing:
            raise errors.ClusterError(
                detail="No complete worker VM was found in these new members of the "
                f"Heat group (stacks or servers): {', '.join(missing)}.",
                hint="Look at them with `openstack stack resource list`.",
            )

    def _write_all(self) -> None:
        self._touched = bool(self._joining)
        super()._write_all()

    def _undoings(self) -> tuple[Any, ...]:
        return (
            self._site.playbooks.stop,
            self._undo_routes,
            self._undo_nodes,
            self._undo_inventory,
        )

    def _undo_routes(self) -> None:
        balancing = self._balancing()
        if balancing is not None:
            balancing.remove(self._joining)

    def _undo_nodes(self) -> None:
        names = [node.name for node in self._joining]
        self._cluster().evict_dead(names)
        self._cluster().remove_nodes(names)

    def _undo_inventory(self) -> None:
        joining = {node.server_id for node in self._joining}
        self._write_inputs(self._kept(joining))
        self._site.forget(
            hosts=[node.ssh_address for node in self._joining],
            facts=[node.name for node in self._joining],
        )
        self._site.save_host_keys()
        self._forget_members(self._joining)

    def _kept(self, joining: set[str]) -> tuple[Node, ...]:
        return tuple(node for node in self._nodes if node.server_id not in joining)


class ScaleOutRollback(Operation):
    """The steps of ``scale_rollback_start``, before Tacker deletes the new VMs.

    :param known: ids of the servers that the VNF had before the scale-out.
    """

    def __init__(self, deps: Dependencies, *, known: Collection[str]) -> None:
        super().__init__(deps)
        self._known = frozenset(known)
        self._leaving: tuple[Node, ...] = ()
        self._staying: tuple[Node, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        return (
            Step("end a playbook run that is under way", self._stop),
            Step("compare Heat, inventory and cluster", self._choose),
            Step("take the new workers out of the load balancer", self._unroute),
            Step("delete what there is of them in the cluster", self._delete_objects),
            Step("write the inventory without them", self._write_staying),
        )

    def left(self) -> str:
        """What stays behind when a step fails."""
        return "No VM was deleted."

    def _stop(self) -> None:
        self._site.playbooks.stop()

    def _choose(self) -> None:
        found, _ = self._compare()
        self._leaving = tuple(
            node
            for node in found.nodes
            if node.role is Role.WORKER and node.server_id not in self._known
        )
        listed = {node.name for node in self._previous()}
        self._staying = tuple(
            node for node in found.without(self._leaving) if node.name in listed
        )
        LOG.info("These workers are taken back: %s", names_of(self._leaving))

    def _unroute(self) -> None:
        balancing = self._balancing()
        if balancing is not None:
            balancing.remove(self._leaving)

    def _delete_objects(self) -> None:
        names = [node.name for node in self._leaving]
        if names:
            self._cluster().evict_dead(names)
            self._cluster().remove_nodes(names)

    def _write_staying(self) -> None:
        if not self._leaving:
            return
        self._write_inputs(self._staying)
        self._site.forget(
            hosts=[node.ssh_address for node in self._leaving],
            facts=[node.name for node in self._leaving],
        )
        self._site.save_host_keys()
        self._forget_members(self._leaving)


def _attempt(undo: Any) -> str:
    try:
        undo()
    except (errors.K8sMgmtError, OSError, ValueError) as error:
        LOG.warning("Taking back a failed scale-out: %s", error)
        return str(error)
    return ""
