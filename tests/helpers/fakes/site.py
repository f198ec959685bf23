# SPDX-License-Identifier: Apache-2.0
"""A site whose parts are all fakes."""

from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications.host import ApplicationHost
from tacker_k8s_mgmt.features.node_settings.marks import MetadataClient
from tacker_k8s_mgmt.features.pod_network.measurement import PodNetwork
from tacker_k8s_mgmt.model.nodes import Count, Machine, MachineIdentity, Node
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import Machines, Unfinished
from tacker_k8s_mgmt.topology.scaling_groups import Group, GroupSize, Member
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.helpers.fakes.cluster import FakeCluster, FakeMetadataClient
from tests.helpers.fakes.helm import FakeHelmHost
from tests.helpers.fakes.load_balancer import FakeBalancer
from tests.helpers.fakes.manifests import FakeManifests
from tests.helpers.fakes.playbooks import FakePlaybooks
from tests.helpers.fakes.pod_network import FakePodNetwork
from tests.helpers.fakes.state import SiteState
from tests.helpers.fakes.vims import FakeVims
from tests.helpers.fakes.work_directory import FakeWorkDir


class FakeSite(SiteState):
    """The site's interface to operations, over that state."""

    def __init__(self, load_balancer: bool = True) -> None:
        super().__init__(load_balancer)
        self.vims = FakeVims(self)

    def lock(self, patience: float | None = None, within: float = 0.0) -> None:
        self.touch(f"lock for {patience:g} s" if patience else "lock")

    def expect_stack(self) -> None:
        """It is listed at once."""

    def machines(self) -> Machines:
        self.touch("machines")
        everything = [*self.control_planes, *self.workers]
        balancer = [self.load_balancer] if self.load_balancer else []
        places = {
            one.server_id: frozenset({"top", f"member-{one.server_id}"})
            for one in (*everything, *balancer)
        }
        return Machines(
            vms=(*self._complete(everything), *balancer),
            places=places,
            unfinished=tuple(
                Unfinished(one.role, one.server_id, "w_ssh is CREATE_FAILED")
                for one in everything
                if one.server_id in self.unfinished
            ),
            stack_id="stack-of-the-vnf",
            groups=self.scaling_groups(places),
            unhealthy_stacks=tuple(
                StackResource(
                    *("group", f"of-{one}", "worker.yaml", "", "CHECK_FAILED"),
                    nested_stack_id=f"member-{one}",
                )
                for one in sorted(self.marked)
            ),
        )

    def scaling_groups(self, places: Mapping[str, frozenset[str]]) -> tuple[Group, ...]:
        """The workers' group, with its members in the order of their creation."""
        members = (
            Member(
                vm.server_id,
                "CHECK_FAILED"
                if vm.server_id in self.unfinished
                else "CREATE_COMPLETE",
                created=f"{place:04}",
                ids=(places[vm.server_id] - {"top"}) | {vm.server_id},
                is_unhealthy=vm.server_id in self.unfinished,
            )
            for place, vm in enumerate(self.workers)
        )
        return (Group("worker_instance", self.group_status, tuple(members)),)

    def _complete(self, machines: Sequence[Machine]) -> tuple[Machine, ...]:
        return tuple(one for one in machines if one.server_id not in self.unfinished)

    def package_findings(self) -> Sequence[str]:
        return self.package

    def base_hot_findings(self, flavour_id: str, user_data: str = "") -> Sequence[str]:
        return self.base_hot

    def server_findings(self) -> Sequence[str]:
        return self.server

    def package_files(self, path: str) -> Mapping[str, bytes]:
        files = {
            file: content
            for file, content in self.package_content.items()
            if file == path or file.startswith(f"{path}/")
        }
        if not files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return {name.removeprefix(path).strip("/"): files[name] for name in files}

    def wait_reachable(self, machines: Sequence[Machine]) -> None:
        self.touch("wait_reachable")
        self.tried |= {one.server_id for one in machines}
        silent = [one.server_id for one in machines if one.server_id in self.dead]
        if silent:
            raise errors.RemoteError(detail=f"no answer from {', '.join(silent)}")
        for one in machines:
            if one.server_id in self.unfit:
                raise self.unfit[one.server_id]
        for one in machines:
            key = self.known.setdefault(one.ssh_address, one.server_id)
            if key != one.server_id:
                raise errors.HostKeyError(host=one.ssh_address, recorded="known_hosts")

    def unusable(
        self, nodes: Sequence[Node], renewed: Collection[str] = ()
    ) -> Mapping[str, errors.RemoteError]:
        self.tried |= {node.server_id for node in nodes}
        silent = {
            node.name: self._no_answer(node)
            for node in nodes
            if node.server_id in self.dead
        }
        unfit = {
            n.name: self.unfit[n.server_id] for n in nodes if n.server_id in self.unfit
        }
        return {**unfit, **silent}

    def clocks(self) -> Mapping[str, float]:
        return {server: self.ahead.get(server, 0.0) for server in self.tried}

    def clocks_of(self, nodes: Sequence[Node]) -> Mapping[str, float]:
        there = (node for node in nodes if node.server_id not in self.dead)
        return {node.name: self.ahead.get(node.server_id, 0.0) for node in there}

    def _no_answer(self, node: Node) -> errors.ConnectError:
        return errors.ConnectError(
            user="u", host=node.ssh_address, port=22, seconds=1, reason="no"
        )

    def identity(self, node: Node, *, again: bool = False) -> MachineIdentity:
        return MachineIdentity(node.server_id, "boot", self.nic_mtu)

    def restart_kubelets(self, nodes: Sequence[Node]) -> None:
        self.touch("restart_kubelets")
        self.restarted += [node.name for node in nodes]

    def trust_registries(self, nodes: Sequence[Node], members: Collection[str]) -> None:
        silent = [node.name for node in nodes if node.server_id in self.dead]
        if silent:
            raise errors.RemoteError(detail=f"no answer from {', '.join(silent)}")
        self.trusting |= {node.server_id for node in nodes}

    def attachments(self) -> Sequence[Attachment]:
        self.touch("attachments")
        return self.present

    def fixed_groups(self) -> Sequence[str]:
        return self.fixed

    def group_sizes(self) -> Mapping[str, GroupSize]:
        self.touch("group_sizes")
        return self.groups

    def changes_of_heal(self, request: Any) -> Mapping[str, Sequence[str]]:
        return self.heal_changes

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
            raise self._no_answer(control_plane)
        refused = self.unfit.get(control_plane.server_id)
        # With a full disk it still answers.
        if refused and not isinstance(refused, errors.UnusableError):
            raise refused
        return FakeCluster(self)

    def applications(self, control_plane: Node) -> Any:
        """Of a cluster that has none."""
        return SimpleNamespace(records=SimpleNamespace(read=dict))

    def manifests(self, control_plane: Node) -> FakeManifests:
        if control_plane.server_id in self.dead:
            self.cluster(control_plane)
        return FakeManifests(self)

    def helm(self, control_plane: Node) -> FakeHelmHost:
        self.cluster(control_plane)
        return FakeHelmHost(self, control_plane)

    def client(self, connect: Any, control_plane: Node) -> Any:
        """The fake of what a feature asks the cluster with."""
        fakes = {
            PodNetwork: self.pod_network,
            ApplicationHost: self.applications,
            MetadataClient: self.metadata_client,
        }
        return fakes[connect.__self__](control_plane)

    def metadata_client(self, control_plane: Node) -> FakeMetadataClient:
        self.cluster(control_plane)
        return FakeMetadataClient(self)

    def pod_network(self, control_plane: Node) -> FakePodNetwork:
        return FakePodNetwork(self)

    def balancer(self, machine: Machine) -> FakeBalancer:
        return FakeBalancer(self)
