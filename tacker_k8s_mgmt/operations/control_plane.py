# SPDX-License-Identifier: Apache-2.0
"""One control plane of several leaves its cluster for a rebuild, and joins it again.

Sources: kubespray's docs/operations/nodes.md, "Adding/replacing a control plane node",
"Adding an etcd node", "Removal of first kube_control_plane and etcd-master" and
"Removing an etcd node", and, for a dead one, recover-control-plane.md.

The cluster is highly available. Whether etcd keeps its majority is checked before
anything is changed (:class:`ControlPlaneGuard`). A control plane that joins comes
after the others in the inventory, and ``cluster.yml`` runs for the control planes only.
It keeps its names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.model import quorum
from tacker_k8s_mgmt.model.load_balancer import Server
from tacker_k8s_mgmt.model.nodes import (
    Node,
    Role,
    api_url,
    names_of,
    of_role,
    without_planes,
)
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.model.quorum import ControlPlane, EtcdMember, Refusal
from tacker_k8s_mgmt.operations import balancing, playbook_inputs, readiness
from tacker_k8s_mgmt.operations.join import Join
from tacker_k8s_mgmt.operations.leave import Leave, LeavingPlane
from tacker_k8s_mgmt.operations.readiness import readiness_problem
from tacker_k8s_mgmt.operations.records import JOINED_FILE
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.kubernetes.etcd import EtcdClient
from tacker_k8s_mgmt.request.reader import API_PORT
from tacker_k8s_mgmt.topology.membership import Membership

LOG = logging.getLogger(__name__)


class ControlPlaneGuard:
    """Finds the control plane that leaves, and whether the cluster works without it.

    :param servers: id of the VNFC of each server that is rebuilt, by server id.
    """

    def __init__(self, state: ClusterState, servers: Mapping[str, str]) -> None:
        self._state = state
        self._servers = servers

    def require_quorum(self) -> None:
        """Check that etcd serves; without it the API does not work.

        :raises UnsupportedOperation: it does not, and a control plane is to leave.
        :raises RemoteError, ClusterError: no control plane answers.
        """
        self._state.nodes = self._state.require_inventory()
        planes = self._state.control_planes()
        leaving = [node for node in planes if node.server_id in self._servers]
        if not leaving or len(planes) == 1:
            return
        members = etcd_without(self._state, leaving).members()
        if not any(member.leader for member in members):
            listed = [
                ControlPlane(n.name, n.etcd_member_name, n.address) for n in planes
            ]
            if found := quorum.refusal(listed, members, {leaving[0].name}):
                self.refuse(leaving, found)

    def refuse(self, leaving: Sequence[Node], why: Refusal) -> NoReturn:
        """Refuse to heal these control planes.

        :raises UnsupportedOperation: always.
        """
        # Read again, because this may be before the comparison.
        begun = self._state.records.healing().plane
        touched = (
            f"This try touched no VM and no node; an earlier one has begun to take out "
            f"{begun.name}."
            if begun
            else "No VM and no node was touched."
        )
        vnfcs = ", ".join(self._servers[node.server_id] for node in leaving)
        raise errors.UnsupportedOperation(
            detail=f"The VNFC {vnfcs} ({names_of(leaving)}) of the control plane "
            f"cannot be healed: {why.reason.rstrip('.')}. {touched}",
            hint=why.hint,
        )

    def check_removal(
        self, leaving: Sequence[Node], membership: Membership, seen: NodeObjects
    ) -> LeavingPlane | None:
        """Check that the cluster works without these control planes.

        :returns: the one that leaves, if any does.
        :raises UnsupportedOperation: it would not; names the healthy ones.
        :raises RemoteError, ClusterError: no control plane answers.
        """
        state = self._state
        if not leaving:
            return None
        listed = of_role(membership.nodes, Role.CONTROL_PLANE)
        recorded = (state.healing.plane,) if state.healing.plane else ()
        known = {node.name for node in listed}
        out = [n for n in membership.returning or recorded if n.name not in known]
        planes = [*listed, *out]
        # For the only one, or several at once, etcd need not be asked.
        asks = len(planes) > 1 and len(leaving) == 1
        members = etcd_without(state, leaving).members() if asks else ()
        found = (
            _still_out(leaving, out)
            or quorum.refusal(
                [self._described(plane, members, seen) for plane in planes],
                members,
                {node.name for node in leaving},
            )
            or _others_ill(leaving[0], members)
        )
        if found:
            self.refuse(leaving, found)
        own = [member for member in members if belongs(member, leaving[0])]
        return LeavingPlane(
            leaving[0],
            is_healthy=bool(own) and all(member.healthy for member in own),
            voters=tuple(n for n in planes if any(belongs(m, n) for m in members)),
        )

    def _described(
        self, plane: Node, members: Sequence[EtcdMember], seen: NodeObjects
    ) -> ControlPlane:
        problem, node = "", seen.get(plane.name)
        # One whose etcd member is unhealthy counts as lost already.
        if any(member.healthy and belongs(member, plane) for member in members):
            try:
                problem = self._state.site.cluster(plane).api_readiness()
            except errors.RemoteError as error:
                problem = str(error)
        return ControlPlane(
            name=plane.name,
            member=plane.etcd_member_name,
            address=plane.address,
            api_readiness=problem,
            node_problem=node.plane_problem if node else readiness_problem(None),
        )


def etcd_without(state: ClusterState, leaving: Sequence[Node]) -> EtcdClient:
    """etcd through a control plane that stays."""
    state.unreachable_control_planes |= {node.server_id for node in leaving}
    return state.via_control_plane(state.site.etcd)


def _still_out(leaving: Sequence[Node], out: Sequence[Node]) -> Refusal | None:
    """Why another control plane has to join again first; None if none has."""
    others = [node for node in out if node not in leaving]
    if not others:
        return None
    return Refusal(
        f"{names_of(others)} was taken out of the cluster by an earlier heal and has "
        "not joined again; heal that one first",
        quorum.ONE_AT_A_TIME,
    )


def _others_ill(leaving: Node, members: Sequence[EtcdMember]) -> Refusal | None:
    """Why kubespray could not join the new VM; None if it could.

    Its role etcd continues only when every member of the list is healthy.
    """
    ill = [m for m in members if not (m.healthy or belongs(m, leaving))]
    if not ill:
        return None
    listed = ", ".join(f"{m.name} ({m.address}, id {m.member_id})" for m in ill)
    return Refusal(
        "kubespray joins a control plane only while all other members of etcd are "
        f"healthy, and this one is not: {listed}. Bring it up again or, if its machine "
        "is lost, take it out with `etcdctl member remove ID` on a control plane, heal "
        "this one, and then that one",
        quorum.ONE_AT_A_TIME,
    )


def belongs(member: EtcdMember, plane: Node) -> bool:
    """Whether it is this control plane's member."""
    # A member that was never started has no name yet.
    return member.address == plane.address or bool(
        member.name and member.name == plane.etcd_member_name
    )


