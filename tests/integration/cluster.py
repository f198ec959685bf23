# SPDX-License-Identifier: Apache-2.0
"""One VNF instance as the integration tests drive it, and its cluster."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from lab import client
from lab.client import Patience, Tacker
from lab.cloud import ansible_server, base
from lab.cloud.hosts import Host
from tacker_k8s_mgmt.kubespray import inventory
from tests.helpers.tool_warnings import warnings_in

if TYPE_CHECKING:
    from tests.integration.laboratory import Lab

ROOT = Path(__file__).resolve().parent.parent.parent
REQUESTS = ROOT / "samples" / "requests"
PARAMETERS = "k8s_cluster_installation_param"
PROXY_SECRET = "pr0xy-cr3dential"
#: Accounts of the lab's hosts whose passwords are no other words.
VM_ACCOUNT = base.VM_ACCOUNTS[-1]
SERVER_ACCOUNT = ansible_server.ACCOUNTS[-1]
#: They stand for every credential, and must turn up nowhere.
SECRETS = (PROXY_SECRET, VM_ACCOUNT.password, SERVER_ACCOUNT.password)
#: The phase of the stand-in for kubespray that can be made to take its time or fail.
PHASE = "Join the cluster"
#: Seconds in which nothing in the lab moves, after which a wait is abandoned.
SILENCE = 120.0

Found = TypeVar("Found")


class Cluster:
    """One VNF instance made from the sample request."""

    def __init__(
        self, lab: "Lab", name: str, like: "Cluster | None", secret: bool
    ) -> None:
        self._lab = lab
        self.name = name
        self.id = lab.tacker.create(lab.vnfd_id, name)["id"]
        self.vim_name: str = like.vim_name if like else f"vim-{name}"
        home = f"/home/{SERVER_ACCOUNT.name if secret else 'ansible'}"
        self.directory: str = like.directory if like else f"{home}/clusters/{name}"
        self._operation = ""
        self._seen: set[str] = set()
        self._known_api: client.ClusterApi | None = None
        self._known_at = ("", "")
        self.body: dict[str, Any] = {}

    @property
    def kubeconfig(self) -> Path:
        """With which kubectl reaches the cluster; written when that is first needed."""
        return self._lab.scratch / f"{self.name}.kubeconfig"

    @property
    def parameters(self) -> dict[str, Any]:
        """Our part of the request."""
        ours: dict[str, Any] = self.body["additionalParams"][PARAMETERS]
        return ours

    def begin_instantiation(self) -> None:
        """Send the request."""
        self._operation = self._lab.tacker.operate(self.id, "instantiate", self.body)

    @property
    def is_balanced(self) -> bool:
        """Whether its request wants a load balancer."""
        given = self.body.get("additionalParams", {}).get(PARAMETERS, {})
        return "external_lb_param" in given

    @property
    def operation(self) -> str:
        """The id of the last operation."""
        return self._operation

    def follow(self, operation: str) -> None:
        """Take an operation that others have begun for the last one."""
        self._operation = operation

    def instantiate(self, expect: str = "COMPLETED") -> str:
        """Instantiate; the error text of the operation."""
        self.begin_instantiation()
        return self.wait(expect)

    def begin(self, verb: str) -> None:
        """Send ``retry`` or another verb for the last operation."""
        self._lab.tacker.handle(self._operation, verb)

    @contextlib.contextmanager
    def by_command(self, expect: str = "COMPLETED") -> Iterator[None]:
        """Wait for the operation that is started within."""
        with begun(self._lab.tacker, self.id) as started:
            yield
        (self._operation,) = started
        self.wait(expect)

    def _operations(self) -> set[str]:
        return operations(self._lab.tacker, self.id)

    @contextlib.contextmanager
    def handled(self, expect: str) -> Iterator[str]:
        """Wait for the last operation, for which a verb is sent within; its id."""
        with self._lab.tacker.leaving(self._operation):
            yield self._operation
        self.wait(expect)

    def handle(self, verb: str, expect: str) -> str:
        """Retry, roll back or fail the last operation."""
        self.begin(verb)
        return self.wait(expect)

    def refused(self, verb: str) -> str:
        """What Tacker says when it refuses a verb for the last operation."""
        path = f"/vnflcm/v1/vnf_lcm_op_occs/{self._operation}/{verb}"
        status, text = self._lab.tacker.refused("POST", path)
        assert status == 409, text
        return text

    def cancel(self) -> None:
        """Give up the last operation, whose conductor was killed."""
        self._lab.tacker.cancel(self._operation)

    def scale(
        self,
        kind: str,
        steps: int = 1,
        expect: str = "COMPLETED",
        aspect: str = "worker_instance",
        **changes: Any,
    ) -> str:
        """Scale the workers ``OUT`` or ``IN``; the error text of the operation.

        :param changes: structures of our parameters that the request overrides.
        """
        self.begin_scale(kind, steps, aspect, **changes)
        return self.wait(expect)

    def begin_scale(
        self,
        kind: str,
        steps: int = 1,
        aspect: str = "worker_instance",
        **changes: Any,
    ) -> None:
        """Send the request to scale."""
        body = {
            "type": f"SCALE_{kind}",
            "aspectId": aspect,
            "numberOfSteps": steps,
            **overriding(changes),
        }
        self._operation = self._lab.tacker.operate(self.id, "scale", body)

    def modify(
        self, metadata: dict[str, Any], expect: str = "COMPLETED", **more: Any
    ) -> str:
        """Modify the VNF instance; the error text of the operation."""
        self.begin_modification(metadata, **more)
        return self.wait(expect)

    def begin_modification(self, metadata: dict[str, Any], **more: Any) -> None:
        """Send the request to modify it."""
        path = f"{self._lab.tacker.LCM}/vnf_instances/{self.id}"
        with begun(self._lab.tacker, self.id) as started:
            self._lab.tacker.call("PATCH", path, json={"metadata": metadata, **more})
        (self._operation,) = started

    def heal(self, *servers: str, expect: str = "COMPLETED", **changes: Any) -> str:
        """Heal the VNFCs of these servers, or the whole VNF; the error text."""
        self.begin_heal(*servers, **changes)
        return self.wait(expect)

    def begin_heal(
        self, *servers: str, vnfcs: list[str] | None = None, **changes: Any
    ) -> None:
        """Send the request to heal.

        :param vnfcs: ``vnfcInstanceId``, in place of that of the servers.
        """
        body: dict[str, Any] = {"cause": "a test", **overriding(changes)}
        if vnfcs is not None:
            body["vnfcInstanceId"] = vnfcs
        if servers:
            body["vnfcInstanceId"] = [self.vnfc(server) for server in servers]
        self._begin_heal(body)

    def _begin_heal(self, body: dict[str, Any]) -> None:
        self._operation = self._lab.tacker.operate(self.id, "heal", body)

    def vnfc(self, server: str) -> str:
        """The id that a heal request has for the VNFC of a server."""
        info = self.show()["instantiatedVnfInfo"]["vnfcResourceInfo"]
        return next(
            str(vnfc["id"])
            for vnfc in info
            if vnfc["computeResource"]["resourceId"] == server
        )

    def terminate(self, expect: str = "COMPLETED", **changes: Any) -> str:
        """Terminate by force, if nothing else is said; the error text."""
        self.begin_termination(**changes)
        return self.wait(expect)

    def begin_termination(self, **changes: Any) -> None:
        """Send the request to terminate."""
        body = json.loads((REQUESTS / "terminate.json").read_text()) | changes
        self._operation = self._lab.tacker.operate(self.id, "terminate", body)

    def wait(self, expect: str) -> str:
        """Wait for a state of the last operation; its error text."""
        self._lab.tacker.wait(self._operation, expect)
        self._seen |= set(self.servers())
        if expect == "COMPLETED":
            assert not (found := self.warnings()), found
        return self.error()

    def warnings(self) -> list[str]:
        """Those in the log of the newest playbook run."""
        newest = f"$(ls -d {self.directory}/runs/[0-9]*/ | tail -n 1)log"
        log = self._lab.ansible(f'(cat "{newest}") 2>/dev/null; true')
        return warnings_in(log, *self._lab.expected_warnings)

    def warnings_of_sudo(self) -> list[str]:
        """What sudo on the VMs warns of, of its settings and of the host's name."""
        found: list[str] = []
        for host in self.hosts():
            # One that a test has stopped says nothing.
            with contextlib.suppress(RuntimeError):
                said = client.on_host(host.id, "sh", "-c", "sudo -n true 2>&1; true")
                found += said.splitlines()
        return found

    def error(self) -> str:
        """The error text of the last operation."""
        return str((self.occurrence().get("error") or {}).get("detail", ""))

    def wait_for_phase(self, phase: str = PHASE) -> None:
        """Wait until the newest playbook run has reached a phase."""
        log = f"cat {self.directory}/runs/*/log 2>&1; true"
        eventually(lambda: phase in self._lab.ansible(log))

    def occurrence(self) -> dict[str, Any]:
        return self._lab.tacker.occurrence(self._operation)

    def show(self) -> dict[str, Any]:
        return self._lab.tacker.show(self.id)

    def stacks(self) -> list[str]:
        """Names of the VNF's Heat stacks, nested ones included."""
        return [name for name in client.stacks() if self.id in name]

    def servers(self) -> dict[str, str]:
        """Server id and name of the VNF's VMs."""
        info = self.show().get("instantiatedVnfInfo") or {}
        return {
            vnfc["computeResource"]["resourceId"]: vnfc["vduId"]
            for vnfc in info.get("vnfcResourceInfo", [])
        }

    def hosts(self) -> list[Host]:
        """The VMs that bear the VNF instance's id in their name."""
        return [host for host in client.hosts() if self.id in host.name]

    def workers(self) -> dict[str, str]:
        """Server id of each worker VM by its address in the cluster."""
        found = [one for one, vdu in self.servers().items() if vdu == "workerNode"]
        return {
            next(a for a in host.addresses if a.startswith("10.10.")): host.id
            for host in client.hosts()
            if host.id in found
        }

    @property
    def uid(self) -> str:
        """Which Kubernetes cluster it is: another one after a heal of the whole VNF."""
        words = ("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
        return self.kubectl(*words).strip()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What the real kubectl prints, through the load balancer."""
        return self._api().kubectl(*arguments, stdin=stdin)

    def routes(self) -> set[str]:
        """Names of the workers that the load balancer knows."""
        return {worker["name"] for worker in self.balancer("status")["workers"]}

    def balancer(self, verb: str, *arguments: str) -> dict[str, Any]:
        """Call the script by hand on the load balancer's VM."""
        script = (ROOT / "scripts" / "install_external_lb.sh").read_text()
        server = self.server("externalLB")
        client.on_host(server, "tee", "/tmp/lb.sh", stdin=script)
        told = client.on_host(server, "bash", "/tmp/lb.sh", verb, *arguments)
        return dict(json.loads(told)) if verb == "status" else {}

    def inventory(self, in_order: bool = False) -> list[str]:
        """Names of the hosts in the inventory, as they stand in it or sorted."""
        text = self._lab.ansible(f"cat {self.directory}/hosts.yaml")
        names = [node.name for node in inventory.parse(text)]
        return names if in_order else sorted(names)

    def runs(self) -> list[str]:
        """The playbook runs in the cluster's directory, the oldest first."""
        listed = self._lab.ansible(f"ls {self.directory}/runs").split()
        return sorted(one for one in listed if one[:1].isdigit())

    def server(self, vdu: str) -> str:
        return next(one for one, name in self.servers().items() if name == vdu)

    def balancer_address(self) -> str:
        """Where the API is reached from outside: the load balancer, if there is one."""
        return self.address(
            self.server("externalLB" if self.is_balanced else "masterNode")
        )

    @staticmethod
    def address(server: str) -> str:
        """Where a VM is reached from outside."""
        found = next(host for host in client.hosts() if host.id == server)
        return next(a for a in found.addresses if a.startswith("10.99."))

    def _api(self) -> client.ClusterApi:
        """The API where it is now, as the control plane of now tells it."""
        where = (self.server("masterNode"), f"{self.balancer_address()}:6443")
        if self._known_api is None or self._known_at != where:
            self._known_api = client.ClusterApi(*where, self.kubeconfig)
            self._known_at = where
        return self._known_api

    def ca(self) -> Path:
        """The CA's certificate, as a file."""
        return self._api().ca

    def api(self, path: str) -> str:
        """What the API says through the load balancer, certificate verified."""
        return self._api().get(path)

    def nodes(self) -> list[dict[str, Any]]:
        """The cluster's nodes."""
        return self._api().items("/api/v1/nodes")

    def pods(self, label: str) -> list[dict[str, Any]]:
        """The pods with this label in the namespace ``default``."""
        path = "/api/v1/namespaces/default/pods"
        return self._api().items(f"{path}?labelSelector={quote(label)}")

    def ready_nodes(self) -> dict[str, bool]:
        """Whether each node of the cluster is Ready."""
        return {
            node["metadata"]["name"]: any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in node["status"]["conditions"]
            )
            for node in self.nodes()
        }

    def assert_nothing_left(self) -> None:
        """No VIM, directory, host or stack of this VNF."""
        vims = [vim["name"] for vim in self._lab.tacker.vims()]
        assert self.vim_name not in vims
        assert "No such file" in self._lab.ansible(f"ls -d {self.directory} 2>&1; true")
        assert self.stacks() == []
        assert [host for host in client.hosts() if host.id in self._seen] == []

    @staticmethod
    def assert_no_secret_in(text: str) -> None:
        assert [secret for secret in SECRETS if secret in text] == []


