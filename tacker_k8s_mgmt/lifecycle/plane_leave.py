"""A control plane leaves a highly available cluster, so that its VM is built anew.

Source: kubespray's docs/operations/nodes.md, "Adding/replacing a control plane node",
"Removal of first kube_control_plane and etcd-master" and "Removing an etcd node", and,
for a dead one, recover-control-plane.md. etcd goes on without it, so whether that may
be is judged before anything is touched.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cluster import healing, kubespray, quorum
from tacker_k8s_mgmt.cluster.membership import Membership
from tacker_k8s_mgmt.cluster.nodes import Node, Role, api_url
from tacker_k8s_mgmt.cluster.params import API_PORT
from tacker_k8s_mgmt.cluster.quorum import ControlPlane, EtcdMember
from tacker_k8s_mgmt.cluster.runs import PlaybookRequest
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.balancing import Balancing
from tacker_k8s_mgmt.lifecycle.leave import Leave
from tacker_k8s_mgmt.lifecycle.operation import names_of
from tacker_k8s_mgmt.lifecycle.step import Step

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_ONE = (
    "Send `fail` for this operation. Heal without vnfcInstanceId to build the whole "
    "cluster anew, or heal the other VNFCs alone."
)
_MANY = (
    "Send `fail` for this operation. Control planes are healed one at a time, while "
    "the others are well."
)


class PlaneLeave(Leave):
    """Workers leave, and at most one control plane."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._plane: Node | None = None
        self._is_well = True
        #: Whether the load balancer, by which kubespray reaches the API, is silent.
        self._balancer_is_gone = False

    def leave_steps(self) -> tuple[Step, ...]:
        """The steps after it is clear who leaves."""
        unroute, cordon, drain, remove, delete, write = super().leave_steps()
        return (
            unroute,
            cordon,
            drain,
            Step(
                "note which control plane leaves", self._note, probe=self._none_leaves
            ),
            Step(
                "put another control plane first",
                self._put_behind,
                probe=self._is_behind,
            ),
            remove,
            Step(
                "see the control plane out of etcd",
                self._leave_etcd,
                probe=self._none_leaves,
                verify=self._see_out,
            ),
            delete,
            write,
        )

    # Whether it may leave

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
        raise errors.UnsupportedOperation(
            detail=f"{self._called(leaving)} cannot be healed: {reason}. No VM and no "
            "node was touched.",
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
        own = [one for one in members if _belongs(one, leaving[0])]
        self._is_well = bool(own) and all(one.healthy for one in own)

    def _called(self, nodes: Sequence[Node]) -> str:
        return names_of(nodes)

    def _described(
        self,
        plane: Node,
        members: Sequence[EtcdMember],
        seen: Mapping[str, ports.ClusterNode],
    ) -> ControlPlane:
        node = seen.get(plane.name)
        answers = any(one.healthy and _belongs(one, plane) for one in members)
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

    # How it leaves

    def _none_leaves(self) -> bool:
        return self._plane is None

    def _unroute(self) -> None:
        super()._unroute()
        balancing = self._balancing()
        if balancing is not None and self._plane is not None:
            balancing.front(self._staying)

    def _route_back(self, balancing: Balancing) -> None:
        super()._route_back(balancing)
        if self._plane is not None:
            balancing.front((*self._staying, *self._alive))

    def _note(self) -> None:
        """Note its names, and whether another one has to become the first.

        What an earlier try has noted holds: the inventory is another one since.
        """
        before = self._healing
        if before.plane is None or before.plane.name != self._planes_name():
            first = next(n for n in self._previous() if n.role is Role.CONTROL_PLANE)
            before = replace(before, first=first.name == self._planes_name())
        self._write_healing(replace(before, plane=self._plane))

    def _planes_name(self) -> str:
        return self._plane.name if self._plane else ""

    def _write_healing(self, told: healing.Healing) -> None:
        self._healing = told
        self._site.workdir.write(healing.FILE_NAME, told.text())

    def _is_behind(self) -> bool:
        return self._plane is None or not self._healing.first

    def _put_behind(self) -> None:
        """Make another one the first, as kubespray does not remove that.

        With a dead member in etcd ``cluster.yml`` does not end well: it waits until all
        are healthy. The one that joins the new VM then does this work, too.
        """
        self._write_inputs(self._behind())
        if self._is_well and self._plane in self._alive and not self._balancer_is_gone:
            silent = [node.name for node in self._planes() if node.name in self._silent]
            request = PlaybookRequest(
                kubespray.CLUSTER,
                args=kubespray.limit_to_control_planes(without=silent),
                inputs=self._inputs,
            )
            if not self._site.playbooks.done(request):
                args = kubespray.limit_without(self._silent)
                self._run(PlaybookRequest(kubespray.FACTS, args=args), len(self._nodes))
                self._run(request, len(self._planes()))
        self._write_healing(replace(self._healing, first=False))

    def _behind(self) -> tuple[Node, ...]:
        """The inventory's nodes, the one that leaves behind the others of its kind."""
        listed = [n for n in self._previous() if n.name != self._planes_name()]
        planes = [node for node in listed if node.role is Role.CONTROL_PLANE]
        workers = [node for node in listed if node.role is not Role.CONTROL_PLANE]
        return (*planes, *([self._plane] if self._plane else ()), *workers)

    def _run_remove(self) -> None:
        super()._run_remove()
        present = self._plane in (*self._alive, *self._dead)
        if self._plane and present and self._planes_name() in self._in_inventory:
            self._remove_plane(self._plane)

    def _remove_plane(self, plane: Node) -> None:
        is_dead = plane in self._dead
        members = self._etcd([plane]).members()
        own = [one for one in members if _belongs(one, plane)]
        others = [one for one in members if one not in own]
        if own and (is_dead or _is_mistaken(plane, others)):
            self._remove_members(own)
            own = []
        variables = kubespray.removal_variables(dead=is_dead, undrained=self._undrained)
        if not own:
            # kubespray would look for a member, and not find one or take another.
            self._write_inputs(self._behind(), without_etcd={plane.name})
        self._told = [self._unfinished()]
        request = PlaybookRequest(
            kubespray.REMOVE_NODE,
            extra_vars={"node": plane.name, **variables},
            args=() if is_dead else kubespray.limit_without(self._silent),
        )
        self._run(request, 1)

    def _remove_members(self, members: Sequence[EtcdMember]) -> None:
        for one in members:
            LOG.info("etcd's member %s (%s) is removed", one.name, one.member_id)
            self._through(self._site.etcd).remove(one.member_id)

    def _leave_etcd(self) -> None:
        """Take out of etcd, and of what newcomers are told, what is still there."""
        plane = self._plane
        if plane is None:
            return
        members = self._etcd([plane]).members()
        self._remove_members([one for one in members if _belongs(one, plane)])
        other = next(n for n in self._staying if n.role is Role.CONTROL_PLANE)
        server = api_url(other.address, API_PORT)
        if self._cluster().move_cluster_info(plane.address, server):
            LOG.info("New nodes find the API at %s from now on", server)

    def _see_out(self) -> None:
        """See that etcd has lost this member and no other.

        :raises ClusterError: naming whoever has no member.
        """
        members = self._through(self._site.etcd).members()
        staying = [n for n in self._staying if n.role is Role.CONTROL_PLANE]
        lost = [n for n in staying if not any(_belongs(one, n) for one in members)]
        if lost:
            raise errors.ClusterError(
                detail=f"etcd has no member of {names_of(lost)} any longer, which was "
                "not to leave it.",
                hint="Look at `etcdctl member list` on a control plane, and at the log "
                "of the last run; add the member again before you retry.",
            )


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
    ill = [one for one in members if not (one.healthy or _belongs(one, leaving))]
    if not ill:
        return ""
    told = ", ".join(f"{one.name} ({one.address}, id {one.member_id})" for one in ill)
    return (
        "kubespray joins a control plane only while all other members of etcd are "
        f"healthy, and this one is not: {told}. Bring it up again or, if its machine "
        "is lost, take it out with `etcdctl member remove ID` on a control plane, heal "
        "this one, and then that one"
    )


def _belongs(member: EtcdMember, plane: Node) -> bool:
    # One that was never started has no name yet.
    return member.address == plane.address or bool(
        member.name and member.name == plane.etcd_member_name
    )


def _is_mistaken(plane: Node, others: Sequence[EtcdMember]) -> bool:
    """Whether another member would be taken for this one's.

    Up to v2.25 kubespray looks for the address anywhere in a line of the list.
    """
    return any(plane.address in one.address for one in others)