class ControlPlaneLeave:
    """The steps with which a control plane leaves, besides those of a worker.

    :param leave: the nodes that leave, at most one control plane among them.
    """

    def __init__(self, state: ClusterState, leave: Leave) -> None:
        self._state = state
        self._leave = leave

    @property
    def _leaving(self) -> LeavingPlane | None:
        return self._leave.leaving.plane

    def none_leaves(self) -> bool:
        """Whether only workers leave."""
        return self._leaving is None

    def note(self) -> None:
        """Record its names, and whether another one has to become the first.

        The record of an earlier try stays: the inventory has changed since.
        """
        leaving = self._leaving
        if leaving is None:
            return
        self._leave.note_unfinished()
        healing, name = self._state.healing, leaving.node.name
        if healing.plane is None or healing.plane.name != name:
            first = of_role(self._state.inventory_nodes(), Role.CONTROL_PLANE)[0]
            healing = replace(healing, first=first.name == name)
        playbook_inputs.write_healing(self._state, replace(healing, plane=leaving.node))

    def is_behind(self) -> bool:
        """Whether another control plane is already the first."""
        return self._leaving is None or not self._state.healing.first

    def put_behind(self) -> None:
        """Make another one the first, because kubespray does not remove the first.

        With a dead etcd member ``cluster.yml`` would fail: it waits until all members
        are healthy. Then the run that joins the new VM does this work, too.
        """
        state, nodes, leaving = self._state, self._leave.leaving, self._leaving
        if leaving is None:
            return
        playbook_inputs.write_inputs(state, self._behind(leaving.node))
        answers = leaving.is_healthy and leaving.node in nodes.alive
        if answers and not nodes.without_balancer:
            self._pin_members(leaving)
        playbook_inputs.write_healing(state, replace(state.healing, first=False))

    def _pin_members(self, leaving: LeavingPlane) -> None:
        """Run ``cluster.yml`` for the control planes in their new order."""
        state, unreachable = self._state, self._leave.leaving.unreachable
        planes = state.control_planes()
        without = [node.name for node in planes if node.name in unreachable]
        request = runs.join_control_planes(
            leaving.voters, state.inputs, without=without
        )
        if state.site.playbooks.done(request):
            return
        playbook_inputs.run(state, runs.facts(unreachable), len(state.nodes))
        playbook_inputs.run(state, request, len(planes))

    def _behind(self, plane: Node) -> tuple[Node, ...]:
        """The inventory's nodes, with this control plane after the others."""
        listed = [
            node for node in self._state.inventory_nodes() if node.name != plane.name
        ]
        planes = of_role(listed, Role.CONTROL_PLANE)
        return (*planes, plane, *without_planes(listed))

    def run_remove(self) -> None:
        """Run kubespray's ``remove-node.yml`` for it, after what the run needs."""
        state, nodes, leaving = self._state, self._leave.leaving, self._leaving
        if leaving is None or leaving.node.name not in nodes.listed:
            return
        plane = leaving.node
        is_dead = plane.name in nodes.unreachable
        members = etcd_without(state, [plane]).members()
        own = [member for member in members if belongs(member, plane)]
        others = [member for member in members if member not in own]
        if plane not in nodes.present and (is_dead or not own):
            return
        if own and (is_dead or _is_mistaken(plane, others)):
            self._remove_members(own)
            own = []
        if not own:
            # kubespray would look for a member, and find none or take another one.
            behind = self._behind(plane)
            playbook_inputs.write_inputs(state, behind, without_etcd={plane.name})
        else:
            playbook_inputs.put_leader_first(state)
        self._leave.note_unfinished()
        request = runs.remove(
            [plane.name],
            state.params.drain,
            dead=is_dead,
            undrained=self._leave.undrained,
            without=nodes.unreachable,
        )
        playbook_inputs.run(state, request, 1)

    def _remove_members(self, members: Sequence[EtcdMember]) -> None:
        for member in members:
            LOG.info("etcd's member %s (%s) is removed", member.name, member.member_id)
            etcd = self._state.via_control_plane(self._state.site.etcd)
            etcd.run("member", "remove", member.member_id)

    def leave_etcd(self) -> None:
        """Remove it from etcd and from the address that new nodes are given."""
        state, leaving = self._state, self._leaving
        if leaving is None:
            return
        plane = leaving.node
        members = etcd_without(state, [plane]).members()
        self._remove_members([member for member in members if belongs(member, plane)])
        other = of_role(self._leave.leaving.staying, Role.CONTROL_PLANE)[0]
        server = api_url(other.address, API_PORT)
        if state.cluster().move_cluster_info(plane.address, server):
            LOG.info("New nodes find the API at %s from now on", server)

    def verify_removed(self) -> None:
        """Check that etcd has lost this member and no other.

        :raises ClusterError: naming the control planes without a member.
        """
        leaving = self._leaving
        if leaving is None:
            return
        members = self._state.via_control_plane(self._state.site.etcd).members()
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
            others = of_role(state.nodes, Role.CONTROL_PLANE)
            state.nodes = (*others, plane, *without_planes(state.nodes))
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
        names = [
            node.name for node in self._state.control_planes() if node.name in silent
        ]
        return runs.join_control_planes(self._voters, self._state.inputs, without=names)

    def _members(self) -> Sequence[EtcdMember]:
        return self._state.via_control_plane(self._state.site.etcd).members()

    def has_run(self) -> bool:
        """Whether the playbook has run for it, and it is a node."""
        plane = self._join.plane
        if plane is None:
            return True
        # A run alone proves nothing: the node may have been removed since.
        done = self._state.site.playbooks.done(self._request())
        return done and plane.name in self._state.node_objects()

    def run(self) -> None:
        """Run the playbook that joins it, for all control planes."""
        playbook_inputs.run(
            self._state, self._request(), len(self._state.control_planes())
        )

    def verify_healthy(self) -> None:
        """Wait until it is Ready and healthy, and check that it is the new VM.

        :raises ClusterError: with what is wrong after ``ready_timeout``.
        """
        state, plane = self._state, self._join.plane
        if plane is None:
            return
        seen = readiness.wait_ready(state, [plane])
        readiness.verify_identity(state.site, seen, [plane])
        readiness.wait_until_healthy(
            state.deps,
            lambda: self._problem(plane),
            f"{plane.name} has not joined completely: {{left}}.",
            f"Look at `journalctl -u etcd` and at the API server's log on "
            f"{plane.ssh_address}, and fix it.",
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
        if problem := cluster.api_readiness():
            return f"its API server: {problem}"
        machine = self._state.machines.load_balancer
        outside = [machine.ssh_address, machine.address] if machine else []
        missing = cluster.uncertified([plane.address, plane.ssh_address, *outside])
        if missing:
            return f"the certificate of its API server is not for {', '.join(missing)}"
        return ""

    def joined(self) -> tuple[Step, ...]:
        """The steps of the features for it."""
        return self._state.joined(
            lambda: self._join.newcomers[:1] if self._join.plane else (),
            "the control plane",
            without=lambda: self._join.unreachable,
        )

    def balance(self) -> None:
        """Put it behind the load balancer, and record it as a full member.

        :raises ClusterError: the load balancer does not find it healthy.
        """
        state, plane = self._state, self._join.plane
        if plane is None:
            return
        if balancing.exists(state):
            balancing.set_control_planes(state, state.nodes)
        if balancing.exists(state) and state.in_service(plane):
            readiness.wait_until_healthy(
                state.deps,
                lambda: _not_up(plane, balancing.status(state).control_planes),
                "the load balancer does not find the control plane healthy: {left}.",
                f"Look whether it reaches {plane.address}:6443.",
            )
        # It is a member from now on, even if a worker fails to join.
        state.members |= {plane.server_id}
        kept = {node.server_id for node in state.nodes} & state.members
        state.write_json(JOINED_FILE, sorted(kept))
        healing = replace(state.healing, plane=None, first=False)
        playbook_inputs.write_healing(state, healing)


def _not_up(plane: Node, servers: Sequence[Server]) -> str:
    states = [server.state for server in servers if server.name == plane.name]
    if not states:
        return f"it has no route to {plane.name}"
    return "" if states[0] == "UP" else f"{plane.name} is {states[0]}"
