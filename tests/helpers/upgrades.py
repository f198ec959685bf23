# SPDX-License-Identifier: Apache-2.0
"""A site whose nodes have Kubernetes versions, and kubespray's upgrade of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.upgrade import Upgrade, UpgradeStart
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tacker_k8s_mgmt.request.reader import ClusterRequest, RequestReader
from tests.helpers.fakes.cluster import FakeCluster
from tests.helpers.fakes.journal import FakeJournal
from tests.helpers.fakes.nodes import FakeNode, machine, takes
from tests.helpers.fakes.playbooks import FakePlaybooks
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import run
from tests.helpers.requests import additional_params

OLD, NEW = "1.34.3", "1.35.4"
#: The pod of kubeadm's health check.
HEALTH_JOB = {
    "tolerations": [
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    ]
}


def wanted(
    version: str = NEW, load_balancer: bool = True, **changes: Any
) -> ClusterRequest:
    """The parameters of a request that asks for a version."""
    change = {"cluster": {"kubernetes_version": version}, **changes}
    later = {"k8s_cluster_installation_param": change}
    made = RequestReader().update(stored(load_balancer), later, upgrade=True)
    assert made is not None
    return made


def stored(load_balancer: bool = True) -> dict[str, Any]:
    """The ``additionalParams`` of the instantiation."""
    without = {} if load_balancer else {"external_lb_param": None}
    return additional_params(cluster={"kubernetes_version": OLD}, **without)


def upgrade(site: "UpgradingSite", params: ClusterRequest | None = None) -> FakeJournal:
    return run(Upgrade, site, params or wanted())


def check(site: "UpgradingSite", params: ClusterRequest | None = None) -> FakeJournal:
    return run(UpgradeStart, site, params or wanted())


@dataclass(frozen=True)
class VersionedNode(FakeNode):
    kubelet_version: str = ""


class UpgradingPlaybooks(FakePlaybooks):
    """``upgrade-cluster.yml`` takes kubelet first, then the API server."""

    _site: "UpgradingSite"

    def run(
        self,
        request: PlaybookRequest,
        nodes: int,
        on_progress: Callable[[Any], None],
    ) -> None:
        assert self._site.running in ("", request.digest), "another run is live"
        super().run(request, nodes, on_progress)
        self._site.running = ""

    def _upgrade_cluster(self, request: PlaybookRequest) -> None:
        if self._site.breaks_off:
            self._site.breaks_off = False
            self._site.running = request.digest
            raise errors.ConnectionLost(host="a", command="tail", reason="reset")
        self._site.batches.append(request.limit)
        text = json.loads(self._site.files["vars.json"])["kube_version"]
        version = text.rpartition("}")[2]
        for node in self._meant(request.limit):
            self._site.touch(f"upgrade {node.name}")
            if node.role is Role.CONTROL_PLANE:
                self._plane(node, version)
            else:
                self._worker(node, version)

    def _meant(self, limit: str) -> Sequence[Node]:
        known = self._inventory()
        if limit == "etcd,kube_control_plane":
            return self._planes()
        return [known[name] for name in limit.split(",")]

    def _plane(self, node: Node, version: str) -> None:
        site = self._site
        cordons = not site.is_closed(node.name)
        if cordons:
            site.change("by_kubespray", site.by_kubespray | {node.name})
        if node.name == self._planes()[0].name:
            self._check_health()
        site.move(site.kubelets, node.name, version)
        self._break(node)
        site.move(site.servers, node.name, version)
        if cordons:
            site.change("by_kubespray", site.by_kubespray - {node.name})

    def _check_health(self) -> None:
        """kubeadm's preflight check, which is left out if all nodes are cordoned."""
        cluster = UpgradingCluster(self._site, self._planes()[0])
        free = [node for node in cluster.listed() if not node.unschedulable]
        if free and not any(takes(node, HEALTH_JOB) for node in free):
            raise errors.PlaybookFailed(
                playbook="upgrade-cluster.yml",
                host="a",
                rc=2,
                failures=["[ERROR CreateJob]: Job did not complete in 15s"],
                log="l",
            )

    def _worker(self, node: Node, version: str) -> None:
        site = self._site
        assert set(site.servers.values()) == {version}, "newer than an API server"
        assert site.is_closed(node.name), "kubespray would drain it"
        assert not site.pods.get(node.name)
        assert all(name != node.name for name, _ in site.routes)
        site.move(site.kubelets, node.name, version)
        self._break(node)

    def _break(self, node: Node) -> None:
        if self._site.breaks_at != node.name:
            return
        self._site.breaks_at = ""
        self._site.quiet.add(node.name)
        raise errors.PlaybookFailed(
            playbook="upgrade-cluster.yml",
            host="a",
            rc=2,
            failures=[f"{node.name}: Start kubelet: no"],
            log="l",
        )


