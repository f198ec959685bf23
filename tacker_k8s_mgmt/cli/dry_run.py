# SPDX-License-Identifier: Apache-2.0
"""An instantiation that touches nothing: the real steps on a site that only records.

So a preview shows what the operation itself would write and call, in its order.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import SecretStr

from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.instantiate import Instantiate
from tacker_k8s_mgmt.lifecycle.object_ports import Object
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.model.cluster import ClusterAccess, NodeObject
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, Call
from tacker_k8s_mgmt.model.nodes import Machine, Node
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.model.pod_network import Measurement
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.heat_stack import Machines

_VNF = "<VNF instance id>"
_ASSUMED_MTU = 1500  # bytes, of the VMs' interfaces


@dataclass
class Record:
    """What an instantiation would do.

    :param files: by name in the cluster's directory, in the order of writing.
    :param balancer: the call of the load balancer's script, if there is one.
    """

    files: dict[str, str] = field(default_factory=dict)
    playbooks: list[str] = field(default_factory=list)
    balancer: Call | None = None
    vim: ports.VimSpec | None = None


def rehearse(params: InstallParams, machines: Machines) -> Record:
    """Take all steps of an instantiation on these VMs.

    :raises K8sMgmtError: what the operation would refuse.
    """
    site = _Site(params, machines)
    deps = Dependencies(
        params,
        _VNF,
        cast(ports.Site, site),
        cast(ports.Clock, site),
        ready_timeout=0,
        poll_interval=0,
        on_progress=lambda progress: None,
    )
    for step in Instantiate(deps).steps():
        step.take()
    return site.record


class _Site:
    """A site without problems, and all of its parts in one."""

    def __init__(self, params: InstallParams, machines: Machines) -> None:
        self.record = Record()
        self.path = params.ansible.directory
        self.workdir = self.playbooks = self.vims = self
        self._machines = machines
        self._wanted = params.load_balancer

    def cluster(self, control_plane: Node) -> "_Site":
        return self

    def pod_network(self, control_plane: Node) -> "_Site":
        return self

    def manifests(self, control_plane: Node) -> "_Site":
        return self

    def balancer(self, machine: Machine) -> "_Site":
        return self

    def machines(self) -> Machines:
        return self._machines

    # Nothing is wrong

    def package_findings(self) -> Sequence[str]:
        return ()

    server_findings = package_findings

    def api_problem(self) -> str:
        return ""

    def measure(self, nodes: Sequence[Node], hub: Node) -> Sequence[Measurement]:
        return ()

    def name_taken(self, name: str, tenant: str = "") -> bool:
        return False

    def _do_nothing(self, *arguments: object, **options: object) -> None:
        pass

    lock = wait_reachable = forget = save_host_keys = claim = _do_nothing
    restart_kubelets = trust_registries = _do_nothing
    # As in the v2 API: no login is made on machines that are not there.
    helm_password = _do_nothing
    # As in the v2 API: tenants have no VIMs.
    of_tenants = apply = delete = wait_gone = _do_nothing

    def identity(self, node: Node, **_: object) -> ports.MachineIdentity:
        return ports.MachineIdentity("", "", _ASSUMED_MTU)

    def clocks(self) -> Mapping[str, float]:
        return {}

    def now(self) -> float:
        return 0.0

    # The cluster's directory

    def read(self, name: str) -> str | None:
        return self.record.files.get(name)

    def write(self, name: str, text: str) -> bool:
        self.record.files[name] = text
        return True

    # The playbook, the cluster and its VIM

    def done(self, request: PlaybookRequest) -> bool:
        return False

    def run(self, request: PlaybookRequest, nodes: int, on_progress: Any) -> None:
        self.record.playbooks.append(request.playbook)

    def nodes(self) -> Sequence[NodeObject]:
        members = inventory.parse(self.record.files[inventory.FILE_NAME])
        return [NodeObject(node.name, True, "", node.address, "") for node in members]

    def admin_access(self) -> ClusterAccess:
        return ClusterAccess(SecretStr(""), "")

    def register(self, spec: ports.VimSpec) -> str:
        if not spec.tenant:
            self.record.vim = spec
        return ""

    def serves(self, version: str, kind: str) -> bool:
        return True

    def present(self, objects: Sequence[Object]) -> Sequence[Object]:
        """All of them, so that there is nothing to make; Secrets have a token."""
        text = base64.b64encode(b"unknown").decode()
        return [{**one, "data": {"token": text, "ca.crt": text}} for one in objects]

    # The load balancer

    def call(self, call: Call) -> str:
        self.record.balancer = call
        return ""

    def status(self) -> BalancerStatus:
        port = self._wanted.api_port if self._wanted else None
        return BalancerStatus(True, True, True, port, (), (), ())
