"""A control plane whose VM was built anew joins its cluster again.

Source: kubespray's docs/operations/nodes.md, "Adding/replacing a control plane node"
and "Adding an etcd node": it stands behind the others in the inventory, and
``cluster.yml`` is run for the control planes alone. It has its names of before.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from oslo_log import log

from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps import inventory, playbooks, readiness
from tacker_k8s_mgmt.lifecycle.steps.control_plane_guard import belongs
from tacker_k8s_mgmt.lifecycle.steps.join import Join
from tacker_k8s_mgmt.lifecycle.steps.records import JOINED_FILE
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.load_balancer import Server
from tacker_k8s_mgmt.model.nodes import Node, Role, of_role
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.model.quorum import EtcdMember

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class ControlPlaneJoin:
    """The steps by which a control plane joins, besides those of a worker.

    :param join: the nodes that join, at most one control plane among them.
    """

    def __init__(self, state: ClusterState, join: Join) -> None:
        self._state = state
        self._join = join
        #: The control planes that are members of etcd when it has joined.
        self._voters: tuple[Node, ...] = ()

    def choose(self, is_target: Callable[[Node], bool]) -> None:
        """Choose the control plane that joins, if there is one.

        :param is_target: whether the operation is about the node; any other one that
            cannot be reached is left out.
        """
        state = self._state
        noted = state.healing.plane
        names = {node.name for node in state.nodes}
        if (
            noted
            and noted.name in names
            # One that etcd has lost is half out.
            and any(belongs(one, noted) for one in self._members())
        ):
            # An earlier try has joined it, and came no further.
            state.healing = replace(state.healing, plane=None, first=False)
        coming = [
            node
            for node in state.returning
            if is_target(node) or not state.site.unreachable([node])
        ]
        if coming:
            plane = self._join.plane = coming[0]
            others = [node for node in state.nodes if node.role is not Role.WORKER]
            state.nodes = (*others, plane, *of_role(state.nodes, Role.WORKER))
            members = {one.address for one in self._members()}
            voters = (node for node in others if node.address in members)
            self._voters = (*voters, plane)
            LOG.info("The control plane %s joins again", plane.name)

    def none_joins(self) -> bool:
        """Whether it is workers only."""
        return self._join.plane is None

    def has_begun(self) -> bool:
        """As :meth:`.Join.has_begun`, of the control plane too."""
        if self._join.plane is None:
            return self._join.has_begun()
        if self._state.site.playbooks.live(self._request()):
            return True
        return self.has_run() and self._join.has_begun()

    def _request(self) -> PlaybookRequest:
        """One that joins this control plane, and leaves out those that are silent."""
        silent = self._join.unreachable
        names = [node.name for node in self._state.planes() if node.name in silent]
        return PlaybookRequest(
            kubespray_releases.CLUSTER,
            extra_vars=kubespray_releases.member_variables(self._voters),
            args=kubespray_releases.limit_to_control_planes(without=names),
            inputs=self._state.inputs,
        )

    def _members(self) -> Sequence[EtcdMember]:
        """etcd's members, as a control plane that stayed tells."""
        return self._state.through(self._state.site.etcd).members()

    def has_run(self) -> bool:
        """Whether ``cluster.yml`` has run for it, and it is there."""
        plane = self._join.plane
        if plane is None:
            return True
        # The run alone proves nothing: the node may have been removed since.
        done = self._state.site.playbooks.done(self._request())
        return done and plane.name in self._state.seen()

    def run_cluster(self) -> None:
        """Run kubespray's ``cluster.yml`` for the control planes."""
        playbooks.run(self._state, self._request(), len(self._state.planes()))

    def see_well(self) -> None:
        """See that it is the new VM, and well in every respect.

        :raises ClusterError: what is wrong after ``ready_timeout``.
        """
        state, plane = self._state, self._join.plane
        if plane is None:
            return
        seen = readiness.wait_ready(state, [plane])
        readiness.verify_identity(state, seen, [plane])
        readiness.wait_until_well(
            state,
            lambda: self._problem(plane),
            f"{plane.name} has not joined wholly: {{left}}.",
            f"Look at `journalctl -u etcd` and at the API server's log on "
            f"{plane.ssh_address}, and mend it.",
        )

    def _problem(self, plane: Node) -> str:
        own = [one for one in self._members() if one.address == plane.address]
        if not own:
            return "etcd has no member of it"
        member = own[0]
        if not member.healthy or member.learner:
            return f"its etcd member: {member.problem or 'it has no vote yet'}"
        if member.name != plane.etcd_member_name:
            return (
                f"its etcd member calls itself {member.name}, and not "
                f"{plane.etcd_member_name}"
            )
        cluster = self._state.site.cluster(plane)
        if problem := cluster.api_problem():
            return f"its API server: {problem}"
        machine = self._state.machines.load_balancer
        outside = [machine.ssh_address, machine.address] if machine else []
        missing = cluster.uncertified([plane.address, plane.ssh_address, *outside])
        if missing:
            return f"the certificate of its API server is not for {', '.join(missing)}"
        return ""

    def balance(self) -> None:
        """Put it behind the load balancer, and record it as a full member.

        :raises ClusterError: the load balancer does not find it well.
        """
        state, plane = self._state, self._join.plane
        balancing = state.balancing()
        if plane is None:
            return
        if balancing is not None:
            balancing.front(state.nodes)
            readiness.wait_until_well(
                state,
                lambda: _not_up(plane, balancing.status().control_planes),
                "the load balancer does not find the control plane well: {left}.",
                f"Look whether it reaches {plane.address}:6443.",
            )
        # It is a member now, whatever becomes of the workers.
        state.members |= {plane.server_id}
        kept = {node.server_id for node in state.nodes} & state.members
        state.write_json(JOINED_FILE, sorted(kept))
        healing = replace(state.healing, plane=None, first=False)
        inventory.write_healing(state, healing)


def _not_up(plane: Node, servers: Sequence[Server]) -> str:
    states = [one.state for one in servers if one.name == plane.name]
    if not states:
        return f"it has no route to {plane.name}"
    return "" if states[0] == "UP" else f"{plane.name} is {states[0]}"
