# SPDX-License-Identifier: Apache-2.0
"""What operations need from the outside, as Protocols: a small one for each noun.

:mod:`tacker_k8s_mgmt.remote` and :mod:`tacker_k8s_mgmt.hooks` implement them; tests use
fakes. Nothing in this package imports an effect.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, Call
from tacker_k8s_mgmt.model.node_marks import NodeMarks
from tacker_k8s_mgmt.model.nodes import Machine, Node
from tacker_k8s_mgmt.model.placement import Workload
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest, Progress
from tacker_k8s_mgmt.model.pod_network import Measurement
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.model.vim import ClusterAccess, HelmLogin, NodeObject
from tacker_k8s_mgmt.operations.application_ports import Applications
from tacker_k8s_mgmt.operations.object_ports import Manifests, ManifestsReader
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tacker_k8s_mgmt.status.facts import Count, Vim
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import Machines


class Journal(Protocol):
    """Where the steps of an operation are recorded."""

    def record(self, event: str, **fields: object) -> None: ...


class Clock(Protocol):
    """Time; tests need not wait."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Records(Protocol):
    """The cluster's directory on the Ansible server, read-only."""

    @property
    def path(self) -> str: ...

    def owner(self) -> str | None: ...

    def read(self, name: str) -> str | None: ...


class WorkDir(Records, Protocol):
    """The cluster's directory on the Ansible server."""

    def claim(self) -> None: ...

    def write(self, name: str, text: str) -> bool: ...

    def clear(self, keep: Sequence[str] = ()) -> bool: ...

    def remove(self) -> bool: ...


class Playbooks(Protocol):
    """Playbook runs of this cluster on the Ansible server."""

    def done(self, request: PlaybookRequest) -> bool: ...

    def live(self, request: PlaybookRequest) -> bool: ...

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Progress], None],
    ) -> None: ...

    def stop(self) -> bool: ...


class AnsibleServer(Protocol):
    """The cluster's directory, its lock and its playbook runs."""

    def lock(self, patience: float | None = None, within: float = 0.0) -> None: ...

    @property
    def workdir(self) -> WorkDir: ...

    @property
    def playbooks(self) -> Playbooks: ...


class NodeLister(Protocol):
    """The cluster's nodes, read-only."""

    def nodes(self) -> Sequence[NodeObject]: ...


class MarksReader(Protocol):
    """What the Node objects have of their settings, read-only."""

    def marks(self) -> Sequence[NodeMarks]: ...


class ServiceReader(Protocol):
    """The Services of the CNFs on the cluster, read-only."""

    def services(self, namespace: str) -> Sequence[Service]: ...


class Reader(NodeLister, MarksReader, ServiceReader, Protocol):
    """The cluster's nodes with their settings, and its Services, read-only."""


class Marks(MarksReader, Protocol):
    """The settings of the Node objects, and the workloads that need their labels."""

    def mark(self, changes: Mapping[str, Mapping[str, Any]]) -> None: ...

    def workloads(self) -> Sequence[Workload]: ...


class Nodes(NodeLister, Protocol):
    """The cluster's nodes and the pods on them."""

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]: ...

    def uncordon(self, names: Sequence[str]) -> None: ...

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None: ...

    def evict_dead(self, names: Sequence[str]) -> None: ...

    def remove_nodes(self, names: Sequence[str]) -> None: ...


class ApiServer(Protocol):
    """The API server of one control plane, and access to the cluster through it."""

    def version(self) -> str: ...

    def api_problem(self) -> str: ...

    def uncertified(self, addresses: Sequence[str]) -> tuple[str, ...]: ...

    def admin_access(self) -> ClusterAccess: ...

    def move_cluster_info(self, address: str, server: str) -> bool: ...


class Services(ServiceReader, Protocol):
    """The Services of the CNFs on the cluster."""

    def publish(self, service: Service, address: str) -> None: ...


class Cluster(Nodes, Marks, ApiServer, Services, Protocol):
    """The cluster through one of its control planes."""


class PodNetwork(Protocol):
    """The pod network through one of the control planes."""

    def measure(self, nodes: Sequence[Node], hub: Node) -> Sequence[Measurement]: ...


class Etcd(Protocol):
    """etcd through one of the control planes."""

    def members(self) -> Sequence[EtcdMember]: ...

    def run(self, *command: str, limit: float = ...) -> str: ...


class StatusReader(Protocol):
    """The load balancer, read-only."""

    def status(self) -> BalancerStatus: ...


class Balancer(StatusReader, Protocol):
    """The external load balancer."""

    def call(self, call: Call) -> str: ...


class HelmHost(Protocol):
    """A control plane on which Tacker runs Helm."""

    def prepare(self, password: SecretStr, access: ClusterAccess) -> bool: ...

    def verify(self, password: SecretStr) -> None: ...

    def charts(self) -> str: ...

    def restore(self, charts: str) -> None: ...


