# SPDX-License-Identifier: Apache-2.0
"""VMs, and the nodes of the cluster on them."""

import enum
import itertools
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.model import network_plugins, untrusted

#: The taint of a node in maintenance, key and effect.
MAINTENANCE_TAINT = ("tacker-k8s-mgmt/maintenance", "NoExecute")
#: The annotation of a node that an operation of this driver has cordoned.
CORDONED = "tacker-k8s-mgmt/cordoned"
_PORTS = MappingProxyType({"https": 443, "http": 80})


class Role(enum.Enum):
    """What a VM is for."""

    CONTROL_PLANE = "control-plane"
    WORKER = "worker"
    LOAD_BALANCER = "load-balancer"


@dataclass(frozen=True)
class RoleSpec:
    """What sets the VMs of a role apart.

    :param parameter: the structure of the request that selects them.
    :param vdu: a pattern in the names of their VDUs.
    :param groups: of kubespray's inventory; none where they are no nodes.
    :param ports: at which the nodes of other roles, and the load balancer if it has
        routes to them, reach them by TCP; each with what for.
    :param login: begins the names of the structure's attributes for the login.
    :param route: the option with which the load balancer's script gets them.
    :param least: how many complete ones there always have to be; None where their
        number is fixed, and each has to be complete for an instantiation.
    """

    parameter: str
    vdu: str
    groups: tuple[str, ...] = ()
    ports: tuple[tuple[int, str], ...] = ()
    login: str = ""
    route: str = ""
    least: int | None = None

    @property
    def scales(self) -> bool:
        """Whether VMs of it may be added, taken out and incomplete."""
        return self.least is not None

    @property
    def has_etcd(self) -> bool:
        """Whether its nodes are members of etcd."""
        return "etcd" in self.groups

    @property
    def joins_by_scale(self) -> bool:
        """Whether kubespray's ``scale.yml`` makes its VMs nodes of a cluster."""
        return "kube_node" in self.groups


#: The roles in the order of their VMs.
ROLES: Mapping[Role, RoleSpec] = MappingProxyType(
    {
        Role.CONTROL_PLANE: RoleSpec(
            "master_node",
            "master|control",
            ("kube_control_plane", "etcd"),
            ((6443, "at which the nodes and the load balancer reach the API"),),
            route="--control-plane",
        ),
        Role.WORKER: RoleSpec(
            "worker_node", "work|node", ("kube_node",), route="--worker", least=0
        ),
        Role.LOAD_BALANCER: RoleSpec("external_lb_param", "lb|balanc", login="ssh_"),
    }
)


def role_of(vdu: str) -> Role | None:
    """The role that a VDU's name tells; None for none.

    What is in front of nodes may be named after them, so its words count first.
    """
    by_name = sorted(ROLES, key=lambda role: bool(ROLES[role].groups))
    fits = (r for r in by_name if re.search(ROLES[r].vdu, vdu, re.IGNORECASE))
    return next(fits, None)


@dataclass(frozen=True)
class Machine:
    """A VM as Heat describes it.

    :param server_id: id of the Nova server.
    :param ssh_address: its address for Tacker and the Ansible server.
    :param address: its address on the cluster's network.
    :param aspect_id: its scaling aspect, if that has labels of its own; else "".
    :param compute_host: its compute host as a label has it; "" without such a label.
    :param ssh_addresses: all addresses of its port for SSH, of the same family; none
        where Heat was not asked.
    :param addresses: likewise, of its port on the cluster's network.
    """

    role: Role
    server_id: str
    ssh_address: str
    address: str
    aspect_id: str = ""
    compute_host: str = field(default="", compare=False)
    ssh_addresses: tuple[str, ...] = field(default=(), compare=False, repr=False)
    addresses: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_control_plane(self) -> bool:
        return self.role is Role.CONTROL_PLANE


@dataclass(frozen=True)
class Node(Machine):
    """A VM with its names in the cluster, which it keeps for life.

    :param name: name in the inventory and in Kubernetes, an RFC 1123 label.
    :param etcd_member_name: "" on nodes that are no control planes.
    """

    name: str = field(kw_only=True)
    etcd_member_name: str = field(default="", kw_only=True)


