"""A site without effects: state in, state out, and a fault where a test wants one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cluster.balancer import BalancerSpec, BalancerStatus
from tacker_k8s_mgmt.cluster.nodes import Machine, Node, Role
from tacker_k8s_mgmt.cluster.params import InstallParams, parse
from tacker_k8s_mgmt.cluster.stack import Machines
from tacker_k8s_mgmt.lifecycle import ports

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"


def params(**changes: Any) -> InstallParams:
    """Parameters as the sample request has them."""
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
    parsed = parse({"k8s_cluster_installation_param": wanted})
    assert parsed is not None
    return parsed


class FakeClock:
    """Time that passes only when somebody sleeps."""

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
    name: str
    ready: bool = True
    reason: str = ""


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
        return self._site.files.get(name)

    def remove(self) -> bool:
        self._site.touch("workdir.remove")
        there = self._site.owner is not None
        self._site.files.clear()
        self._site.change("owner", None)
        return there


class FakePlaybooks:
    def __init__(self, site: "FakeSite") -> None:
        self._site = site

    def done(self, playbook: str, inputs: Sequence[str]) -> bool:
        return self._site.ran == (playbook, *inputs)

    def run(
        self,
        playbook: str,
        inputs: Sequence[str],
        nodes: int,
        on_progress: Callable[[Any], None],
    ) -> None:
        self._site.touch("playbooks.run")
        self._site.change("ran", (playbook, *inputs))
        self._site.change("cluster_nodes", [FakeNode(n) for n in self._site.joining])

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

    def admin_access(self) -> FakeAccess:
        self._site.touch("cluster.admin_access")
        return FakeAccess()


class FakeBalancer:
    def __init__(self, site: "FakeSite") -> None:
        self._site = site

    def install(self, spec: BalancerSpec) -> None:
        self._site.touch("balancer.install")
        self._site.change("balanced", spec)

    def status(self) -> BalancerStatus:
        self._site.touch("balancer.status")
        spec = self._site.balanced
        return BalancerStatus(
            active=self._site.balancer_runs,
            enabled=True,
            current=True,
            api_port=spec.api_port if spec else None,
            control_planes=(),
            workers=(),
            services=(),
        )


class FakeSite:
    """One control plane, two workers, a load balancer; nothing made yet.

    :ivar faults: calls (by the name that :meth:`touch` gets) that fail once each.
    :ivar error: what they fail with, in place of a plain RemoteError.
    :ivar changes: what was really changed, in order.
    """

    def __init__(self, load_balancer: bool = True) -> None:
        self.faults: set[str] = set()
        self.error: Exception | None = None
        self.calls: list[str] = []
        self.changes: list[str] = []
        self.owner: str | None = None
        self.files: dict[str, str] = {}
        self.ran: tuple[str, ...] = ()
        self.joining = (
            "control-plane-10-10-0-4",
            "worker-10-10-0-5",
            "worker-10-10-0-55",
        )
        self.cluster_nodes: list[FakeNode] = []
        self.vim: ports.VimSpec | None = None
        self.vim_in_use = False
        self.foreign_vims: set[str] = set()
        self.balanced: BalancerSpec | None = None
        self.balancer_runs = True
        self.package: tuple[str, ...] = ()
        self.server: tuple[str, ...] = ()
        self.forgotten: list[str] = []
        self._balancer = load_balancer
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

    def machines(self) -> Machines:
        self.touch("machines")

        def machine(role: Role, number: int) -> Machine:
            inner, outer = f"10.10.0.{number}", f"192.0.2.{number + 100}"
            return Machine(role, f"server-{number}", outer, inner)

        return Machines(
            control_planes=(machine(Role.CONTROL_PLANE, 4),),
            workers=(machine(Role.WORKER, 55), machine(Role.WORKER, 5)),
            load_balancer=machine(Role.LOAD_BALANCER, 9) if self._balancer else None,
        )

    def package_findings(self) -> Sequence[str]:
        return self.package

    def server_findings(self) -> Sequence[str]:
        return self.server

    def wait_reachable(self, machines: Sequence[Machine]) -> None:
        self.touch("wait_reachable")

    def forget(self, hosts: Sequence[str], facts: Sequence[str]) -> None:
        self.forgotten += hosts

    def save_host_keys(self) -> None:
        self.touch("save_host_keys")

    @property
    def workdir(self) -> FakeWorkDir:
        return FakeWorkDir(self)

    @property
    def playbooks(self) -> FakePlaybooks:
        return FakePlaybooks(self)

    def cluster(self, control_plane: Node) -> FakeCluster:
        return FakeCluster(self)

    def balancer(self, machine: Machine) -> FakeBalancer:
        return FakeBalancer(self)