@dataclass(frozen=True)
class VimSpec:
    """The cluster as it is registered in Tacker.

    :param helm: None: Tacker needs no login to run Helm, or cannot.
    :param tenant: whose VIM it is; "" for the cluster's own.
    :param uid: of the cluster's namespace ``kube-system``; "" if it is not known.
    """

    name: str
    auth_url: str
    token: SecretStr
    ca_certificate: str
    helm: HelmLogin | None = None
    tenant: str = ""
    uid: str = ""


class VimFinder(Protocol):
    """Tacker's VIM registry, read-only."""

    def registered(self) -> tuple[Vim, ...]: ...

    def of_tenants(self) -> Mapping[str, Vim] | None:
        """The VIMs of tenants by their names; None if Tacker can keep none."""

    def has_login(self, tenant: str, access: ClusterAccess) -> bool: ...


class Vims(VimFinder, Protocol):
    """Tacker's VIM registry, for one VNF instance."""

    def name_taken(self, name: str, tenant: str = "") -> bool: ...

    def helm_password(self) -> SecretStr | None: ...

    def register(self, spec: VimSpec) -> str: ...

    def move_helm(self, hosts: Sequence[str]) -> bool: ...

    def in_use(self, tenant: str | None = None) -> bool:
        """Whether a VNF runs on a tenant's VIM; None: on any of the cluster."""

    def remove(self) -> bool: ...

    def remove_tenant(self, tenant: str) -> None: ...


class Stack(Protocol):
    """The VNF's Heat stack."""

    def machines(self) -> Machines: ...

    def attachments(self) -> Sequence[Attachment]: ...

    def fixed_groups(self) -> Sequence[str]: ...


class Preconditions(Protocol):
    """The VNF package and the Ansible server, and what they lack."""

    def package_findings(self) -> Sequence[str]: ...

    def base_hot_findings(
        self, flavour_id: str, user_data: str = ""
    ) -> Sequence[str]: ...

    def server_findings(self) -> Sequence[str]: ...

    def package_files(self, path: str) -> Mapping[str, bytes]: ...


@dataclass(frozen=True)
class MachineIdentity:
    """The identity of a VM, to compare with what its kubelet reports.

    :param machine_id: ``/etc/machine-id``.
    :param boot_id: ``/proc/sys/kernel/random/boot_id``.
    :param nic_mtu: bytes, of its interface on the cluster's network; 0: not known.
    :param ahead: at least so many seconds its clock is before that of this host;
        negative if it is behind.
    """

    machine_id: str
    boot_id: str
    nic_mtu: int = 0
    ahead: float = 0.0


class Vms(Protocol):
    """The VMs over SSH."""

    def wait_reachable(self, machines: Sequence[Machine]) -> None: ...

    def unusable(
        self, nodes: Sequence[Node], renewed: Collection[str] = ()
    ) -> Mapping[str, errors.RemoteError]:
        """Why Ansible cannot use nodes, by their names; only of those that it cannot.

        :param renewed: names of workers that are logged in to as the request wants.
        """

    def clocks(self) -> Mapping[str, float]:
        """The seconds by which the clocks of VMs are ahead, by server id."""

    def identity(self, node: Node, *, again: bool = False) -> MachineIdentity: ...

    def restart_kubelets(self, nodes: Sequence[Node]) -> None: ...

    def trust_registries(self, nodes: Sequence[Node]) -> None: ...

    def expect(self, machine: Machine) -> None: ...


class HostKeys(Protocol):
    """The recorded SSH host keys of the VMs, and their Ansible facts."""

    def forget(self, hosts: Sequence[str], facts: Sequence[str]) -> None: ...

    def host_keys(self, host: str) -> Sequence[Sequence[str]]: ...

    def record_host_keys(self, host: str, keys: Sequence[Sequence[str]]) -> None: ...

    def save_host_keys(self) -> None: ...


class Site(Stack, Preconditions, Vms, HostKeys, AnsibleServer, Protocol):
    """Everything that an operation on one VNF instance may use."""

    @property
    def vims(self) -> Vims: ...

    def cluster(self, control_plane: Node) -> Cluster: ...

    def etcd(self, control_plane: Node) -> Etcd: ...

    def pod_network(self, control_plane: Node) -> PodNetwork: ...

    def helm(self, control_plane: Node) -> HelmHost: ...

    def applications(self, control_plane: Node) -> Applications: ...

    def manifests(self, control_plane: Node) -> Manifests: ...

    def balancer(self, machine: Machine) -> Balancer: ...


class View(Protocol):
    """The same, read-only."""

    def machines(self) -> Machines: ...

    def counts(self) -> Sequence[Count]: ...

    def clocks_of(self, nodes: Sequence[Node]) -> Mapping[str, float]: ...

    @property
    def workdir(self) -> Records: ...

    @property
    def vims(self) -> VimFinder: ...

    def cluster(self, control_plane: Node) -> Reader: ...

    def manifests(self, control_plane: Node) -> ManifestsReader: ...

    def applications(self, control_plane: Node) -> Applications: ...

    def balancer(self, machine: Machine) -> StatusReader: ...
