"""The lab as the integration tests see it, and clusters that clean up after themselves.

``make test`` runs these tests inside the namespaces of a lab of their own.
"""

import contextlib
import copy
import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import inside, settings
from lab.cloud import ansible_server, base
from tacker_k8s_mgmt.cli import main
from tacker_k8s_mgmt.cluster import inventory
from tests.integration import cnf

ROOT = Path(__file__).resolve().parent.parent.parent
REQUESTS = ROOT / "samples" / "requests"
ANSIBLE_SERVER = "10.99.0.5"
CONDUCTOR = "tacker-conductor"
PARAMETERS = "k8s_cluster_installation_param"
PROXY_SECRET = "pr0xy-cr3dential"
#: Accounts of the lab's hosts whose passwords are no other words.
VM_ACCOUNT = base.VM_ACCOUNTS[-1]
SERVER_ACCOUNT = ansible_server.ACCOUNTS[-1]
#: They stand for every credential, and must turn up nowhere.
SECRETS = (PROXY_SECRET, VM_ACCOUNT.password, SERVER_ACCOUNT.password)
#: The phase of the stand-in for kubespray that can be made to take its time or fail.
PHASE = "Join the cluster"


class Cluster:
    """One VNF instance made from the sample request."""

    def __init__(
        self, lab: "Lab", name: str, like: "Cluster | None", secret: bool
    ) -> None:
        self._lab = lab
        self.name = name
        self.id = lab.tacker.create(lab.vnfd_id, name)["id"]
        self.vim_name = like.vim_name if like else f"vim-{name}"
        home = f"/home/{SERVER_ACCOUNT.name if secret else 'ansible'}"
        self.directory = like.directory if like else f"{home}/clusters/{name}"
        self._operation = ""
        self._seen: set[str] = set()
        self.body: dict[str, Any] = {}

    @property
    def parameters(self) -> dict[str, Any]:
        """Our part of the request."""
        ours: dict[str, Any] = self.body["additionalParams"][PARAMETERS]
        return ours

    def begin_instantiation(self) -> None:
        """Send the request."""
        self._operation = self._lab.tacker.operate(self.id, "instantiate", self.body)

    def instantiate(self, expect: str = "COMPLETED") -> str:
        """Instantiate; the error text of the operation."""
        self.begin_instantiation()
        return self.wait(expect)

    def begin(self, verb: str) -> None:
        """Send ``retry`` or another verb for the last operation."""
        self._lab.tacker.handle(self._operation, verb)

    def handle(self, verb: str, expect: str) -> str:
        """Retry, roll back or fail the last operation."""
        self.begin(verb)
        return self.wait(expect)

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
        body = {
            "type": f"SCALE_{kind}",
            "aspectId": aspect,
            "numberOfSteps": steps,
            **_overriding(changes),
        }
        self._operation = self._lab.tacker.operate(self.id, "scale", body)
        return self.wait(expect)

    def heal(self, *servers: str, expect: str = "COMPLETED", **changes: Any) -> str:
        """Heal the VNFCs of these servers, or the whole VNF; the error text."""
        body = {"cause": "a test", **_overriding(changes)}
        if servers:
            info = self.show()["instantiatedVnfInfo"]["vnfcResourceInfo"]
            body["vnfcInstanceId"] = [
                vnfc["id"]
                for vnfc in info
                if vnfc["computeResource"]["resourceId"] in servers
            ]
        self._operation = self._lab.tacker.operate(self.id, "heal", body)
        return self.wait(expect)

    def terminate(self, expect: str = "COMPLETED") -> str:
        """Terminate by force; the error text of the operation."""
        body = json.loads((REQUESTS / "terminate.json").read_text())
        self._operation = self._lab.tacker.operate(self.id, "terminate", body)
        return self.wait(expect)

    def wait(self, expect: str) -> str:
        """Wait for a state of the last operation; its error text."""
        found = self._lab.tacker.wait(self._operation, expect)
        self._seen |= set(self.servers())
        return str((found.get("error") or {}).get("detail", ""))

    def wait_for_phase(self, phase: str = PHASE, limit: float = 120) -> None:
        """Wait until the newest playbook run has reached a phase."""
        deadline = time.monotonic() + limit
        log = f"cat {self.directory}/runs/*/log 2>&1; true"
        while phase not in self._lab.ansible(log):
            assert time.monotonic() < deadline, f"{phase} was not reached"
            time.sleep(0.3)

    def occurrence(self) -> dict[str, Any]:
        return self._lab.tacker.occurrence(self._operation)

    def show(self) -> dict[str, Any]:
        return self._lab.tacker.show(self.id)

    def stacks(self) -> list[str]:
        """Names of the VNF's Heat stacks, nested ones included."""
        rows = inside.command(
            ["openstack", "stack", "list", "--nested", "-f", "json"], limit=120
        )
        return [
            row["Stack Name"]
            for row in json.loads(rows)
            if self.id in row["Stack Name"]
        ]

    def servers(self) -> dict[str, str]:
        """Server id and name of the VNF's VMs."""
        info = self.show().get("instantiatedVnfInfo") or {}
        return {
            vnfc["computeResource"]["resourceId"]: vnfc["vduId"]
            for vnfc in info.get("vnfcResourceInfo", [])
        }

    def workers(self) -> dict[str, str]:
        """Server id of each worker VM by its address in the cluster."""
        found = [one for one, vdu in self.servers().items() if vdu == "workerNode"]
        return {
            next(a for a in host["addresses"] if a.startswith("10.10.")): host["id"]
            for host in inside.hosts()
            if host["id"] in found
        }

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What the real kubectl prints, through the load balancer."""
        return self._api().kubectl(*arguments, stdin=stdin)

    def routes(self) -> set[str]:
        """Names of the workers that the load balancer knows."""
        return {one["name"] for one in self.balancer("status")["workers"]}

    def balancer(self, verb: str, *arguments: str) -> dict[str, Any]:
        """Call the script by hand on the load balancer's VM."""
        script = (ROOT / "scripts" / "install_external_lb.sh").read_text()
        inside.on_host(self.server("externalLB"), "tee", "/tmp/lb.sh", stdin=script)
        told = inside.on_host(
            self.server("externalLB"), "bash", "/tmp/lb.sh", verb, *arguments
        )
        return dict(json.loads(told)) if verb == "status" else {}

    def inventory(self) -> list[str]:
        """Names of the hosts in the inventory."""
        text = self._lab.ansible(f"cat {self.directory}/hosts.yaml")
        return sorted(node.name for node in inventory.parse(text))

    def runs(self) -> list[str]:
        """The playbook runs in the cluster's directory, the oldest first."""
        listed = self._lab.ansible(f"ls {self.directory}/runs").split()
        return sorted(one for one in listed if one[:1].isdigit())

    def server(self, vdu: str) -> str:
        return next(one for one, name in self.servers().items() if name == vdu)

    def balancer_address(self) -> str:
        """Where the load balancer is reached from outside."""
        server = self.server("externalLB")
        balancer = next(host for host in inside.hosts() if host["id"] == server)
        return next(str(a) for a in balancer["addresses"] if a.startswith("10.99."))

    def _api(self) -> inside.ClusterApi:
        return inside.ClusterApi(
            self.server("masterNode"),
            f"{self.balancer_address()}:6443",
            self._lab.scratch / f"{self.name}.kubeconfig",
        )

    def ca(self) -> Path:
        """The CA's certificate, as a file."""
        return self._api().ca

    def api(self, path: str) -> str:
        """What the API says through the load balancer, certificate verified."""
        return self._api().get(path)

    def ready_nodes(self) -> dict[str, bool]:
        """Whether each node of the cluster is Ready, by the real kubectl."""
        nodes = json.loads(self._api().kubectl("get", "nodes", "-o", "json"))
        return {
            node["metadata"]["name"]: any(
                one["type"] == "Ready" and one["status"] == "True"
                for one in node["status"]["conditions"]
            )
            for node in nodes["items"]
        }

    def assert_nothing_left(self) -> None:
        """No VIM, directory, host or stack of this VNF."""
        vims = [vim["name"] for vim in self._lab.tacker.vims()]
        assert self.vim_name not in vims
        assert "No such file" in self._lab.ansible(f"ls -d {self.directory} 2>&1; true")
        assert self.stacks() == []
        assert [host for host in inside.hosts() if host["id"] in self._seen] == []

    @staticmethod
    def assert_no_secret_in(text: str) -> None:
        assert [secret for secret in SECRETS if secret in text] == []


