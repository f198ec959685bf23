"""What the order of work needs from the world, as Protocols.

The real ones live in :mod:`tacker_k8s_mgmt.remote` and :mod:`tacker_k8s_mgmt.hooks`;
tests use fakes. Nothing here or in the operations imports an effect.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr

from tacker_k8s_mgmt.model.cluster import ClusterAccess, NodeObject
from tacker_k8s_mgmt.model.drain import DrainPolicy
from tacker_k8s_mgmt.model.load_balancer import (
    BalancerSpec,
    BalancerStatus,
    ExposedService,
)
from tacker_k8s_mgmt.model.nodes import Machine, Node
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest, Progress
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.status.facts import Count, Vim
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import Machines


class Journal(Protocol):
    """Where the steps of an operation are recorded."""

    def record(self, event: str, **fields: object) -> None: ...


class Clock(Protocol):
    """Time, so that tests need not wait."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Records(Protocol):
    """The cluster's directory, to be read only."""

    @property
    def path(self) -> str: ...

    def owner(self) -> str | None: ...

    def read(self, name: str) -> str | None: ...


class WorkDir(Records, Protocol):
    """The cluster's own directory on the Ansible server."""

    def claim(self) -> None: ...

    def write(self, name: str, text: str) -> bool: ...

    def remove(self) -> bool: ...


class Playbooks(Protocol):
    """Playbook runs for this cluster on the Ansible server."""

    def done(self, request: PlaybookRequest) -> bool: ...

    def live(self, request: PlaybookRequest) -> bool: ...

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Progress], None],
    ) -> None: ...

    def stop(self) -> bool: ...


class NodeLister(Protocol):
    """The cluster, to be read only."""

    def nodes(self) -> Sequence[NodeObject]: ...


class Cluster(NodeLister, Protocol):
    """The cluster as seen from a control-plane node."""

    def version(self) -> str: ...

    def admin_access(self) -> ClusterAccess: ...

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]: ...

    def uncordon(self, names: Sequence[str]) -> None: ...

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None: ...

    def evict_dead(self, names: Sequence[str]) -> None: ...

    def remove_nodes(self, names: Sequence[str]) -> None: ...

    def api_problem(self) -> str: ...

    def move_cluster_info(self, address: str, server: str) -> bool: ...

    def uncertified(self, addresses: Sequence[str]) -> tuple[str, ...]: ...


class Etcd(Protocol):
    """etcd as seen from a control-plane node."""

    def members(self) -> Sequence[EtcdMember]: ...

    def remove(self, member_id: str) -> None: ...


class StatusReader(Protocol):
    """The load balancer, to be read only."""

    def status(self) -> BalancerStatus: ...


class Balancer(StatusReader, Protocol):
    """The external load balancer."""

    def install(self, spec: BalancerSpec) -> None: ...

    def add_workers(self, workers: Sequence[tuple[str, str]]) -> None: ...

    def remove_workers(self, names: Sequence[str]) -> None: ...

    def expose(self, services: Sequence[ExposedService]) -> None: ...


@dataclass(frozen=True)
class VimSpec:
    """What is registered in Tacker for the cluster."""

    name: str
    auth_url: str
    token: SecretStr
    ca_certificate: str


class VimFinder(Protocol):
    """Tacker's VIM registry, to be read only."""

    def registered(self) -> tuple[Vim, ...]: ...


class Vims(VimFinder, Protocol):
    """Tacker's VIM registry, seen from one VNF instance."""

    def name_taken(self, name: str) -> bool: ...

    def register(self, spec: VimSpec) -> str: ...

    def in_use(self) -> bool: ...

    def remove(self) -> bool: ...


@dataclass(frozen=True)
class MachineIdentity:
    """What a VM says it is, to compare with what its kubelet says.

    :param machine_id: ``/etc/machine-id``.
    :param boot_id: ``/proc/sys/kernel/random/boot_id``.
    :param nic_mtu: bytes, of its interface on the cluster's network; 0: not known.
    """

    machine_id: str
    boot_id: str
    nic_mtu: int = 0


class Site(Protocol):
    """Everything that an operation on one VNF instance may touch."""

    def lock(self, patience: float | None = None) -> None: ...

    def machines(self) -> Machines: ...

    def attachments(self) -> Sequence[Attachment]: ...

    def fixed_groups(self) -> Sequence[str]: ...

    def package_findings(self) -> Sequence[str]: ...

    def server_findings(self) -> Sequence[str]: ...

    def wait_reachable(self, machines: Sequence[Machine]) -> None: ...

    def unreachable(self, nodes: Sequence[Node]) -> tuple[str, ...]: ...

    def identity(self, node: Node) -> MachineIdentity: ...

    def forget(self, hosts: Sequence[str], facts: Sequence[str]) -> None: ...

    def host_keys(self, host: str) -> Sequence[Sequence[str]]: ...

    def record_host_keys(self, host: str, keys: Sequence[Sequence[str]]) -> None: ...

    def save_host_keys(self) -> None: ...

    @property
    def workdir(self) -> WorkDir: ...

    @property
    def playbooks(self) -> Playbooks: ...

    @property
    def vims(self) -> Vims: ...

    def cluster(self, control_plane: Node) -> Cluster: ...

    def etcd(self, control_plane: Node) -> Etcd: ...

    def expect(self, machine: Machine) -> None: ...

    def balancer(self, machine: Machine) -> Balancer: ...


class View(Protocol):
    """A site that is looked at and never changed."""

    def machines(self) -> Machines: ...

    def counts(self) -> Sequence[Count]: ...

    @property
    def workdir(self) -> Records: ...

    @property
    def vims(self) -> VimFinder: ...

    def cluster(self, control_plane: Node) -> NodeLister: ...

    def balancer(self, machine: Machine) -> StatusReader: ...
