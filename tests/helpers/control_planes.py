# SPDX-License-Identifier: Apache-2.0
"""A site whose cluster has several control planes, and what kubespray does to them."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tests.helpers.fakes.cluster import FakeCluster
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.playbooks import FakePlaybooks, failed
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import run
from tests.helpers.requests import params

# An inventory is read some hundred times; the other one takes ten times as long.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Playbooks(FakePlaybooks):
    """kubespray takes the first of a group for the leader, and refuses to lose it."""

    def _groups(self) -> dict[str, list[str]]:
        text = self._site.files["hosts.yaml"].replace("!unsafe", "")
        groups = yaml.load(text, Loader=_LOADER)["all"]["children"]  # noqa: S506
        return {name: list(groups[name].get("hosts", ())) for name in groups}

    def _delegate(self, request: PlaybookRequest) -> None:
        """Without a load balancer, kubectl there asks the API server beside it."""
        super()._delegate(request)
        site, groups = self._site, self._groups()
        assert isinstance(site, AvailableSite)
        assert groups["etcd"][0] == groups["kube_control_plane"][0]
        first = self._inventory()[groups["kube_control_plane"][0]]
        if not site.load_balancer and Cluster(site, first).api_readiness():
            raise failed(request, f"{first.name}: connection refused", rc=2)

    def _cluster(self, request: PlaybookRequest) -> None:
        """Its role etcd continues only when all members are well."""
        site, known = self._site, self._inventory()
        assert isinstance(site, AvailableSite)
        planes = [known[name] for name in self._groups()["kube_control_plane"]]
        if not request.limit:
            site.change("etcd_members", _named(planes))
            super()._cluster(request)
            return
        assert request.limit.startswith("etcd,kube_control_plane")
        shut_out = request.limit.split(",!")[1:]
        live = [node for node in planes if node.name not in shut_out]
        assert not [node for node in live if node.server_id in site.dead]
        assert planes[0].address in site.etcd_members, "the first is new"
        assert all(site.etcd_is_well(etcd_member) for etcd_member in site.etcd_members)
        for node in live:
            if node.address not in site.etcd_members:
                grown = {**site.etcd_members, **_named([node])}
                # As etcd does it: by URLs, and two of one name are one member.
                members = request.extra_vars["etcd_peer_addresses"].split(",")
                pairs = dict(one.split("=") for one in members)
                assert set(pairs.values()) == {f"https://{one}:2380" for one in grown}
                site.change("etcd_members", grown)
        self._join(live)

    def _remove_node(self, request: PlaybookRequest) -> None:
        site, groups, known = self._site, self._groups(), self._inventory()
        assert isinstance(site, AvailableSite)
        self._delegate(request)
        for name in request.extra_vars["node"].split(","):
            assert name != groups["kube_control_plane"][0], "the first"
            if name in groups["etcd"]:
                assert known[name].address in site.etcd_members, "no member"
                site.leave_etcd(known[name].address)
        if len(groups["etcd"]) % 2 == 0:
            variables = json.loads(site.files["vars.json"])
            assert variables["ignore_assert_errors"] is True
        super()._remove_node(request)


def _named(planes: Sequence[Node]) -> dict[str, str]:
    return {node.address: node.etcd_member_name for node in planes}


class Cluster(FakeCluster):
    def __init__(self, site: "AvailableSite", node: Node) -> None:
        super().__init__(site)
        self._available = site
        self._node = node

    def api_readiness(self) -> str:
        self._site.touch("cluster.api_readiness")
        return "" if self._serves() else "connection refused"

    def uncertified(self, addresses: Sequence[str]) -> tuple[str, ...]:
        self._site.touch("cluster.uncertified")
        return tuple(set(addresses) & self._available.not_certified)

    def move_cluster_info(self, address: str, server: str) -> bool:
        self._site.touch("cluster.move_cluster_info")
        moves = self._available.cluster_info == f"https://{address}:6443"
        if moves:
            self._site.change("cluster_info", server)
        return moves

    def _serves(self) -> bool:
        return self._available.serves(self._node)


class ThroughApi:
    """What asks the API server of a node, whatever it asks."""

    #: Asked on the node itself.
    _ON_THE_NODE = frozenset({"api_readiness", "uncertified"})

    def __init__(self, asked: Any, site: "AvailableSite", node: Node) -> None:
        self._asked = asked
        self._site = site
        self._node = node

    def __getattr__(self, name: str) -> Any:
        if name not in self._ON_THE_NODE and not self._site.serves(self._node):
            raise errors.RemoteError(detail=f"{self._node.name}: connection refused")
        return getattr(self._asked, name)


class Etcd:
    def __init__(self, site: "AvailableSite") -> None:
        self._site = site

    def members(self) -> tuple[EtcdMember, ...]:
        self._site.touch("etcd.members")
        members = self._site.etcd_members
        well = [member for member in members if self._site.etcd_is_well(member)]
        if not self._site.etcd_has_majority():
            well = []
        return tuple(
            EtcdMember(
                name=name,
                member_id=f"id-{address}",
                address=address,
                healthy=address in well,
                leader=address in well[:1],
                problem="" if address in well else "no answer",
            )
            for address, name in members.items()
        )

    def run(self, *command: str, limit: float = 5.0) -> str:
        *verb, member_id = command
        assert verb == ["member", "remove"]
        self._site.touch("etcd.remove")
        self._site.leave_etcd(member_id.removeprefix("id-"))
        return ""


class AvailableSite(FakeSite):
    """Control planes 1, 2, 3 (41, 42), two workers, a load balancer.

    :ivar etcd_members: names of etcd's members by their address.
    :ivar api_is_down: addresses of control planes whose API server is down.
    :ivar cluster_info: where newcomers look for the API.
    """

    def __init__(
        self, planes: int = 3, load_balancer: bool = True, **changes: Any
    ) -> None:
        super().__init__(load_balancer)
        numbers = (1, 2, 3, 41, 42)[:planes]
        self.control_planes = [machine(Role.CONTROL_PLANE, n) for n in numbers]
        self.etcd_members: dict[str, str] = {}
        self.etcd_is_down: set[str] = set()
        self.api_is_down: set[str] = set()
        self.not_certified: set[str] = set()
        self.cluster_info = "https://10.10.0.1:6443"
        if not load_balancer:
            changes["external_lb_param"] = None
        self.wanted = params(**changes)
        run(Instantiate, self, self.wanted)
        for noted in (self.calls, self.forgotten, self.changes, self.runs):
            noted.clear()

    @property
    def playbooks(self) -> Playbooks:
        return Playbooks(self)

    def cluster(self, control_plane: Node) -> Any:
        super().cluster(control_plane)
        return ThroughApi(Cluster(self, control_plane), self, control_plane)

    def manifests(self, control_plane: Node) -> Any:
        return ThroughApi(super().manifests(control_plane), self, control_plane)

    def applications(self, control_plane: Node) -> Any:
        return ThroughApi(super().applications(control_plane), self, control_plane)

    def pod_network(self, control_plane: Node) -> Any:
        return ThroughApi(super().pod_network(control_plane), self, control_plane)

    def etcd(self, control_plane: Node) -> Etcd:
        super().cluster(control_plane)
        return Etcd(self)

    def serves(self, node: Node) -> bool:
        """Whether the API server of a control plane answers."""
        address = node.address
        if address in self.api_is_down or address not in self.etcd_members:
            return False
        return self.etcd_has_majority()

    def etcd_is_well(self, address: str) -> bool:
        owners = [
            control_plane
            for control_plane in self.control_planes
            if control_plane.address == address
        ]
        answers = bool(owners) and owners[0].server_id not in self.dead
        return answers and address not in self.etcd_is_down

    def etcd_has_majority(self) -> bool:
        well = [member for member in self.etcd_members if self.etcd_is_well(member)]
        return len(well) > len(self.etcd_members) / 2

    def leave_etcd(self, address: str) -> None:
        """Take a member out, if it is there."""
        members = self.etcd_members
        kept = {member: members[member] for member in members if member != address}
        self.change("etcd_members", kept)

    def rebuild(self, *servers: str) -> tuple[str, ...]:
        """What Heat does between the hooks: a new server on each old port."""
        new = {server: f"{server}-anew" for server in servers}

        def built(one: Any) -> Any:
            return machine(one.role, _number(one), new[one.server_id])

        for listed in (self.control_planes, self.workers):
            listed[:] = [built(m) if m.server_id in new else m for m in listed]
        if self.load_balancer and self.load_balancer.server_id in new:
            self.load_balancer = built(self.load_balancer)
        self.dead -= set(servers)
        return tuple(new.values())


def _number(one: Any) -> int:
    return int(one.address.rpartition(".")[2])