def overriding(changes: dict[str, Any]) -> dict[str, Any]:
    return {"additionalParams": {PARAMETERS: changes}} if changes else {}


def operations(tacker: Tacker, vnf_id: str) -> set[str]:
    """Ids of the operations of a VNF instance."""
    every = tacker.call("GET", f"{tacker.LCM}/vnf_lcm_op_occs").json()
    return {one["id"] for one in every if one["vnfInstanceId"] == vnf_id}


@contextlib.contextmanager
def begun(tacker: Tacker, vnf_id: str) -> Iterator[list[str]]:
    """The id of the operation that is started within, as soon as Tacker shows it.

    The v1 API shows none that modifies until the driver's hook has begun.
    """
    before = operations(tacker, vnf_id)
    started: list[str] = []
    yield started

    def is_shown() -> bool:
        with contextlib.suppress(RuntimeError):
            return bool(tacker.occurrence(started[0]))
        return False

    # The conductor makes the operation of a modification, after Tacker's answer.
    started += eventually(lambda: operations(tacker, vnf_id) - before)
    eventually(is_shown)


def eventually(what: Callable[[], Found]) -> Found:
    """What *what* returns as soon as it is true.

    For what nobody promised to hold at once: an operation that is COMPLETED did. It may
    take as long as something in the lab moves.
    """
    patience = Patience(client.moved, SILENCE)
    while True:
        if found := what():
            return found
        assert not patience.is_over(), "not so, and nothing moves"
        time.sleep(0.3)
