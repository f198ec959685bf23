"""Scale-in: exactly the workers whose VMs Tacker is about to delete leave the cluster.

Tacker calls ``scale_start`` for it, and nothing when the VMs are gone.
"""

import logging
from collections.abc import Collection, Sequence

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies, names_of
from tacker_k8s_mgmt.lifecycle.steps.leave import Leave
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.topology import membership

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class ScaleIn(Leave):
    """The steps of ``scale_start``.

    :param stacks: ids of the group members' stacks that Tacker deletes
        (``scale_out_id_list``).
    """

    def __init__(self, deps: Dependencies, *, stacks: Collection[str]) -> None:
        super().__init__(deps)
        self._stacks = stacks

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        choose = Step("compare Heat, inventory and cluster", self._choose)
        return (choose, *self.leave_steps())

    def _renewed(self, nodes: Sequence[Node]) -> Collection[str]:
        """All, if the request changes the workers' login: no VM is made here."""
        changed = "worker_node" in self._params.changed_logins
        return [node.name for node in nodes] if changed else ()

    def _choose(self) -> None:
        found, seen = self._compare()
        leaving = membership.leaving(found.nodes, self._machines, self._stacks)
        masters = [node for node in leaving if node.role is Role.CONTROL_PLANE]
        if masters:
            raise errors.UnsupportedOperation(
                detail=f"{names_of(masters)} is of the control plane, which cannot be "
                "scaled; nothing was changed.",
                hint="Take the scaling aspect of the control plane out of the VNFD.",
            )
        self._sort(leaving, found, seen)
        names = {node.name for node in leaving}
        orphans = [node for node in found.joining if node.name not in names]
        if orphans:
            LOG.warning(
                "These workers have a VM and are not in the cluster; the next scale-out"
                " or heal joins them: %s",
                names_of(orphans),
            )
