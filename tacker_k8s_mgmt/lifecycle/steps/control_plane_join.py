# SPDX-License-Identifier: Apache-2.0
"""A control plane whose VM was rebuilt joins its cluster again.

Source: kubespray's docs/operations/nodes.md, "Adding/replacing a control plane node"
and "Adding an etcd node": it comes after the others in the inventory, and
``cluster.yml`` runs for the control planes only. It keeps its names.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from oslo_log import log as logging

from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps import (
    inventory,
    load_balancer,
    playbooks,
    pod_network,
    readiness,
)
from tacker_k8s_mgmt.lifecycle.steps.control_plane_guard import belongs
from tacker_k8s_mgmt.lifecycle.steps.join import Join
from tacker_k8s_mgmt.lifecycle.steps.records import JOINED_FILE
from tacker_k8s_mgmt.model.load_balancer import Server
from tacker_k8s_mgmt.model.nodes import Node, Role, of_role
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.model.quorum import EtcdMember

LOG = logging.getLogger(__name__)


class ControlPlaneJoin:
    """The steps with which a control plane joins, besides those of a worker.

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
        if (
            noted
            and noted.name in {node.name for node in state.nodes}
            # Without an etcd member it is half out.
            and any(belongs(member, noted) for member in self._members())
        ):
            # An earlier try has joined it, and did not finish.
            state.healing = replace(state.healing, plane=None, first=False)
        coming = [
            node
            for node in state.returning
            if is_target(node) or not state.site.unusable([node])
        ]
        if coming:
            plane = self._join.plane = coming[0]
            others = [node for node in state.nodes if node.role is not Role.WORKER]
            state.nodes = (*others, plane, *of_role(state.nodes, Role.WORKER))
            members = {member.address for member in self._members()}
            voters = (node for node in others if node.address in members)
            self._voters = (*voters, plane)
            LOG.info("The control plane %s joins again", plane.name)

    def none_joins(self) -> bool:
        """Whether only workers join."""
        return self._join.plane is None

    def has_begun(self) -> bool:
        """As :meth:`.Join.has_begun`, for the control plane, too."""
        if self._join.plane is None:
            return self._join.has_begun()
        if self._state.site.playbooks.live(self._request()):
            return True
        return self.has_run() and self._join.has_begun()

    def _request(self) -> PlaybookRequest:
        """The run that joins it, without the control planes that do not answer."""
        silent = self._join.unreachable
        names = [node.name for node in self._state.planes() if node.name in silent]
        return runs.join_control_planes(self._voters, self._state.inputs, without=names)

    def _members(self) -> Sequence[EtcdMember]:
        return self._state.through(self._state.site.etcd).members()

    def has_run(self) -> bool:
        """Whether the playbook has run for it, and it is a node."""
        plane = self._join.plane
        if plane is None:
            return True
        # A run alone proves nothing: the node may have been removed since.
        done = self._state.site.playbooks.done(self._request())
        return done and plane.name in self._state.seen()

    def run(self) -> None:
        """Run the playbook that joins it, for all control planes."""
        playbooks.run(self._state, self._request(), len(self._state.planes()))

    def see_well(self) -> None:
        """Wait until it is Ready and well, and check that it is the new VM.

        :raises ClusterError: with what is wrong after ``ready_timeout``.
        """
        state, plane = self._state, self._join.plane
        if plane is None:
            return
        seen = readiness.wait_ready(state, [plane])
        readiness.verify_identity(state.site, seen, [plane])
        readiness.wait_until_well(
            state.deps,
            lambda: self._problem(plane),
            f"{plane.name} has not joined completely: {{left}}.",
            f"Look at `journalctl -u etcd` and at the API server's log on "
            f"{plane.ssh_address}, and mend it.",
        )

    def _problem(self, plane: Node) -> str:
        own = [member for member in self._members() if member.address == plane.address]
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

    def network_steps(self) -> tuple[Step, ...]:
        """Verify its pod network, if the request wants it."""
        return pod_network.steps(
            self._state,
            lambda: self._join.newcomers[:1] if self._join.plane else (),
            "the control plane",
            without=lambda: self._join.unreachable,
        )

    def balance(self) -> None:
        """Put it behind the load balancer, and record it as a full member.

        :raises ClusterError: the load balancer does not find it well.
        """
        state, plane = self._state, self._join.plane
        if plane is None:
            return
        if load_balancer.exists(state):
            load_balancer.balance(state, state.nodes)
        if load_balancer.exists(state) and not state.in_maintenance(plane):
            readiness.wait_until_well(
                state.deps,
                lambda: _not_up(plane, load_balancer.status(state).control_planes),
                "the load balancer does not find the control plane well: {left}.",
                f"Look whether it reaches {plane.address}:6443.",
            )
        # It is a member from now on, even if a worker fails to join.
        state.members |= {plane.server_id}
        kept = {node.server_id for node in state.nodes} & state.members
        state.write_json(JOINED_FILE, sorted(kept))
        healing = replace(state.healing, plane=None, first=False)
        inventory.write_healing(state, healing)


def _not_up(plane: Node, servers: Sequence[Server]) -> str:
    states = [server.state for server in servers if server.name == plane.name]
    if not states:
        return f"it has no route to {plane.name}"
    return "" if states[0] == "UP" else f"{plane.name} is {states[0]}"
