# SPDX-License-Identifier: Apache-2.0
"""What the parts of a fake site read and change."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.node_settings.marks import NodeMetadata, Workload
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.model.nodes import Count, Role
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.model.vim import VimSpec
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize
from tests.helpers.fakes.nodes import FakeNode, machine


@dataclass(frozen=True)
class Balanced:
    """What the load balancer was installed with."""

    api_port: int
    control_planes: tuple[tuple[str, str], ...]
    workers: tuple[tuple[str, str], ...]


class SiteState:
    """One control plane, two workers, a load balancer; no cluster yet.

    :ivar faults: calls (by the name that :meth:`touch` gets) that fail once each.
    :ivar error: what they fail with, in place of a plain RemoteError.
    :ivar changes: what was really changed, in order.
    :ivar inventories: the inventory as each of the runs found it.
    :ivar workers: the worker VMs in Heat; each is in a stack ``member-<server id>``.
    :ivar unfinished: ids of servers that Heat does not call complete.
    :ivar group_status: of the workers' group in Heat.
    :ivar marked: ids of servers in members that are marked unhealthy as a whole.
    :ivar heal_changes: by VDU, what Tacker's v1 heal would change of all its VMs.
    :ivar dead: ids of servers that do not answer.
    :ivar unfit: why Ansible cannot use servers that answer, by their ids.
    :ivar ahead: seconds by which their clocks are ahead, by their ids.
    :ivar tried: ids of servers that were logged in to.
    :ivar pods: names of pods by the node that they are on.
    :ivar pod_specs: what pods demand of nodes, by name, where it is anything.
    :ivar etcd_scripts: control planes with kubespray's script for certificates of etcd.
    :ivar certified: addresses that the API server's certificate is for.
    :ivar looks_for_certificate: how often it still shows its former certificate.
    :ivar expected: ids of servers that were logged in to beforehand.
    :ivar known: the host key of each address, which is the id of its server.
    :ivar stored: the same, as last stored on the Ansible server.
    :ivar present: the ports in the Heat stack.
    :ivar fixed: groups that keep Tacker from changing them.
    :ivar pod_probes: the hub and the other nodes of each look at the pod network.
    :ivar pod_sizes: size of what arrives between pods, where it is not everything.
    :ivar pod_service: why pods do not reach the API's Service, "" if they do.
    :ivar budget: what keeps pods from leaving, "" for nothing.
    :ivar metadata: of the VNF instance, which each operation gets; likewise *patch*,
        the names of the entries that a request changes, and *vnfc_servers*.
    :ivar features: of the cluster, likewise.
    :ivar marks: the Node objects' labels and so on, where there are any.
    :ivar workloads: those that are bound to nodes.
    :ivar package_content: the files of the VNF package, by path.
    :ivar tenants_in_use: names of the tenants on whose VIM a VNF runs.
    :ivar objects: other objects in the cluster, by kind, namespace and name.
    :ivar unlisted: why kinds cannot be listed, by their names.
    :ivar conflicts: how often others change a Node object before it can be changed.
    """

    def __init__(self, load_balancer: bool = True) -> None:
        self._begin_stack(load_balancer)
        self.features = FEATURES
        self.faults: set[str] = set()
        self.error: Exception | None = None
        self.calls: list[str] = []
        self.changes: list[str] = []
        self.owner: str | None = None
        self.files: dict[str, str] = {}
        self.ran = ""
        self.running = ""
        self.runs: list[PlaybookRequest] = []
        self.inventories: list[str] = []
        self.nic_mtu = 1450
        self.version = "v1.31.9"
        self.dead: set[str] = set()
        self.unfit: dict[str, errors.RemoteError] = {}
        self.ahead: dict[str, float] = {}
        self.tried: set[str] = set()
        self.cluster_nodes: list[FakeNode] = []
        self.cordoned: frozenset[str] = frozenset()
        self.pods: dict[str, list[str]] = {}
        self.pod_specs: dict[str, dict[str, Any]] = {}
        self.budget = ""
        self.services: list[Service] = []
        self.vim: VimSpec | None = None
        self.vim_in_use = False
        self.tenant_vims: dict[str, VimSpec] = {}
        self.tenants_in_use: set[str] = set()
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.unlisted: dict[str, str] = {}
        #: Versions and kinds that the API server does not have.
        self.unserved: set[tuple[str, str]] = set()
        self.helm_password: SecretStr | None = SecretStr("of-helm")
        self.helm_hosts: dict[str, str] = {}
        self.foreign_vims: set[str] = set()
        self.counted: tuple[Count, ...] = ()
        self.balanced: Balanced | None = None
        self.routes: frozenset[tuple[str, str]] = frozenset()
        self.exposed: tuple[ExposedService, ...] = ()
        self.balancer_runs = True
        self.package: tuple[str, ...] = ()
        self.base_hot: tuple[str, ...] = ()
        self.package_content: dict[str, bytes] = {}
        self.server: tuple[str, ...] = ()
        self.forgotten: list[str] = []
        self.restarted: list[str] = []
        #: Ids of the servers that were made to trust the private registries.
        self.trusting: set[str] = set()
        self.expected: list[str] = []
        self.certified: frozenset[str] = frozenset()
        self.etcd_scripts: frozenset[str] = frozenset()
        self.looks_for_certificate = 0
        self.known: dict[str, str] = {}
        self.stored: dict[str, str] = {}
        self._begin_settings()

    def _begin_settings(self) -> None:
        """What nodes have of the operator, and pods of the measurement."""
        self.pod_probes: list[tuple[str, list[str]]] = []
        self.pod_sizes: dict[tuple[str, str], int] = {}
        self.pod_service = ""
        self.metadata: dict[str, str] = {}
        self.patch: Collection[str] = ()
        self.vnfc_servers: dict[str, str] = {}
        self.marks: dict[str, NodeMetadata] = {}
        self.workloads: list[Workload] = []
        self.conflicts = 0

    def _begin_stack(self, load_balancer: bool) -> None:
        """What Heat has."""
        self.control_planes = [machine(Role.CONTROL_PLANE, 4)]
        self.workers = [machine(Role.WORKER, 55), machine(Role.WORKER, 5)]
        self.load_balancer = machine(Role.LOAD_BALANCER, 9) if load_balancer else None
        self.unfinished: set[str] = set()
        self.group_status = "CREATE_COMPLETE"
        self.marked: set[str] = set()
        self.groups: dict[str, GroupSize] = {}
        self.heal_changes: dict[str, list[str]] = {}
        self.present: list[Attachment] = []
        self.fixed: tuple[str, ...] = ()

    def touch(self, call: str) -> None:
        self.calls.append(call)
        if call in self.faults:
            self.faults.discard(call)
            raise self.error or errors.RemoteError(detail=f"fault in {call}")

    def change(self, name: str, value: Any) -> None:
        if getattr(self, name) != value:
            self.changes.append(name)
            setattr(self, name, value)

    def remove(self, name: str) -> None:
        """Take a Node object away, if it is there."""
        kept = [node for node in self.cluster_nodes if node.name != name]
        self.change("cluster_nodes", kept)
        self.marks.pop(name, None)
        self.cordoned -= {name}

    def kill(self, server: str) -> None:
        """The VM does not answer any more, and its kubelet does not report."""
        self.dead.add(server)
        self.cluster_nodes = [
            replace(node, ready=False, reason="no word")
            if node.machine_id == server
            else node
            for node in self.cluster_nodes
        ]

    @property
    def members(self) -> list[str]:
        """Names of the cluster's nodes."""
        return sorted(node.name for node in self.cluster_nodes)

    @property
    def listed(self) -> list[str]:
        """Names in the inventory."""
        return sorted(node.name for node in inventory.parse(self.files["hosts.yaml"]))
