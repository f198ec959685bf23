# SPDX-License-Identifier: Apache-2.0
"""What an operation works with, and what it knows about its cluster."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.config import Limits
from tacker_k8s_mgmt.kubespray import inventory, variables
from tacker_k8s_mgmt.model.nodes import (
    Machine,
    Node,
    NodeObject,
    Role,
    api_url,
    of_role,
)
from tacker_k8s_mgmt.model.playbooks import Progress
from tacker_k8s_mgmt.operations.feature import Feature, Work
from tacker_k8s_mgmt.operations.records import ClusterRecords, Healing, nodes_in
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.timing import Clock
from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.request.reader import API_PORT, ClusterRequest
from tacker_k8s_mgmt.topology.heat_stack import Machines

LOG = logging.getLogger(__name__)

Client = TypeVar("Client")
#: The cluster's Node objects by name.
NodeObjects = Mapping[str, NodeObject]


@dataclass(frozen=True)
class OperationContext:
    """What an operation on one VNF instance's cluster works with.

    :param on_progress: receives the progress of a playbook.
    :param metadata: of the VNF instance, as the operation leaves them.
    :param patch: the names of the entries that the request changes.
    :param vnfcs: the server of each VNFC, by the VNFC's id.
    :param features: in the order of their work.
    """

    params: ClusterRequest
    vnf_id: str
    site: Site
    clock: Clock
    limits: Limits
    on_progress: Callable[[Progress], None]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    patch: Collection[str] = ()
    vnfcs: Mapping[str, str] = field(default_factory=dict)
    features: tuple[Feature, ...] = ()


@dataclass
class ClusterState:
    """The cluster as the operation knows it; its steps change it.

    :param machines: the VMs in the Heat stack.
    :param nodes: the nodes that the cluster has or is to have.
    :param returning: the control plane that a heal took out, if its VM can join again.
    :param lost: names of the control planes whose VM is gone, or was rebuilt without a
        heal.
    :param unusable: names of the nodes that Ansible cannot use.
    :param unreachable_control_planes: server ids of those that accepted no login.
    :param members: server ids of the full members when the operation began.
    :param healing: the heal that is under way or was abandoned.
    :param balancer: the load balancer as recorded, if it is.
    :param inputs: texts of inventory and variables as last written.
    """

    deps: OperationContext
    machines: Machines = field(default_factory=Machines)
    nodes: tuple[Node, ...] = ()
    returning: tuple[Node, ...] = ()
    lost: frozenset[str] = frozenset()
    unusable: frozenset[str] = frozenset()
    unreachable_control_planes: set[str] = field(default_factory=set)
    members: frozenset[str] = frozenset()
    healing: Healing = field(default_factory=Healing)
    balancer: Machine | None = None
    inputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        #: What the features do in this operation.
        self.works: tuple[Work, ...] = tuple(
            feature.work(self) for feature in self.deps.features
        )

    @property
    def params(self) -> ClusterRequest:
        return self.deps.params

    @property
    def site(self) -> Site:
        """Everything that the operation may use."""
        return self.deps.site

    @property
    def records(self) -> ClusterRecords:
        """The files of the cluster's directory."""
        return ClusterRecords(self.site, self.params.ansible.host)

    def write_json(self, name: str, value: object) -> None:
        """Write one of the cluster's records."""
        self.site.workdir.write(name, json.dumps(value, indent=2) + "\n")

    # Nodes and VMs

    def inventory_nodes(self) -> tuple[Node, ...]:
        """The nodes of the inventory on the Ansible server."""
        return nodes_in(self.records.last_inventory())

    def require_inventory(self) -> tuple[Node, ...]:
        """As :meth:`inventory_nodes`, of an existing cluster.

        :raises ClusterError: there is no inventory.
        """
        nodes = self.inventory_nodes()
        if not nodes:
            raise self._unlisted("There is no inventory of this cluster")
        return nodes

    def control_planes(self) -> tuple[Node, ...]:
        """The control planes among the nodes.

        :raises ClusterError: the nodes are not known yet, or there are none.
        """
        if planes := of_role(self.nodes, Role.CONTROL_PLANE):
            return planes
        raise self._unlisted(f"No control plane was read from {inventory.FILE_NAME}")

    def _unlisted(self, what: str) -> errors.ClusterError:
        operators = (
            "If Tacker's operator has changed [k8s_mgmt] ansible_host or "
            "ansible_inventory_root of tacker.conf since, the directory has to be "
            "copied from the former place. Otherwise: "
            if self.params.operators_server
            else ""
        )
        return errors.ClusterError(
            detail=f"{what} in {self.site.workdir.path} on {self.params.ansible.host}.",
            hint=f"{operators}Restore {inventory.FILE_NAME} there, or heal the whole "
            "VNF, which rebuilds the cluster.",
        )

    def nic_mtus(self) -> Sequence[int]:
        """The recorded MTU of the interfaces, where the MTU of the pods follows it."""
        if self.params.cluster.network.mtu != fields.NODES:
            return ()
        return self.records.nic_mtus() or ()

    # Features

    def in_service(self, node: Node) -> bool:
        """Whether no feature takes this node out of service."""
        return all(work.in_service(node) for work in self.works)

    def terminating(self, forced: bool) -> tuple[Step, ...]:
        """The steps of the features while the cluster is still there.

        :param forced: whether the termination continues whatever uses the cluster.
        """
        checks = () if forced else (one.termination_checks() for one in self.works)
        work = (one.terminating() for one in self.works)
        return tuple(chain.from_iterable((*checks, *work)))

    def joined(
        self,
        new: Callable[[], Sequence[Node]],
        what: str,
        without: Callable[[], Collection[str]] = tuple,
    ) -> tuple[Step, ...]:
        """The steps of the features for new nodes; see :meth:`.Work.joined`."""
        found = (work.joined(new, what, without) for work in self.works)
        return tuple(chain.from_iterable(found))

    def built(self) -> tuple[Step, ...]:
        """The steps of the features for a new cluster."""
        return tuple(chain.from_iterable(work.built() for work in self.works))

    def balancer_replaced(
        self, unless: Callable[[], bool] | None = None
    ) -> tuple[Step, ...]:
        """The steps of the features for a load balancer that may be new."""
        found = (work.balancer_replaced(unless) for work in self.works)
        return tuple(chain.from_iterable(found))

    # The cluster's API

    def node_objects(self) -> NodeObjects:
        """The cluster's Node objects by name."""
        return {node.name: node for node in self.cluster().nodes()}

    def cluster(self) -> ClusterApi:
        """The cluster through the first control plane whose own API server is ready.

        Without one, through the first that accepts a login.

        :raises RemoteError: none does.
        """
        return self._through_ready(self.site.cluster)

    def manifests(self) -> Manifests:
        """The objects in the cluster, likewise."""
        return self._through_ready(self.site.manifests)

    def client(self, connect: Callable[[Site, Node], Client]) -> Client:
        """What a feature asks the cluster with, likewise.

        :param connect: makes it, of the site and a control plane.
        """
        return self._through_ready(partial(self.site.client, connect))

    def _through_ready(self, connect: Callable[[Node], Client]) -> Client:
        planes = self.control_planes()
        for plane in planes if len(planes) > 1 else ():
            if plane.server_id not in self.unreachable_control_planes and self._serves(
                plane
            ):
                return connect(plane)
        return self.via_control_plane(connect)

    def _serves(self, plane: Node) -> bool:
        try:
            problem = self.site.cluster(plane).api_readiness()
        except errors.RemoteError as error:
            problem = str(error)
        if problem:
            LOG.warning("The API is not reached through %s: %s", plane.name, problem)
        return not problem

    def led(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """These nodes, with a control plane first that can lead a playbook run.

        kubespray has the first host of its groups do a part of the work for others,
        whatever the run is limited to.
        """
        planes = of_role(nodes, Role.CONTROL_PLANE)
        able = [
            plane
            for plane in planes
            if plane.server_id in self.members - self.unreachable_control_planes
            and plane.name not in self.unusable
        ]
        if len(planes) < 2 or not able:
            return nodes
        leader = next(filter(self._serves, able), able[0])
        if leader == planes[0]:
            return nodes
        return (leader, *(node for node in nodes if node != leader))

    def etcd_leader(self) -> str:
        """The control plane that makes certificates of etcd for workers.

        :returns: its name; "" if workers get none, or there is one control plane only.
        """
        hosts, extra_vars = self.inputs
        if not variables.give_workers_etcd(json.loads(extra_vars)):
            return ""  # without reading the inventory, which is long
        planes = of_role(inventory.parse(hosts), Role.CONTROL_PLANE)
        return planes[0].name if len(planes) > 1 else ""

    def via_control_plane(self, connect: Callable[[Node], Client]) -> Client:
        """A client connected to the first control plane that accepts a login.

        :raises RemoteError: none does.
        :raises ClusterError: no control plane is known.
        """
        planes = list(self.control_planes())
        while True:
            plane = planes.pop(0)
            if plane.server_id in self.unreachable_control_planes and planes:
                continue
            try:
                return connect(plane)
            except errors.RemoteError as error:
                self.unreachable_control_planes.add(plane.server_id)
                if not planes:
                    raise
                LOG.warning("The next control plane is asked: %s", error)

    def endpoint(self) -> str:
        """The URL at which Tacker reaches the cluster's API."""
        machine, wanted = self.machines.load_balancer, self.params.load_balancer
        if machine and wanted:
            return api_url(machine.ssh_address, wanted.api_port)
        return api_url(self.control_planes()[0].ssh_address, API_PORT)
