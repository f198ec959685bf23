"""A site without effects: state in, state out, and a fault where a test sets one."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.model.load_balancer import (
    BalancerSpec,
    BalancerStatus,
    ExposedService,
    Server,
)
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tacker_k8s_mgmt.request.params import InstallParams, merged, parse
from tacker_k8s_mgmt.status.facts import Count, Vim
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import Machines, Unfinished
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"


def params(**changes: Any) -> InstallParams:
    """Parameters as the sample request has them."""
    parsed = parse(additional_params(**changes))
    assert parsed is not None
    return parsed


def changed_params(**changes: Any) -> InstallParams:
    """Parameters of a later request that changes some of the sample request's."""
    later = merged(additional_params(), {"k8s_cluster_installation_param": changes})
    assert later is not None
    return later


def additional_params(**changes: Any) -> dict[str, Any]:
    """The sample request's ``additionalParams``."""
    node = {"username": "ubuntu", "password": "n0de-secret"}
    given = {
        "ansible": {
            "ip_address": "192.0.2.5",
            "username": "ansible",
            "password": "serv3r-secret",
            "kubespray_root_path": "/opt/kubespray",
            "transferring_inventory_path": "/srv/clusters/one",
        },
        "master_node": {"ssh_cp_name": "m_ssh", "nic_cp_name": "m_nic", **node},
        "worker_node": {"ssh_cp_name": "w_ssh", "nic_cp_name": "w_nic", **node},
        "external_lb_param": {
            "ssh_cp_name": "lb_ssh",
            "ssh_username": "ubuntu",
            "ssh_password": "b4lancer-secret",
            "script_path": "Scripts/lb.sh",
        },
        **changes,
    }
    wanted = {key: value for key, value in given.items() if value is not None}
    return {"k8s_cluster_installation_param": wanted}