def _overriding(changes: dict[str, Any]) -> dict[str, Any]:
    return {"additionalParams": {PARAMETERS: changes}} if changes else {}


class Lab:
    """The running lab and the package in it."""

    def __init__(self, scratch: Path, flavour: str = "simple") -> None:
        self.scratch = scratch
        self.flavour = flavour
        self.tacker = inside.tacker()
        csar = scratch / f"{flavour}.zip"
        # An id of its own: a lab may have the demo's package, too.
        vnfd_id = ["--vnfd-id", str(uuid.uuid4())]
        assert main(["csar", "build", flavour, "-o", str(csar), *vnfd_id]) == 0
        package = self.tacker.upload_package(csar, {"test": uuid.uuid4().hex})
        self.package_id, self.vnfd_id = package["id"], package["vnfdId"]

    @contextlib.contextmanager
    def instance(
        self,
        name: str,
        like: Cluster | None = None,
        dormant: bool = False,
        secret: bool = False,
        **changes: Any,
    ) -> Iterator[Cluster]:
        """A VNF instance, deleted at the end whatever became of it.

        :param like: use the directory and the VIM name of this one.
        :param dormant: leave our parameters out of the request.
        :param secret: log in everywhere with passwords that are no other words.
        :param changes: structures of our parameters to change, by their name.
        """
        cluster = Cluster(self, f"{name}-{uuid.uuid4().hex[:6]}", like, secret)
        cluster.body = self._body(cluster, dormant, changes)
        if secret:
            self._log_in_secretly(cluster.parameters)
        try:
            yield cluster
        finally:
            self._clean(cluster)

    def _body(
        self, cluster: Cluster, dormant: bool, changes: dict[str, Any]
    ) -> dict[str, Any]:
        sample = REQUESTS / f"instantiate-{self.flavour}.json"
        body = json.loads(sample.read_text())
        given = body["additionalParams"]
        if dormant:
            del given[PARAMETERS]
            return dict(body)
        ours = given[PARAMETERS]
        ours["vim_name"] = cluster.vim_name
        ours["ansible"]["transferring_inventory_path"] = cluster.directory
        ours["proxy"] = {
            "http_proxy": f"http://someone:{PROXY_SECRET}@10.99.0.1:3128",
            "k8s_node_cidr": "10.10.0.0/24",
        }
        for name, change in copy.deepcopy(changes).items():
            ours[name] = {**ours.get(name, {}), **change}
        return dict(body)

    @staticmethod
    def _log_in_secretly(parameters: dict[str, Any]) -> None:
        places = {"ansible": SERVER_ACCOUNT}
        places |= dict.fromkeys(("master_node", "worker_node"), VM_ACCOUNT)
        for place, account in places.items():
            wanted = {"username": account.name, "password": account.password}
            parameters[place].update(wanted)
        balancer = {
            "ssh_username": VM_ACCOUNT.name,
            "ssh_password": VM_ACCOUNT.password,
        }
        parameters["external_lb_param"].update(balancer)

    @contextlib.contextmanager
    def cnf(self, vim: str) -> Iterator[cnf.Cnf]:
        """A CNF on the VIM of this name, deleted at the end."""
        found = next(one for one in self.tacker.vims() if one["name"] == vim)
        one = cnf.Cnf(self.tacker, self.scratch, found["id"])
        try:
            yield one
        finally:
            one.remove()

    @contextlib.contextmanager
    def options(self, **values: float) -> Iterator[None]:
        """A conductor that has these values of our options."""
        path = inside.state() / "etc" / "tacker.conf"
        before = path.read_text()
        # Of an option that is set twice the last one counts.
        lines = "".join(f"{name} = {value}\n" for name, value in values.items())
        path.write_text(f"{before}\n[k8s_mgmt]\n{lines}")
        try:
            self.kill_conductor()
            yield
        finally:
            path.write_text(before)
            self.kill_conductor()

    @staticmethod
    def kill_conductor() -> None:
        """Kill the conductor, without a warning, and start it again."""
        restart = [inside.SYSTEM_PYTHON, "-m", "lab.services", "restart", "--kill"]
        inside.command([*restart, CONDUCTOR], limit=120)

    @contextlib.contextmanager
    def cut(self, host: str) -> Iterator[None]:
        """A host that nobody reaches."""
        verb = [inside.SYSTEM_PYTHON, "-m", "lab.cloud"]
        inside.command([*verb, "cut", host])
        try:
            yield
        finally:
            inside.command([*verb, "restore", host])

    def _clean(self, cluster: Cluster) -> None:
        with contextlib.suppress(RuntimeError):
            if cluster.occurrence()["operationState"] == "FAILED_TEMP":
                cluster.handle("rollback", "ROLLED_BACK")
        if cluster.show()["instantiationState"] == "INSTANTIATED":
            with contextlib.suppress(RuntimeError):
                cluster.terminate()
        with contextlib.suppress(RuntimeError):
            self.tacker.delete(cluster.id)

    def ansible(self, line: str) -> str:
        """What a shell line prints on the Ansible server, as root."""
        return inside.on_host(ANSIBLE_SERVER, "sh", "-c", line)

    def logs(self) -> str:
        """Everything that the services and our journals have written."""
        places = (inside.state() / "log", settings.from_environment().journals)
        return "".join(
            path.read_text(errors="replace")
            for place in places
            for path in sorted(place.rglob("*"))
            if path.is_file()
        )


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    if "LAB_STATE" not in os.environ:
        pytest.fail("these tests run inside the lab: make test")
    return Lab(tmp_path_factory.mktemp("lab"))
