"""What an operation works with, and what it knows of its cluster."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.steps.load_balancer import Balancing
from tacker_k8s_mgmt.lifecycle.steps.records import ClusterRecords, nodes_in
from tacker_k8s_mgmt.model.cluster import NodeObject
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, api_url, of_role
from tacker_k8s_mgmt.model.playbook_runs import Progress
from tacker_k8s_mgmt.request import option_types
from tacker_k8s_mgmt.request.params import API_PORT, InstallParams
from tacker_k8s_mgmt.topology.heal_record import Healing
from tacker_k8s_mgmt.topology.heat_stack import Machines

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

Reached = TypeVar("Reached")
#: The cluster's Node objects by name.
NodeObjects = Mapping[str, NodeObject]


@dataclass(frozen=True)
class Dependencies:
    """What an operation on one VNF instance's cluster works with.

    :param ready_timeout: seconds for nodes to become Ready.
    :param poll_interval: longest pause between two looks, seconds.
    :param on_progress: is called with how far a playbook has come.
    """

    params: InstallParams
    vnf_id: str
    site: ports.Site
    clock: ports.Clock
    ready_timeout: float
    poll_interval: float
    on_progress: Callable[[Progress], None]


@dataclass
class ClusterState:
    """The cluster as an operation has found it; :mod:`.steps` change it.

    :param ready_first: the API is reached through a control plane whose own API server
        is ready, where there is one.
    :param machines: the VMs in the Heat stack.
    :param nodes: those that the cluster has, or is to have.
    :param returning: the control plane that a heal took out, if its VM is there to join
        again.
    :param lost: names of the control planes whose VM is gone, or was built anew without
        a heal.
    :param silent_planes: ids of the control planes that did not accept a login.
    :param members: ids of the servers that were whole members at the beginning.
    :param healing: a heal that is under way or was given up.
    :param inputs: texts of inventory and variables, as they were written last.
    """

    deps: Dependencies
    ready_first: bool = False
    machines: Machines = field(default_factory=lambda: Machines((), (), None))
    nodes: tuple[Node, ...] = ()
    returning: tuple[Node, ...] = ()
    lost: frozenset[str] = frozenset()
    silent_planes: set[str] = field(default_factory=set)
    members: frozenset[str] = frozenset()
    healing: Healing = field(default_factory=Healing)
    inputs: tuple[str, ...] = ()

    @property
    def params(self) -> InstallParams:
        """The parameters of the request."""
        return self.deps.params

    @property
    def site(self) -> ports.Site:
        """Everything that the operation may touch."""
        return self.deps.site

    @property
    def records(self) -> ClusterRecords:
        """The files of the cluster's directory."""
        return ClusterRecords(self.site, self.params.ansible.host)

    def write_json(self, name: str, value: object) -> None:
        """Write one of the cluster's records."""
        self.site.workdir.write(name, json.dumps(value, indent=2) + "\n")

    # Nodes and VMs

    def previous(self) -> tuple[Node, ...]:
        """The nodes of the inventory as it is on the Ansible server."""
        return nodes_in(self.records.last_inventory())

    def listed(self) -> tuple[Node, ...]:
        """As :meth:`previous`, of a cluster that is there.

        :raises ClusterError: there is no inventory.
        """
        nodes = self.previous()
        if not nodes:
            workdir = self.site.workdir.path
            raise errors.ClusterError(
                detail=f"There is no inventory of this cluster in {workdir} on "
                f"{self.params.ansible.host}.",
                hint=f"Restore {inventory.FILE_NAME} there, or heal the whole VNF, "
                "which builds the cluster anew.",
            )
        return nodes

    def planes(self) -> tuple[Node, ...]:
        """The control planes among the nodes."""
        return of_role(self.nodes, Role.CONTROL_PLANE)

    def vms(self) -> tuple[Machine, ...]:
        """Every VM of the cluster, the load balancer's last."""
        found = self.machines
        all_of_them = (*found.control_planes, *found.workers, found.load_balancer)
        return tuple(filter(None, all_of_them))

    def nic_mtus(self) -> Sequence[int]:
        """What the pods' MTU is computed from, the same for a cluster's whole life."""
        if self.params.cluster.network.mtu != option_types.NODES:
            return ()
        return self.records.nic_mtus() or ()

    # The cluster's API

    def seen(self) -> NodeObjects:
        """The cluster's Node objects by name."""
        return {node.name: node for node in self.cluster().nodes()}

    def cluster(self) -> ports.Cluster:
        """The cluster through the first control plane that accepts a login.

        :raises ConnectError: none does.
        """
        planes = self.planes() if self.ready_first else ()
        for plane in planes if len(planes) > 1 else ():
            try:
                cluster = self.site.cluster(plane)
                if not cluster.api_problem():
                    return cluster
            except errors.ConnectError as error:
                LOG.warning("The next control plane is asked: %s", error)
        return self.through(self.site.cluster)

    def through(self, reach: Callable[[Node], Reached]) -> Reached:
        """What the first control plane that accepts a login leads to.

        :raises ConnectError: none does.
        """
        planes = list(self.planes())
        while True:
            plane = planes.pop(0)
            if plane.server_id in self.silent_planes and planes:
                continue
            try:
                return reach(plane)
            except errors.ConnectError as error:
                self.silent_planes.add(plane.server_id)
                if not planes:
                    raise
                LOG.warning("The next control plane is asked: %s", error)

    def endpoint(self) -> str:
        """URL at which Tacker reaches the cluster's API."""
        machine, wanted = self.machines.load_balancer, self.params.load_balancer
        if machine and wanted:
            return api_url(machine.ssh_address, wanted.api_port)
        return api_url(self.planes()[0].ssh_address, API_PORT)

    # The load balancer

    def balancing(self) -> Balancing | None:
        """The load balancer, or None where the request has none."""
        machine, wanted = self.machines.load_balancer, self.params.load_balancer
        if machine is None or wanted is None:
            return None
        return Balancing(self.site, self.params, machine, wanted)

    def balancer(self) -> Balancing:
        """The load balancer of a request that has one."""
        balancing = self.balancing()
        if balancing is None:
            raise errors.ClusterError(detail="No load balancer was asked for.")
        return balancing

    def expect_balancer(self) -> None:
        """Have the load balancer logged in to by the time when it is needed."""
        machine = self.machines.load_balancer
        if machine is not None and self.params.load_balancer is not None:
            self.site.expect(machine)