class FakeClock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class FakeJournal:
    """Records in a list."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def record(self, event: str, **fields: Any) -> None:
        self.records.append({"event": event, **fields})


@dataclass(frozen=True)
class FakeNode:
    """A Node object; its identity is the id of the server whose kubelet reports."""

    name: str
    ready: bool = True
    reason: str = ""
    machine_id: str = ""
    boot_id: str = "boot"
    unschedulable: bool = False
    tainted: bool = False
    internal_ip: str = ""
    kubelet_version: str = "v1.31.9"


@dataclass(frozen=True)
class FakeAccess:
    token: SecretStr = field(default_factory=lambda: SecretStr("t0ken"))
    ca_certificate: str = "-----BEGIN CERTIFICATE-----"


class FakeWorkDir:
    """The directory as a dict of files."""

    path = "/srv/clusters/one"

    def __init__(self, site: "FakeSite") -> None:
        self._site = site

    def owner(self) -> str | None:
        self._site.touch("workdir.owner")
        return self._site.owner

    def claim(self) -> None:
        self._site.touch("workdir.claim")
        if self._site.owner not in (None, VNF):
            raise errors.OwnershipError(path=self.path, host="a", reason="is not ours")
        self._site.change("owner", VNF)

    def write(self, name: str, text: str) -> bool:
        self._site.touch(f"workdir.write {name}")
        changed = self._site.files.get(name) != text
        if changed:
            self._site.changes.append(f"write {name}")
            self._site.files[name] = text
        return changed

    def read(self, name: str) -> str | None:
        text = self._site.files.get(name)
        if text is not None and "\ufffd" in text:
            path = f"{self.path}/{name}"
            raise errors.SpoiledFile(path=path, host="a", reason="it is no text")
        return text

    def remove(self) -> bool:
        self._site.touch("workdir.remove")
        there = self._site.owner is not None
        self._site.files.clear()
        self._site.change("owner", None)
        return there


class FakePlaybooks:
    """Runs that do to the fake cluster what kubespray's do to a real one."""

    def __init__(self, site: "FakeSite") -> None:
        self._site = site

    def done(self, request: PlaybookRequest) -> bool:
        return self._site.ran == request.digest

    def live(self, request: PlaybookRequest) -> bool:
        return self._site.running == request.digest

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Any], None],
    ) -> None:
        self._site.touch(f"run {request.name}")
        self._site.runs.append(request)
        self._site.inventories.append(self._site.files["hosts.yaml"])
        effect: Callable[[PlaybookRequest], None] = getattr(
            self, f"_{request.name.replace('-', '_')}"
        )
        effect(request)
        self._site.change("ran", request.digest)

    def _inventory(self) -> dict[str, Node]:
        text = self._site.files["hosts.yaml"]
        return {node.name: node for node in inventory.parse(text)}

    def _cluster(self, request: PlaybookRequest) -> None:
        if not request.limit:
            self._join(self._inventory().values())
        variables = json.loads(self._site.files["vars.json"])
        names = variables["supplementary_addresses_in_ssl_keys"]
        self._site.change("certified", frozenset(names))

    def _facts(self, request: PlaybookRequest) -> None:
        shut_out = request.limit.split(":!")[1:]
        there = {*self._site.machines().places} - self._site.dead
        for name, node in self._inventory().items():
            if node.server_id not in there and name not in shut_out:
                raise errors.PlaybookFailed(
                    playbook=request.playbook, host="a", rc=4, failures=[name], log="l"
                )

    def _scale(self, request: PlaybookRequest) -> None:
        known = self._inventory()
        self._join(known[name] for name in request.limit.split(","))

    def _remove_node(self, request: PlaybookRequest) -> None:
        assert request.extra_vars["skip_confirmation"] is True
        known = self._inventory()
        if request.extra_vars.get("reset_nodes") is not False:
            self._facts(request)
        for name in request.extra_vars["node"].split(","):
            dead = known[name].server_id in self._site.dead
            if dead and request.extra_vars.get("reset_nodes") is not False:
                raise errors.PlaybookFailed(
                    playbook="remove-node.yml", host="a", rc=4, failures=[name], log="l"
                )
            if self._site.pods.get(name) and not dead:
                assert request.extra_vars.get("allow_ungraceful_removal"), "undrained"
            self._site.remove(name)

    def _join(self, members: Iterable[Node]) -> None:
        for node in members:
            if all(
                node.name != cluster_node.name
                for cluster_node in self._site.cluster_nodes
            ):
                leading = node.role is Role.CONTROL_PLANE
                joined = FakeNode(node.name, machine_id=node.server_id, tainted=leading)
                self._site.change("cluster_nodes", [*self._site.cluster_nodes, joined])

    def stop(self) -> bool:
        self._site.touch("playbooks.stop")
        return False


class FakeVims:
    def __init__(self, site: "FakeSite") -> None:
        self._site = site

    def name_taken(self, name: str) -> bool:
        return name in self._site.foreign_vims

    def register(self, spec: ports.VimSpec) -> str:
        self._site.touch("vims.register")
        self._site.change("vim", spec)
        return "vim-id"

    def in_use(self) -> bool:
        return self._site.vim_in_use

    def registered(self) -> tuple[Vim, ...]:
        self._site.touch("vims.registered")
        spec = self._site.vim
        return (Vim("vim-id", spec.name, spec.auth_url, named=True),) if spec else ()

    def remove(self) -> bool:
        self._site.touch("vims.remove")
        there = self._site.vim is not None
        self._site.change("vim", None)
        return there


class FakeCluster:
    def __init__(self, site: "FakeSite") -> None:
        self._site = site

    def nodes(self) -> Sequence[FakeNode]:
        self._site.touch("cluster.nodes")
        return self._site.cluster_nodes

    def version(self) -> str:
        return self._site.version

    def admin_access(self) -> FakeAccess:
        self._site.touch("cluster.admin_access")
        return FakeAccess()

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]:
        self._site.touch("cluster.cordon")
        new = set(names) - self._site.cordoned
        self._site.change("cordoned", self._site.cordoned | new)
        return tuple(sorted(new))

    def uncordon(self, names: Sequence[str]) -> None:
        self._site.touch("cluster.uncordon")
        self._site.change("cordoned", self._site.cordoned - set(names))

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None:
        self._site.touch("cluster.drain")
        assert set(names) <= self._site.cordoned
        assert not set(names) & {name for name, _ in self._site.routes}
        if self._site.budget:
            raise errors.DrainError(failed=len(names), outcomes=[self._site.budget])
        for name in names:
            self._site.pods.pop(name, None)

    def evict_dead(self, names: Sequence[str]) -> None:
        self._site.touch("cluster.evict_dead")
        for name in names:
            self._site.pods.pop(name, None)

    def remove_nodes(self, names: Sequence[str]) -> None:
        self._site.touch("cluster.remove_nodes")
        for name in names:
            self._site.remove(name)

    def uncertified(self, addresses: Sequence[str]) -> tuple[str, ...]:
        self._site.touch("cluster.uncertified")
        self._site.looks_for_certificate -= 1
        if self._site.looks_for_certificate < 0:
            return tuple(a for a in addresses if a not in self._site.certified)
        return tuple(addresses)


