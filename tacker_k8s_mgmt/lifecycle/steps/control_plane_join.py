"""A control plane whose VM was built anew joins its cluster again.

Source: kubespray's docs/operations/nodes.md, "Adding/replacing a control plane node"
and "Adding an etcd node": it stands behind the others in the inventory, and
``cluster.yml`` is run for the control planes alone. It has its names of before.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps.control_plane_guard import belongs
from tacker_k8s_mgmt.lifecycle.steps.join import Join
from tacker_k8s_mgmt.lifecycle.steps.records import JOINED_FILE
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.topology import heal_record

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class PlaneJoin(Join):
    """Workers join, and at most one control plane that a heal has taken out."""

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps)
        self._plane: Node | None = None
        #: The control planes that are members of etcd when it has joined.
        self._voters: tuple[Node, ...] = ()

    def join_steps(self) -> tuple[Step, ...]:
        """The steps after it is clear who joins."""
        clear, reach, write, gather, scale, ready, route = super().join_steps()
        return (
            clear,
            reach,
            write,
            gather,
            Step(
                f"run {kubespray_releases.CLUSTER} for the control planes",
                self._run_cluster,
                probe=self._has_run,
            ),
            Step(
                "see the control plane well in cluster and etcd",
                self._see_well,
                probe=self._none_joins,
            ),
            Step(
                "put the control plane behind the load balancer",
                self._balance,
                probe=self._none_joins,
            ),
            scale,
            ready,
            route,
        )

    def _choose(self) -> None:
        super()._choose()
        noted = self._healing.plane
        names = {node.name for node in self._nodes}
        if noted and noted.name in names and self._is_voter(noted):
            # An earlier try has joined it, and came no further.
            self._healing = replace(self._healing, plane=None, first=False)
        coming = [
            node
            for node in self._returning
            if self._is_target(node) or not self._site.unreachable([node])
        ]
        if coming:
            self._plane = coming[0]
            others = [node for node in self._nodes if node.role is not Role.WORKER]
            workers = [node for node in self._nodes if node.role is Role.WORKER]
            self._nodes = (*others, self._plane, *workers)
            members = {one.address for one in self._etcd_members()}
            voters = (node for node in others if node.address in members)
            self._voters = (*voters, self._plane)
            LOG.info("The control plane %s joins again", self._plane.name)

    def _newcomers(self) -> tuple[Node, ...]:
        return (*((self._plane,) if self._plane else ()), *super()._newcomers())

    def _none_joins(self) -> bool:
        return self._plane is None

    def _has_begun(self) -> bool:
        if self._plane is None:
            return super()._has_begun()
        if self._site.playbooks.live(self._cluster_request()):
            return True
        return self._has_run() and super()._has_begun()

    def _cluster_request(self) -> PlaybookRequest:
        """One that joins this control plane, and leaves out whoever is silent."""
        planes = self._planes()
        shut_out = [n.name for n in planes if n.name in self._unreachable]
        return PlaybookRequest(
            kubespray_releases.CLUSTER,
            extra_vars=kubespray_releases.member_variables(self._voters),
            args=kubespray_releases.limit_to_control_planes(without=shut_out),
            inputs=self._inputs,
        )

    def _etcd_members(self) -> Sequence[EtcdMember]:
        """etcd's members, as a control plane that stayed tells."""
        return self._through(self._site.etcd).members()

    def _is_voter(self, plane: Node) -> bool:
        """Whether etcd has a member of it: one that it has lost is half out."""
        return any(belongs(one, plane) for one in self._etcd_members())

    def _has_run(self) -> bool:
        plane = self._plane
        if plane is None:
            return True
        # The run alone proves nothing: the node may have been removed since.
        done = self._site.playbooks.done(self._cluster_request())
        return done and plane.name in self._seen()

    def _run_cluster(self) -> None:
        self._run(self._cluster_request(), len(self._planes()))

    def _see_well(self) -> None:
        """See that it is the new VM, and well in every respect.

        :raises ClusterError: what is wrong after ``ready_timeout``.
        """
        plane = self._plane
        if plane is None:
            return
        self._verify_identity(self._wait_ready([plane]), [plane])
        self._wait_until_well(
            lambda: self._problem(plane),
            f"{plane.name} has not joined wholly: {{left}}.",
            f"Look at `journalctl -u etcd` and at the API server's log on "
            f"{plane.ssh_address}, and mend it.",
        )

    def _problem(self, plane: Node) -> str:
        own = [one for one in self._etcd_members() if one.address == plane.address]
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
        cluster = self._site.cluster(plane)
        if problem := cluster.api_problem():
            return f"its API server: {problem}"
        machine = self._machines.load_balancer
        outside = [machine.ssh_address, machine.address] if machine else []
        missing = cluster.uncertified([plane.address, plane.ssh_address, *outside])
        if missing:
            return f"the certificate of its API server is not for {', '.join(missing)}"
        return ""

    def _balance(self) -> None:
        plane, balancing = self._plane, self._balancing()
        if plane is None:
            return
        if balancing is not None:
            balancing.front(self._nodes)
            self._wait_until_well(
                lambda: _not_up(plane, balancing.status().control_planes),
                "the load balancer does not find the control plane well: {left}.",
                f"Look whether it reaches {plane.address}:6443.",
            )
        # It is a member now, whatever becomes of the workers.
        self._members |= {plane.server_id}
        kept = {node.server_id for node in self._nodes} & self._members
        self._write_json(JOINED_FILE, sorted(kept))
        self._healing = replace(self._healing, plane=None, first=False)
        self._site.workdir.write(heal_record.FILE_NAME, self._healing.text())


def _not_up(plane: Node, servers: Sequence[Any]) -> str:
    states = [one.state for one in servers if one.name == plane.name]
    if not states:
        return f"it has no route to {plane.name}"
    return "" if states[0] == "UP" else f"{plane.name} is {states[0]}"