class UpgradingCluster(FakeCluster):
    _site: "UpgradingSite"

    def __init__(self, site: "UpgradingSite", plane: Node) -> None:
        super().__init__(site)
        self._plane = plane

    def nodes(self) -> Sequence[FakeNode]:
        site = self._site
        if self._plane.name in site.silent:
            raise errors.CommandFailed(host="p", command="kubectl", rc=1, tail="no")
        return self.listed()

    def listed(self) -> Sequence[FakeNode]:
        """The Node objects, whoever asks."""
        site = self._site
        found = []
        for node in super().nodes():
            quiet = node.name in site.quiet
            found.append(
                VersionedNode(
                    name=node.name,
                    ready=node.ready and not quiet,
                    reason="quiet" if quiet else node.reason,
                    machine_id=node.machine_id,
                    labels=node.labels,
                    taints=node.taints,
                    unschedulable=site.is_closed(node.name),
                    kubelet_version=f"v{site.kubelets.get(node.name, OLD)}",
                    cordoned_by_us=node.cordoned_by_us,
                    in_maintenance=node.in_maintenance,
                )
            )
        return found

    def version(self) -> str:
        self._site.touch("cluster.version")
        if self._plane.name in self._site.silent:
            raise errors.CommandFailed(host="p", command="kubectl", rc=1, tail="no")
        return self._site.servers[self._plane.name]

    def api_readiness(self) -> str:
        return "refused" if self._plane.name in self._site.silent else ""

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]:
        return super().cordon([n for n in names if n not in self._site.by_operator])

    def uncordon(self, names: Sequence[str]) -> None:
        super().uncordon(names)
        for way in ("by_kubespray", "by_operator"):
            self._site.change(way, getattr(self._site, way) - set(names))

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None:
        self._site.touch("cluster.drain")
        assert all(self._site.is_closed(name) for name in names)
        assert not set(names) & {name for name, _ in self._site.routes}
        if self._site.budget:
            raise self._kept(names, [self._site.budget])
        for name in names:
            self._site.pods.pop(name, None)


class FakeEtcd:
    def __init__(self, site: "UpgradingSite") -> None:
        self._site = site

    def members(self) -> Sequence[EtcdMember]:
        self._site.touch("etcd.members")
        return [
            EtcdMember(
                name=f"etcd{number}",
                member_id=str(number),
                address=one.address,
                healthy=one.server_id not in self._site.without_etcd,
                leader=number == 1,
            )
            for number, one in enumerate(self._site.control_planes, 1)
        ]


class UpgradingSite(FakeSite):
    """A whole cluster of the old version.

    :ivar kubelets: version of each node.
    :ivar servers: version of each control plane's API server.
    :ivar silent: control planes whose API server does not answer.
    :ivar quiet: nodes whose kubelet does not report.
    :ivar by_kubespray: nodes that kubespray has cordoned.
    :ivar by_operator: nodes that an operator has cordoned.
    :ivar breaks_at: the node at which the playbook fails once, its kubelet upgraded.
    :ivar breaks_off: the connection is lost once while the playbook runs.
    :ivar batches: the limits of the upgrades that ran.
    """

    def __init__(self, planes: int = 1, workers: int = 2, **options: Any) -> None:
        super().__init__(**options)
        self.control_planes = [
            machine(Role.CONTROL_PLANE, number) for number in range(4, 4 + planes)
        ]
        self.workers = [machine(Role.WORKER, 50 + n) for n in range(workers)]
        self.kubelets: dict[str, str] = {}
        self.servers: dict[str, str] = {}
        self.silent: set[str] = set()
        self.quiet: set[str] = set()
        self.without_etcd: set[str] = set()
        self.by_kubespray: frozenset[str] = frozenset()
        self.by_operator: frozenset[str] = frozenset()
        self.breaks_at = ""
        self.breaks_off = False
        self.batches: list[str] = []
        run(
            Instantiate,
            self,
            RequestReader().read(stored(options.get("load_balancer", True))),
        )
        self.kubelets |= dict.fromkeys(self.members, OLD)
        self.servers |= {n: OLD for n in self.members if n.startswith("control")}
        self.start_again()

    def start_again(self) -> None:
        """Forget what was done so far."""
        for record in (self.calls, self.changes, self.runs, self.batches):
            record.clear()

    def is_closed(self, name: str) -> bool:
        return name in self.cordoned | self.by_kubespray | self.by_operator

    def move(self, versions: dict[str, str], name: str, version: str) -> None:
        """Install a version, and start what it is of."""
        if versions[name] != version:
            self.changes.append(f"{name} {version}")
            versions[name] = version
        self.quiet.discard(name)
        if versions is self.servers:
            self.silent.discard(name)

    @property
    def versions(self) -> set[str]:
        return {*self.kubelets.values(), *self.servers.values()}

    @property
    def playbooks(self) -> UpgradingPlaybooks:
        return UpgradingPlaybooks(self)

    def cluster(self, control_plane: Node) -> UpgradingCluster:
        super().cluster(control_plane)
        return UpgradingCluster(self, control_plane)

    def etcd(self, control_plane: Node) -> FakeEtcd:
        return FakeEtcd(self)