class FakeBalancer:
    def __init__(self, site: "FakeSite") -> None:
        self._site = site

    def install(self, spec: BalancerSpec) -> None:
        self._site.touch("balancer.install")
        self._site.change("balanced", spec)
        self._site.change("routes", frozenset(spec.workers))

    def add_workers(self, workers: Sequence[tuple[str, str]]) -> None:
        self._site.touch("balancer.add_workers")
        self._site.change("routes", self._site.routes | set(workers))

    def remove_workers(self, names: Sequence[str]) -> None:
        self._site.touch("balancer.remove_workers")
        kept = {route for route in self._site.routes if route[0] not in names}
        self._site.change("routes", frozenset(kept))

    def expose(self, services: Sequence[ExposedService]) -> None:
        self._site.touch("balancer.expose")
        self._site.change("exposed", tuple(services))

    def status(self) -> BalancerStatus:
        self._site.touch("balancer.status")
        spec = self._site.balanced
        return BalancerStatus(
            active=self._site.balancer_runs,
            enabled=True,
            current=True,
            api_port=spec.api_port if spec else None,
            control_planes=_up(spec.control_planes if spec else ()),
            workers=_up(sorted(self._site.routes)),
            services=self._site.exposed,
        )


def _up(routes: Iterable[tuple[str, str]]) -> tuple[Server, ...]:
    return tuple(Server(name, address, "UP") for name, address in routes)


def machine(role: Role, number: int, server: str = "") -> Machine:
    """A VM with this number in its addresses."""
    inner, outer = f"10.10.0.{number}", f"192.0.2.{number + 100}"
    return Machine(role, server or f"server-{number}", outer, inner)