_M = TypeVar("_M", bound=Machine)


def of_role(machines: Sequence[_M], role: Role) -> tuple[_M, ...]:
    """The machines or nodes of a role, in their order."""
    return tuple(machine for machine in machines if machine.role is role)


def without_planes(machines: Sequence[_M]) -> tuple[_M, ...]:
    """The machines or nodes that are no control planes, in their order."""
    return tuple(machine for machine in machines if not machine.is_control_plane)


def names_of(nodes: Sequence[Node]) -> str:
    """The nodes' names, as a list in a sentence."""
    return ", ".join(node.name for node in nodes)


def api_url(address: str, port: int) -> str:
    """The URL of an API server; an IPv6 address gets its brackets."""
    host = f"[{address}]" if ":" in address else address
    return f"https://{host}:{port}"


def one_spelling(host: str) -> str:
    """A host's name or address in the spelling that all others are compared in."""
    name = host.strip().lower().removesuffix(".")
    try:
        return str(network_plugins.address(name))
    except ValueError:
        return name


def same_server(url: str, other: str) -> bool:
    """Whether two URLs lead to the same API server, however they are written."""
    return _server(url) == _server(other)


def _server(url: str) -> tuple[str, int | None]:
    """Host and port; for a text that is no URL the text itself."""
    text = url.strip()
    try:
        parts = untrusted.url_parts(text if "://" in text else f"https://{text}")
    except ValueError:
        return text, None
    return one_spelling(parts.hostname or ""), parts.port or _PORTS.get(parts.scheme)


def name_nodes(
    machines: Iterable[Machine], previous: Sequence[Node] = ()
) -> tuple[Node, ...]:
    """Name the VMs of nodes.

    Names are made of role and cluster address, so that a VM that Heat rebuilds on the
    same port gets the same name. Nodes of the previous inventory keep names and
    positions: kubespray takes the first control plane for the leading one and by
    default numbers etcd members by position. New nodes follow, role by role, by
    address.

    :param previous: the nodes of the present inventory.
    :raises ClusterError: two VMs have the same address.
    """
    machines = tuple(machines)
    _refuse_shared_addresses(machines)
    former = _former_nodes(machines, previous)
    positions = {node.name: position for position, node in enumerate(previous)}
    roles = list(ROLES)

    def place(machine: Machine) -> tuple[int, int, int, int]:
        node = former.get(machine)
        position = positions[node.name] if node else len(positions)
        address = network_plugins.address(machine.address)
        return roles.index(machine.role), position, address.version, int(address)

    return tuple(_named(sorted(machines, key=place), former, previous))


def _named(
    machines: Iterable[Machine],
    former: Mapping[Machine, Node],
    previous: Sequence[Node],
) -> Iterator[Node]:
    taken = {node.name for node in previous}
    members = itertools.count(1 + max(map(member_number, previous), default=0))
    for machine in machines:
        node = former.get(machine)
        name = node.name if node else _free_name(machine, taken)
        taken.add(name)
        member = node.etcd_member_name if node else ""
        if ROLES[machine.role].has_etcd and not member:
            member = f"etcd{next(members)}"
        yield Node(
            name=name,
            role=machine.role,
            server_id=machine.server_id,
            ssh_address=machine.ssh_address,
            address=machine.address,
            etcd_member_name=member,
            aspect_id=machine.aspect_id,
            compute_host=machine.compute_host or _former_host(machine, node),
        )


def _former_host(machine: Machine, node: Node | None) -> str:
    """The former host of a VM that has none in Nova now, such as a shelved one."""
    return node.compute_host if node and node.server_id == machine.server_id else ""


def _former_nodes(
    machines: Iterable[Machine], previous: Iterable[Node]
) -> dict[Machine, Node]:
    """The former node of each machine, by server or else by address.

    The server goes first because a port may have moved to another one.
    """
    former: dict[Machine, Node] = {}
    left = set(previous)
    for identity in (attrgetter("role", "server_id"), attrgetter("role", "address")):
        nodes = {identity(node): node for node in left}
        for machine in machines:
            if machine not in former and identity(machine) in nodes:
                former[machine] = nodes.pop(identity(machine))
        left.difference_update(former.values())
    return former


