"""A control plane leaves a highly available cluster, so that its VM is built anew.

Source: kubespray's docs/operations/nodes.md, "Adding/replacing a control plane node",
"Removal of first kube_control_plane and etcd-master" and "Removing an etcd node", and,
for a dead one, recover-control-plane.md. etcd goes on without it, so whether that may
be is judged before anything is touched.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies, names_of
from tacker_k8s_mgmt.lifecycle.steps.control_plane_guard import PlaneJudge, belongs
from tacker_k8s_mgmt.lifecycle.steps.load_balancer import Balancing
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Node, Role, api_url
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.request.params import API_PORT
from tacker_k8s_mgmt.topology import heal_record

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class PlaneLeave(PlaneJudge):
    """Workers leave, and at most one control plane."""

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps)
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
        self._told = [self._unfinished()]
        before = self._healing
        if before.plane is None or before.plane.name != self._planes_name():
            first = next(n for n in self._previous() if n.role is Role.CONTROL_PLANE)
            before = replace(before, first=first.name == self._planes_name())
        self._write_healing(replace(before, plane=self._plane))

    def _unfinished(self) -> str:
        told = super()._unfinished()
        if self._plane is None:
            return told
        name = self._plane.name
        return (
            f"{told} If this heal is given up, heal {name} again; as long as it has a "
            f"Node object, `kubectl uncordon {name}` lets pods onto it meanwhile. It "
            "stays out of the load balancer until it is healed."
        )

    def _planes_name(self) -> str:
        return self._plane.name if self._plane else ""

    def _write_healing(self, told: heal_record.Healing) -> None:
        self._healing = told
        self._site.workdir.write(heal_record.FILE_NAME, told.text())

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
                kubespray_releases.CLUSTER,
                extra_vars=kubespray_releases.member_variables(self._voters),
                args=kubespray_releases.limit_to_control_planes(without=silent),
                inputs=self._inputs,
            )
            if not self._site.playbooks.done(request):
                args = kubespray_releases.limit_without(self._silent)
                self._run(
                    PlaybookRequest(kubespray_releases.FACTS, args=args),
                    len(self._nodes),
                )
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
        if self._plane and self._planes_name() in self._in_inventory:
            self._remove_plane(self._plane)

    def _remove_plane(self, plane: Node) -> None:
        is_dead = plane.name in self._silent
        members = self._etcd([plane]).members()
        own = [one for one in members if belongs(one, plane)]
        others = [one for one in members if one not in own]
        if plane not in (*self._alive, *self._dead) and (is_dead or not own):
            return
        if own and (is_dead or _is_mistaken(plane, others)):
            self._remove_members(own)
            own = []
        variables = kubespray_releases.removal_variables(
            dead=is_dead, undrained=self._undrained
        )
        if not own:
            # kubespray would look for a member, and not find one or take another.
            self._write_inputs(self._behind(), without_etcd={plane.name})
        self._told = [self._unfinished()]
        request = PlaybookRequest(
            kubespray_releases.REMOVE_NODE,
            extra_vars={"node": plane.name, **variables},
            args=() if is_dead else kubespray_releases.limit_without(self._silent),
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
        self._remove_members([one for one in members if belongs(one, plane)])
        other = next(n for n in self._staying if n.role is Role.CONTROL_PLANE)
        server = api_url(other.address, API_PORT)
        if self._cluster().move_cluster_info(plane.address, server):
            LOG.info("New nodes find the API at %s from now on", server)

    def _see_out(self) -> None:
        """See that etcd has lost this member and no other.

        :raises ClusterError: naming whoever has no member.
        """
        members = self._through(self._site.etcd).members()
        others = [node for node in self._voters if node.name != self._planes_name()]
        lost = [n for n in others if not any(belongs(one, n) for one in members)]
        if lost:
            raise errors.ClusterError(
                detail=f"etcd has no member of {names_of(lost)} any longer, which was "
                "not to leave it.",
                hint="Look at `etcdctl member list` on a control plane, and at the log "
                "of the last run, and add the member again.",
            )


def _is_mistaken(plane: Node, others: Sequence[EtcdMember]) -> bool:
    """Whether another member would be taken for this one's.

    Up to v2.25 kubespray looks for the address anywhere in a line of the list.
    """
    return any(plane.address in one.address for one in others)