class FakeSite:
    """One control plane, two workers, a load balancer; nothing made yet.

    :ivar faults: calls (by the name that :meth:`touch` gets) that fail once each.
    :ivar error: what they fail with, in place of a plain RemoteError.
    :ivar changes: what was really changed, in order.
    :ivar inventories: the inventory as each of the runs found it.
    :ivar workers: the worker VMs in Heat; each is in a stack ``member-<server id>``.
    :ivar unfinished: ids of servers that Heat does not call complete.
    :ivar dead: ids of servers that do not answer.
    :ivar pods: names of pods by the node that they are on.
    :ivar certified: addresses that the API server's certificate is for.
    :ivar looks_for_certificate: how often it still shows its former certificate.
    :ivar expected: ids of servers that were logged in to beforehand.
    :ivar known: the host key of each address, which is the id of its server.
    :ivar stored: the same, as last stored on the Ansible server.
    :ivar present: the ports in the Heat stack.
    :ivar fixed: groups that keep Tacker from changing them.
    :ivar budget: what keeps pods from leaving, "" for nothing.
    """

    def __init__(self, load_balancer: bool = True) -> None:
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
        self.control_planes = [machine(Role.CONTROL_PLANE, 4)]
        self.workers = [machine(Role.WORKER, 55), machine(Role.WORKER, 5)]
        self.load_balancer = machine(Role.LOAD_BALANCER, 9) if load_balancer else None
        self.nic_mtu = 1450
        self.version = "v1.31.9"
        self.unfinished: set[str] = set()
        self.dead: set[str] = set()
        self.cluster_nodes: list[FakeNode] = []
        self.cordoned: frozenset[str] = frozenset()
        self.pods: dict[str, list[str]] = {}
        self.budget = ""
        self.vim: ports.VimSpec | None = None
        self.vim_in_use = False
        self.foreign_vims: set[str] = set()
        self.groups: dict[str, GroupSize] = {}
        self.counted: tuple[Count, ...] = ()
        self.balanced: BalancerSpec | None = None
        self.routes: frozenset[tuple[str, str]] = frozenset()
        self.exposed: tuple[ExposedService, ...] = ()
        self.balancer_runs = True
        self.package: tuple[str, ...] = ()
        self.server: tuple[str, ...] = ()
        self.forgotten: list[str] = []
        self.expected: list[str] = []
        self.certified: frozenset[str] = frozenset()
        self.looks_for_certificate = 0
        self.known: dict[str, str] = {}
        self.stored: dict[str, str] = {}
        self.present: list[Attachment] = []
        self.fixed: tuple[str, ...] = ()
        self.vims = FakeVims(self)

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

    def lock(self, patience: float | None = None) -> None:
        self.touch(f"lock for {patience:g} s" if patience else "lock")

    def machines(self) -> Machines:
        self.touch("machines")
        everything = [*self.control_planes, *self.workers]
        return Machines(
            control_planes=self._complete(self.control_planes),
            workers=self._complete(self.workers),
            load_balancer=self.load_balancer,
            places={
                one.server_id: frozenset({"top", f"member-{one.server_id}"})
                for one in everything
            },
            unfinished=tuple(
                Unfinished(one.role, one.server_id, "w_ssh is CREATE_FAILED")
                for one in everything
                if one.server_id in self.unfinished
            ),
            stack_id="stack-of-the-vnf",
        )

    def _complete(self, machines: Sequence[Machine]) -> tuple[Machine, ...]:
        return tuple(one for one in machines if one.server_id not in self.unfinished)

    def package_findings(self) -> Sequence[str]:
        return self.package

    def server_findings(self) -> Sequence[str]:
        return self.server

    def wait_reachable(self, machines: Sequence[Machine]) -> None:
        self.touch("wait_reachable")
        silent = [one.server_id for one in machines if one.server_id in self.dead]
        if silent:
            raise errors.RemoteError(detail=f"no answer from {', '.join(silent)}")
        for one in machines:
            key = self.known.setdefault(one.ssh_address, one.server_id)
            if key != one.server_id:
                raise errors.HostKeyError(host=one.ssh_address, recorded="known_hosts")

    def unreachable(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        return tuple(node.name for node in nodes if node.server_id in self.dead)

    def identity(self, node: Node) -> ports.MachineIdentity:
        return ports.MachineIdentity(node.server_id, "boot", self.nic_mtu)

    def attachments(self) -> Sequence[Attachment]:
        self.touch("attachments")
        return self.present

    def fixed_groups(self) -> Sequence[str]:
        return self.fixed

    def group_sizes(self) -> Mapping[str, GroupSize]:
        self.touch("group_sizes")
        return self.groups

    def counts(self) -> Sequence[Count]:
        return self.counted

    def forget(self, hosts: Sequence[str], facts: Sequence[str]) -> None:
        self.forgotten += hosts
        for host in hosts:
            self.known.pop(host, None)

    def host_keys(self, host: str) -> Sequence[Sequence[str]]:
        return [["ssh-ed25519", self.known[host]]] if host in self.known else []

    def record_host_keys(self, host: str, keys: Sequence[Sequence[str]]) -> None:
        for _, key in keys:
            self.known[host] = key

    def save_host_keys(self) -> None:
        self.touch("save_host_keys")
        self.stored = dict(self.known)

    def expect(self, machine: Machine) -> None:
        self.expected.append(machine.server_id)

    @property
    def workdir(self) -> FakeWorkDir:
        return FakeWorkDir(self)

    @property
    def playbooks(self) -> FakePlaybooks:
        return FakePlaybooks(self)

    def cluster(self, control_plane: Node) -> FakeCluster:
        if control_plane.server_id in self.dead:
            self.touch(f"login {control_plane.server_id}")
            raise errors.ConnectError(
                user="u",
                host=control_plane.ssh_address,
                port=22,
                seconds=1,
                reason="no",
            )
        return FakeCluster(self)

    def balancer(self, machine: Machine) -> FakeBalancer:
        return FakeBalancer(self)
