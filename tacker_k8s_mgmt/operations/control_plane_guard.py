# SPDX-License-Identifier: Apache-2.0
"""Whether a control plane may leave: checks of etcd and the API before it does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import quorum
from tacker_k8s_mgmt.model.nodes import Node, Role, names_of, of_role
from tacker_k8s_mgmt.model.quorum import ControlPlane, EtcdMember
from tacker_k8s_mgmt.operations.readiness import readiness_problem
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.remote.kubernetes.etcd import EtcdClient
from tacker_k8s_mgmt.topology.membership import Membership

_ONE = (
    "Heal without vnfcInstanceId to build the whole cluster anew, or heal the other "
    "VNFCs alone."
)
_MANY = "Control planes are healed one at a time, while the others are well."


@dataclass(frozen=True)
class LeavingPlane:
    """The control plane that leaves.

    :param is_well: its etcd member is healthy.
    :param voters: the control planes that are etcd members when the operation begins.
    """

    node: Node
    is_well: bool
    voters: tuple[Node, ...]


class ControlPlaneGuard:
    """Finds the control plane that leaves, and whether the cluster works without it.

    :param servers: id of the VNFC of each server that is rebuilt, by server id.
    """

    def __init__(self, state: ClusterState, servers: Mapping[str, str]) -> None:
        self._state = state
        self._servers = servers

    def see_majority(self) -> None:
        """Check that etcd serves; without it the API does not work.

        :raises UnsupportedOperation: it does not, and a control plane is to leave.
        :raises RemoteError, ClusterError: no control plane answers.
        """
        self._state.nodes = self._state.listed()
        planes = self._state.planes()
        leaving = [node for node in planes if node.server_id in self._servers]
        if not leaving or len(planes) == 1:
            return
        members = etcd_without(self._state, leaving).members()
        if not any(member.leader for member in members):
            listed = [
                ControlPlane(n.name, n.etcd_member_name, n.address) for n in planes
            ]
            self.refuse(leaving, quorum.refusal(listed, members, {leaving[0].name}))

    def refuse(
        self, leaving: Sequence[Node], reason: str, hint: str = _MANY
    ) -> NoReturn:
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
            f"cannot be healed: {reason.rstrip('.')}. {touched}",
            hint=hint,
        )

    def judge(
        self, leaving: Sequence[Node], membership: Membership, seen: NodeObjects
    ) -> LeavingPlane | None:
        """Check that the cluster works without these control planes.

        :returns: the one that leaves, if any does.
        :raises UnsupportedOperation: it would not; says which control planes are well.
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
        reason = (
            _still_out(leaving, out)
            or quorum.refusal(
                [self._described(plane, members, seen) for plane in planes],
                members,
                {node.name for node in leaving},
            )
            or _others_ill(leaving[0], members)
        )
        if reason:
            self.refuse(leaving, reason, _MANY if len(planes) > 1 else _ONE)
        own = [member for member in members if belongs(member, leaving[0])]
        return LeavingPlane(
            leaving[0],
            is_well=bool(own) and all(member.healthy for member in own),
            voters=tuple(n for n in planes if any(belongs(m, n) for m in members)),
        )

    def _described(
        self, plane: Node, members: Sequence[EtcdMember], seen: NodeObjects
    ) -> ControlPlane:
        problem, node = "", seen.get(plane.name)
        # One whose etcd member is ill counts as lost already.
        if any(member.healthy and belongs(member, plane) for member in members):
            try:
                problem = self._state.site.cluster(plane).api_problem()
            except errors.RemoteError as error:
                problem = str(error)
        return ControlPlane(
            name=plane.name,
            member=plane.etcd_member_name,
            address=plane.address,
            api_problem=problem,
            node_problem="" if node and node.ready else readiness_problem(node),
        )


def etcd_without(state: ClusterState, leaving: Sequence[Node]) -> EtcdClient:
    """etcd through a control plane that stays."""
    state.silent_planes |= {node.server_id for node in leaving}
    return state.through(state.site.etcd)


def _still_out(leaving: Sequence[Node], out: Sequence[Node]) -> str:
    """Why another control plane has to join again first; "" if none has."""
    others = [node for node in out if node not in leaving]
    if not others:
        return ""
    return (
        f"{names_of(others)} was taken out of the cluster by an earlier heal and has "
        "not joined again; heal that one first"
    )


def _others_ill(leaving: Node, members: Sequence[EtcdMember]) -> str:
    """Why kubespray could not join the new VM; "" if it could.

    Its role etcd goes on only when every member of the list is healthy.
    """
    ill = [m for m in members if not (m.healthy or belongs(m, leaving))]
    if not ill:
        return ""
    listed = ", ".join(f"{m.name} ({m.address}, id {m.member_id})" for m in ill)
    return (
        "kubespray joins a control plane only while all other members of etcd are "
        f"healthy, and this one is not: {listed}. Bring it up again or, if its machine "
        "is lost, take it out with `etcdctl member remove ID` on a control plane, heal "
        "this one, and then that one"
    )


def belongs(member: EtcdMember, plane: Node) -> bool:
    """Whether it is this control plane's member."""
    # A member that was never started has no name yet.
    return member.address == plane.address or bool(
        member.name and member.name == plane.etcd_member_name
    )
