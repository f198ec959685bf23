"""Scale-out: the VMs that Tacker has added become workers.

Tacker has no hook for the rollback of a scale-out, and its retry ends without one. So a
failure takes back what would stay behind when the VMs are deleted; a VM that stays is
joined by the next operation.
"""

import logging
from collections.abc import Callable, Collection
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cluster.nodes import Node
from tacker_k8s_mgmt.lifecycle.join import Join
from tacker_k8s_mgmt.lifecycle.operation import names_of
from tacker_k8s_mgmt.lifecycle.step import Step

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_WAY_ON = (
    "`rollback` deletes the new VMs; after `retry` or `fail` they stay, and the next "
    "scale-out or heal joins them."
)
_NO_ROLLBACK = (
    "Do not send `rollback`: with it Tacker would have Heat set the group to {after} "
    "members, whatever it had before ({before}), and VMs of the cluster would be "
    "deleted or made. Send `fail`: the new VMs stay, and the next scale-out or heal "
    "joins them."
)


class ScaleOut(Join):
    """The steps of ``scale_end``.

    :param stacks: ids of the group members' stacks that Tacker has added
        (``scale_out_id_list``).
    :param after_rollback: how many members the group would have after a rollback; None
        for as many as before.
    """

    def __init__(
        self,
        *args: Any,
        stacks: Collection[str],
        after_rollback: Callable[[], int | None] = lambda: None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._stacks = frozenset(stacks)
        self._after_rollback = after_rollback
        self._touched = False

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        choose = Step(
            "compare Heat, inventory and cluster", self._choose, verify=self._see_all
        )
        return (choose, *self.join_steps())

    def left(self) -> str:
        """Take back what a rollback would leave behind, and say so."""
        if not self._touched:
            return f"The cluster is as it was. {self._way_on()}"
        failed = [text for text in map(_attempt, self._undoings()) if text]
        names = names_of(self._joining)
        if failed:
            return (
                f"Taking back the join of {names} did not work wholly: "
                f"{' '.join(failed)} The next operation tries again. {self._way_on()}"
            )
        return (
            f"Taken back: routes, Node objects and inventory entries of {names}; the "
            f"cluster is as it was. {self._way_on()}"
        )

    def _way_on(self) -> str:
        """What to do next: a rollback may take the wrong VMs."""
        new = [one for one in self._machines.workers if self._is_new(one.server_id)]
        before = len(self._machines.workers) - len(new)
        after = self._after_rollback()
        if after is None or after == before:
            return _WAY_ON
        return _NO_ROLLBACK.format(after=after, before=before)

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
                detail="No complete worker VM was found in these new members (stacks) "
                f"of the Heat group: {', '.join(missing)}.",
                hint="Look at them with `openstack stack resource list`, and send "
                "`rollback` for this operation.",
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


def _attempt(undo: Any) -> str:
    try:
        undo()
    except (errors.K8sMgmtError, OSError, ValueError) as error:
        LOG.warning("Taking back a failed scale-out: %s", error)
        return str(error)
    return ""