def _refuse_shared_addresses(machines: Iterable[Machine]) -> None:
    first: dict[object, Machine] = {}
    for machine in machines:
        other = first.setdefault(network_plugins.address(machine.address), machine)
        if other is not machine:
            raise ClusterError(
                detail=f"The servers {other.server_id} and {machine.server_id} have "
                f"the same address on the cluster network, {machine.address}.",
                hint="Every node needs an address of its own.",
            )


def _free_name(machine: Machine, taken: Container[str]) -> str:
    # Exploded: from "fd00::", the name would end with a hyphen.
    address = re.sub("[.:]", "-", network_plugins.address(machine.address).exploded)
    name = f"{machine.role.value}-{address}"
    others = (f"{name}-{number}" for number in itertools.count(2))
    return next(n for n in itertools.chain([name], others) if n not in taken)


def member_number(node: Node) -> int:
    """The number in the name of the node's etcd member; 0 if there is none."""
    found = _MEMBER.fullmatch(node.etcd_member_name)
    return int(found[1]) if found else 0


_MEMBER = re.compile("(?:etcd)?([0-9]{1,9})")


@dataclass(frozen=True)
class Count:
    """How many VMs a group has.

    :param group: its name in Heat; in Tacker's v2 API the VDU's.
    :param heat: in Heat.
    :param tacker: in Tacker's database.
    :param remedy: how to correct Tacker's number.
    """

    group: str
    heat: int
    tacker: int
    remedy: str


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


class Fault(NamedTuple):
    """Why a node cannot be used, and what to do.

    :param text: ends with what says so, such as the taint.
    """

    text: str
    remedy: str


# Taints that keep all ordinary pods away until something has been done for the node
# (Kubernetes' "Well-Known Labels, Annotations and Taints"). Those of pressure come and
# go with the load, and all others are asked for.
_NOT_YET = {
    "node.cloudprovider.kubernetes.io/uninitialized": (
        "the cloud controller has not initialized it"
    ),
    "node.kubernetes.io/network-unavailable": "its network is not set up",
    "node.kubernetes.io/not-ready": "it is still marked as not Ready",
    "node.kubernetes.io/unreachable": "it is still marked as unreachable",
}
_REMOVED = "Look at the log of the controller that takes the taint away."


@dataclass(frozen=True)
class NodeObject:
    """A Node object.

    A rebuilt VM's node has the former name. ``machine_id`` and ``boot_id`` identify the
    VM whose kubelet reports for it (``/etc/machine-id``,
    ``/proc/sys/kernel/random/boot_id``).

    :param ready: whether its kubelet reports that it can run pods.
    :param reason: the kubelet's reason for not being Ready; "" if it is.
    :param unschedulable: whether it is cordoned.
    :param taints: as in its ``spec``.
    :param in_maintenance: whether it has the taint of a node in maintenance.
    :param provider_id: the cloud provider's id of its VM; "" without a provider.
    :param uid: of the Node object; a recreated object has another one.
    :param created: creation time of the Node object (RFC 3339).
    """

    name: str
    ready: bool
    reason: str
    internal_ip: str
    kubelet_version: str
    unschedulable: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    machine_id: str = ""
    boot_id: str = ""
    provider_id: str = ""
    uid: str = ""
    created: str = ""
    cordoned_by_us: bool = False
    in_maintenance: bool = False

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Why it cannot take any pod although its kubelet reports it as Ready."""
        keys = dict.fromkeys(taint["key"] for taint in self.taints)
        waits = ((key, _NOT_YET[key]) for key in keys if key in _NOT_YET)
        found = tuple(Fault(f"{why} (taint {key})", _REMOVED) for key, why in waits)
        return found if self.ready else ()

    @property
    def problem(self) -> str:
        """Why it cannot take any pod, although its kubelet may be Ready; "" if it can.

        It is not Ready, or has a taint until something has been done for it.
        """
        if not self.ready:
            return self.reason or "not Ready"
        return "; ".join(fault.text for fault in self.faults)

    @property
    def plane_problem(self) -> str:
        """Why a control plane on it does not work, for which taints do not matter."""
        return "" if self.ready else self.problem
