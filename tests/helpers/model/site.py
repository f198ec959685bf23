# SPDX-License-Identifier: Apache-2.0
"""The site of a history: VMs in a Heat stack, and what they carry.

What an operation may do to healthy members that it is not about is recorded among the
violations of the gate; a raised error would be taken for one of the site.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role
from tacker_k8s_mgmt.topology.heat_stack import Machines, Unfinished
from tacker_k8s_mgmt.topology.scaling_groups import UNHEALTHY, GroupSize
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.helpers.fakes.nodes import FakeNode, machine, no_other_node
from tests.helpers.fakes.site import FakeSite
from tests.helpers.model.faults import Gate
from tests.helpers.model.parts import (
    ModelBalancer,
    ModelCluster,
    ModelPlaybooks,
    ModelWorkDir,
)

GROUP = "worker_instance"
_VDUS = {Role.CONTROL_PLANE: "masterNode", Role.WORKER: "workerNode"}
_UNBOUND = "the port w_nic is not attached to a VM"
_NUMBERS = (55, 5, *range(10, 30))  # of addresses


class ModelSite(FakeSite):
    """The fake site, with a stack that changes and VMs that die.

    :ivar targets: ids of the servers that the operation is about.
    :ivar free: the operation is about the whole cluster.
    :ivar begun: ids of the servers that were full members when the operation began.
    :ivar serviced: ids of the servers that may be cordoned and drained.
    :ivar blocked: names of nodes from which pods do not leave.
    :ivar deleted: ids of servers that were deleted in Nova.
    :ivar more: the second address of a port, by its first one.
    """

    def __init__(self, load_balancer: bool = True) -> None:
        super().__init__(load_balancer)
        self.has_balancer = load_balancer
        self.gate = Gate()
        self.targets: frozenset[str] = frozenset()
        self.free = True
        self.begun: frozenset[str] = frozenset()
        self.serviced: frozenset[str] = frozenset()
        self.blocked: set[str] = set()
        self.deleted: set[str] = set()
        self.more: dict[str, str] = {}
        self._serial = 0
        self.erase()

    # The stack

    def erase(self) -> None:
        """Delete the stack."""
        self.control_planes, self.workers, self.load_balancer = [], [], None
        self.dead, self.unfinished, self.deleted = set(), set(), set()
        self.more.clear()
        self.forget_cluster()

    def create(self, size: int) -> None:
        """Create the stack, or what is missing of it."""
        if not self.control_planes:
            self.control_planes = [self._vm(Role.CONTROL_PLANE, 4)]
        if self.has_balancer and self.load_balancer is None:
            self.load_balancer = self._vm(Role.LOAD_BALANCER, 9)
        self.resize(size)

    def forget_cluster(self) -> None:
        """Forget what was in the VMs, of which all were replaced."""
        self.cluster_nodes, self.cordoned, self.pods = [], frozenset(), {}
        self.marks.clear()
        self.routes, self.balanced, self.exposed = frozenset(), None, ()

    def _vm(self, role: Role, number: int) -> Machine:
        self._serial += 1
        return machine(role, number, f"server-{number}-{self._serial}")

    def resize(self, size: int, by_hand: bool = False) -> None:
        """Set the group's size: failed members are deleted first, then the oldest.

        A failed member that stays is rebuilt.

        :param by_hand: no hook was called before.
        """
        while len(self.workers) > size:
            failed = [vm for vm in self.workers if vm.server_id in self.unfinished]
            self.delete((failed or self.workers)[0].server_id)
        self.finish(by_hand)
        while len(self.workers) < size:
            # An address that is free may be one that was in use before.
            taken = {int(vm.address.rpartition(".")[2]) for vm in self.workers}
            free = [number for number in _NUMBERS if number not in taken]
            number = free[0 if self._serial % 2 else self._serial % len(free)]
            self.workers.append(self._vm(Role.WORKER, number))

    def delete(self, server: str, by_hand: bool = False) -> None:
        """Delete a member of the group."""
        if not by_hand and self.is_protected(server):
            self.gate.violations.append(f"Heat deleted the member {server}")
        for vm in self.workers:
            if vm.server_id == server:
                self.more.pop(vm.address, None)
        self.workers = [vm for vm in self.workers if vm.server_id != server]
        self._lose(server)

    def rebuild(
        self, servers: Collection[str], fails: bool = False, by_hand: bool = False
    ) -> None:
        """Rebuild VMs in their places.

        :param fails: Heat does not complete them.
        """
        for server in servers:
            # One that is not Ready loses nothing.
            lives = self.is_protected(server) and server not in self.dead
            if lives and not by_hand:
                self.gate.violations.append(f"Heat replaced the member {server}")

        def built(vm: Machine) -> Machine:
            if vm.server_id not in servers:
                return vm
            number = int(vm.address.rpartition(".")[2])
            new = self._vm(vm.role, number)
            if fails:
                self.unfinished.add(new.server_id)
            if vm.role is Role.LOAD_BALANCER:
                self.routes, self.balanced, self.exposed = frozenset(), None, ()
            return new

        self.control_planes = [built(vm) for vm in self.control_planes]
        self.workers = [built(vm) for vm in self.workers]
        self.load_balancer = self.load_balancer and built(self.load_balancer)
        for server in servers:
            self._lose(server)

    def finish(self, by_hand: bool = False) -> None:
        """Have Heat rebuild what it has not completed, or what is marked."""
        self.rebuild(self.unfinished & self.every(), by_hand=by_hand)

    def replace_all(self, size: int) -> None:
        """Rebuild everything."""
        self.erase()
        self.create(size)

    def _lose(self, server: str) -> None:
        for states in (self.dead, self.unfinished, self.deleted):
            states.discard(server)
        for node in self.cluster_nodes:
            if node.machine_id == server:
                self.pods.pop(node.name, None)

    def every(self) -> frozenset[str]:
        """Ids of all servers in the stack."""
        return frozenset(server for server, _, _ in self.vnfcs())

    def vnfcs(self) -> Iterator[tuple[str, str, str]]:
        """Server, VDU and stack of each VM, as Tacker lists them."""
        balancer = [self.load_balancer] if self.load_balancer else []
        for vm in (*self.control_planes, *self.workers, *balancer):
            vdu = _VDUS.get(vm.role, "externalLB")
            yield vm.server_id, vdu, f"stack-of-{vm.address}"

    def resources(self) -> Sequence[StackResource]:
        """What Heat lists of the servers; each is in a stack of its own."""
        return [
            StackResource(stack, vdu, "OS::Nova::Server", server, self._status(server))
            for server, vdu, stack in self.vnfcs()
        ]

    def _status(self, server: str) -> str:
        return "CREATE_FAILED" if server in self.unfinished else "CREATE_COMPLETE"

    def machines(self) -> Machines:
        found = super().machines()
        places = {
            server: frozenset({"top", server, stack})
            for server, _, stack in self.vnfcs()
        }
        unfinished = list(found.unfinished)
        balancer = self.load_balancer
        if balancer and balancer.server_id in self.unfinished:
            late = f"lb_ssh is {UNHEALTHY}"
            unfinished.append(Unfinished(balancer.role, balancer.server_id, late))
            balancer = None
        every = (
            *found.nodes,
            *((balancer,) if balancer else ()),
        )
        unfinished += [
            Unfinished(vm.role, vm.server_id, _UNBOUND, lacks=True)
            for vm in every
            if vm.server_id in self.deleted
        ]
        return replace(
            found,
            vms=self._bound(every),
            places=places,
            groups=self.scaling_groups(places),
            unfinished=tuple(unfinished),
        )

    def _bound(self, machines: Iterable[Machine]) -> tuple[Machine, ...]:
        """The VMs whose ports are bound, at the first address of these as text."""
        listed = {
            vm: tuple(sorted({vm.address, self.more.get(vm.address, vm.address)}))
            for vm in machines
            if vm.server_id not in self.deleted
        }
        return tuple(
            replace(vm, address=addresses[0], addresses=addresses)
            for vm, addresses in listed.items()
        )

    def group_sizes(self) -> Mapping[str, GroupSize]:
        failed = sum(vm.server_id in self.unfinished for vm in self.workers)
        return {GROUP: GroupSize(len(self.workers) - failed, failed)}

    # What operations must not do

    def full_members(self) -> frozenset[str]:
        """Ids of the servers that are full members and have a Node object."""
        recorded = self._recorded()
        nodes = {node.machine_id for node in self.cluster_nodes}
        return frozenset(nodes if recorded is None else nodes & recorded) & self.every()

    def _recorded(self) -> set[str] | None:
        try:
            return set(json.loads(self.files["joined.json"]))
        except (KeyError, ValueError):
            return None

    def is_protected(self, server: str) -> bool:
        """Whether it is a member that the operation is not about, and Heat has it."""
        stays = server in self.begun and server in self.every()
        return stays and not self.free and server not in self.targets

    def begin(
        self, targets: Iterable[str], free: bool, serviced: Iterable[str] = ()
    ) -> None:
        """Begin an operation, or continue with it."""
        self.targets, self.free = frozenset(targets), free
        self.serviced = frozenset(serviced)
        self.begun = self.full_members()

    def forbid(
        self, what: str, names: Iterable[str], allowed: Collection[str] = ()
    ) -> None:
        """Record what is done to members that are not to leave.

        :param allowed: ids of servers to which it may be done.
        """
        servers = {node.name: node.machine_id for node in self.cluster_nodes}
        for name in names:
            server = servers.get(name, "")
            if server not in allowed and self.is_protected(server):
                self.gate.violations.append(f"{what} {name}, which is to stay")

    def see_drained(self, names: Collection[str]) -> None:
        """Record pods that end with their nodes, although they had somewhere to go."""
        nodes: Sequence[Any] = ModelCluster(self).listed()
        answering = self.every() - self.dead
        for node in nodes:
            pods = self.pods.get(node.name) if node.name in names else ()
            specs = [self.pod_specs.get(pod, {}) for pod in pods or ()]
            answers = node.machine_id in answering
            if specs and answers and not no_other_node(specs, names, nodes):
                self.gate.violations.append(f"removed {node.name} with its pods")

    def remove(self, name: str) -> None:
        self.forbid("removed", [name])
        super().remove(name)
        self.pods.pop(name, None)

    # The parts

    @property
    def lacks_balancer(self) -> bool:
        """Whether there is no HAProxy, or an incomplete one, on its VM."""
        balancer = self.load_balancer
        if not self.has_balancer or not self.control_planes:
            return False
        rebuilt = json.loads(self.files.get("healing.json") or "{}")
        former = rebuilt.get("load_balancer", "")
        whole = balancer is not None and former in ("", balancer.server_id)
        return self.balanced is None or not whole

    def is_ready(self, node: FakeNode) -> bool:
        """Whether its kubelet reports, which it does through the load balancer."""
        balancer = self.load_balancer
        reaches = not self.has_balancer or (
            balancer is not None
            and self.balanced is not None
            and balancer.server_id not in self.dead
        )
        return node.machine_id in self.every() - self.dead and reaches

    @property
    def workdir(self) -> ModelWorkDir:
        return ModelWorkDir(self)

    @property
    def playbooks(self) -> ModelPlaybooks:
        return ModelPlaybooks(self)

    def cluster(self, control_plane: Node) -> ModelCluster:
        super().cluster(control_plane)
        return ModelCluster(self)

    def balancer(self, machine: Machine) -> ModelBalancer:
        return ModelBalancer(self)

    def wait_reachable(self, machines: Sequence[Machine]) -> None:
        super().wait_reachable(machines)
        assert {vm.server_id for vm in machines} <= self.every()

    def unusable(
        self, nodes: Sequence[Node], renewed: Collection[str] = ()
    ) -> Mapping[str, errors.RemoteError]:
        there = self.every() - self.dead
        gone = [node for node in nodes if node.server_id not in there]
        found = super().unusable(nodes, renewed)
        return {**found, **{node.name: self._no_answer(node) for node in gone}}
