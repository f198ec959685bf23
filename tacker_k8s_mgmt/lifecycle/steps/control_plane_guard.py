"""Whether a control plane may leave: asked of etcd and the API before it does."""

from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.state import Dependencies, names_of
from tacker_k8s_mgmt.lifecycle.steps.leave import Leave
from tacker_k8s_mgmt.model import quorum
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.model.quorum import ControlPlane, EtcdMember
from tacker_k8s_mgmt.topology.membership import Membership

_ONE = (
    "Heal without vnfcInstanceId to build the whole cluster anew, or heal the other "
    "VNFCs alone."
)
_MANY = "Control planes are healed one at a time, while the others are well."


class PlaneJudge(Leave):
    """Finds out which control plane leaves, and whether the cluster goes on then."""

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps)
        self._plane: Node | None = None
        #: Whether its etcd member is.
        self._is_well = True
        #: The control planes that are members of etcd when the operation begins.
        self._voters: list[Node] = []

    def _see_majority(self, servers: Collection[str]) -> None:
        """See that etcd serves, without which the API tells nothing of the cluster.

        :param servers: ids of the servers that are to be built anew.
        :raises UnsupportedOperation: it does not, and one of them is a control plane.
        :raises RemoteError, ClusterError: nobody can tell.
        """
        self._nodes = self._listed()
        planes = self._planes()
        leaving = [node for node in planes if node.server_id in servers]
        if not leaving or len(planes) == 1:
            return
        members = self._etcd(leaving).members()
        if not any(one.leader for one in members):
            listed = [
                ControlPlane(n.name, n.etcd_member_name, n.address) for n in planes
            ]
            self._refuse(leaving, quorum.refusal(listed, members, {leaving[0].name}))

    def _refuse(
        self, leaving: Sequence[Node], reason: str, hint: str = _MANY
    ) -> NoReturn:
        # Read anew, for this may be before the comparison.
        begun = self._records.healing().plane
        touched = (
            f"This try touched no VM and no node; an earlier one has begun to take out "
            f"{begun.name}."
            if begun
            else "No VM and no node was touched."
        )
        raise errors.UnsupportedOperation(
            detail=f"{self._called(leaving)} cannot be healed: {reason.rstrip('.')}. "
            f"{touched}",
            hint=hint,
        )

    def _judge(
        self,
        leaving: Sequence[Node],
        found: Membership,
        seen: Mapping[str, ports.ClusterNode],
    ) -> None:
        """See that the cluster goes on without these control planes.

        :raises UnsupportedOperation: it would not, and who is well.
        :raises RemoteError, ClusterError: nobody can tell.
        """
        if not leaving:
            return
        planes = [n for n in found.nodes if n.role is Role.CONTROL_PLANE]
        noted = (self._healing.plane,) if self._healing.plane else ()
        known = {node.name for node in planes}
        out = [n for n in found.returning or noted if n.name not in known]
        planes += out
        # The only one, or several at once: etcd need not be asked.
        asks = len(planes) > 1 and len(leaving) == 1
        members = self._etcd(leaving).members() if asks else ()
        reason = (
            _still_out(leaving, out)
            or quorum.refusal(
                [self._described(one, members, seen) for one in planes],
                members,
                {node.name for node in leaving},
            )
            or _others_ill(leaving[0], members)
        )
        if reason:
            self._refuse(leaving, reason, _MANY if len(planes) > 1 else _ONE)
        self._plane = leaving[0]
        own = [one for one in members if belongs(one, leaving[0])]
        self._is_well = bool(own) and all(one.healthy for one in own)
        self._voters = [
            node for node in planes if any(belongs(one, node) for one in members)
        ]

    def _called(self, nodes: Sequence[Node]) -> str:
        return names_of(nodes)

    def _described(
        self,
        plane: Node,
        members: Sequence[EtcdMember],
        seen: Mapping[str, ports.ClusterNode],
    ) -> ControlPlane:
        node = seen.get(plane.name)
        answers = any(one.healthy and belongs(one, plane) for one in members)
        return ControlPlane(
            name=plane.name,
            member=plane.etcd_member_name,
            address=plane.address,
            # Whose etcd member is ill counts as lost already.
            api_problem=self._api_problem(plane) if answers else "",
            node_problem="not in the cluster" if node is None else node.reason,
        )

    def _api_problem(self, plane: Node) -> str:
        try:
            return self._site.cluster(plane).api_problem()
        except errors.RemoteError as error:
            return str(error)

    def _etcd(self, leaving: Sequence[Node]) -> ports.Etcd:
        """etcd through a control plane that stays."""
        self._silent_planes |= {node.server_id for node in leaving}
        return self._through(self._site.etcd)

    def _doubted(self) -> Collection[str]:
        """Whose Node object may tell of a time that is over."""
        return () if self._plane is None or self._is_well else (self._plane.name,)


def _still_out(leaving: Sequence[Node], out: Sequence[Node]) -> str:
    """Why another control plane has to come back first; "" if none has."""
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
    ill = [one for one in members if not (one.healthy or belongs(one, leaving))]
    if not ill:
        return ""
    told = ", ".join(f"{one.name} ({one.address}, id {one.member_id})" for one in ill)
    return (
        "kubespray joins a control plane only while all other members of etcd are "
        f"healthy, and this one is not: {told}. Bring it up again or, if its machine "
        "is lost, take it out with `etcdctl member remove ID` on a control plane, heal "
        "this one, and then that one"
    )


def belongs(member: EtcdMember, plane: Node) -> bool:
    """Whether it is this control plane's."""
    # One that was never started has no name yet.
    return member.address == plane.address or bool(
        member.name and member.name == plane.etcd_member_name
    )
