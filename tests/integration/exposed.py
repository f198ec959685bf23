"""The sample of a CNF, whose Services the load balancer of its cluster exposes."""

import contextlib
import json
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab import client
from tacker_k8s_mgmt.csar import cnf as csar_cnf
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE
from tests.integration import cnf
from tests.integration.cluster import Cluster, eventually

NODE_PORT, BALANCED = 30080, 8080
_SERVER = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
while True:
    with listener.accept()[0] as connection:
        connection.sendall(b"web")
"""


class Web(cnf.Cnf):
    """A VNF instance of the sample."""

    api = "v1"

    def _build(self, csar: Path, vnfd_id: str, manifest: str | None) -> None:
        csar_cnf.pack(csar, api=self.api, vnfd_id=vnfd_id)

    @property
    def _vims(self) -> Any:
        return [{"id": str(uuid.uuid4()), "vimId": self._vim, "vimType": "kubernetes"}]

    def expose(self, wanted: Any = None, state: str = "COMPLETED") -> str:
        """Instantiate it.

        :param wanted: its parameter; None for none.
        :param state: that the operation ends in.
        :returns: the operation's error; "" if it has none.
        """
        given = {"lcm-kubernetes-def-files": [cnf.MANIFEST], "namespace": cnf.NAMESPACE}
        if wanted is not None:
            given[ATTRIBUTE] = wanted
        body = {
            "flavourId": "web",
            "instantiationLevelId": "one",
            "additionalParams": given,
            "vimConnectionInfo": self._vims,
        }
        return self.do("instantiate", body, state)

    def do(self, verb: str, body: dict[str, Any], state: str = "COMPLETED") -> str:
        """Run an operation; returns its error, if it has one."""
        operation = self._tacker.operate(self.id, verb, body)
        found = self._tacker.wait(operation, state)
        return str((found.get("error") or {}).get("detail") or "")

    def undo(self) -> None:
        """Roll the operation back that has failed."""
        (operation,) = self._tacker.failed(self.id)
        self._tacker.handle(operation, "rollback")
        self._tacker.wait(operation, "ROLLED_BACK")

    def modify(self, wanted: Any) -> None:
        """Change the parameter by a PATCH."""
        path = f"{self._tacker.LCM}/vnf_instances/{self.id}"
        self._tacker.call("PATCH", path, json={"metadata": {ATTRIBUTE: wanted}})


class WebV2(Web):
    """The same of the v2 API."""

    api = "v2"

    @property
    def _vims(self) -> Any:
        return {"cluster": self._vim}


@contextlib.contextmanager
def answering(servers: list[str], port: int) -> Iterator[None]:
    """Have a program answer at a node port of these workers, as kube-proxy would."""
    line = f"python3 -c '{_SERVER}' {port} >/dev/null 2>&1 & echo $!"
    pids = {one: client.on_host(one, "sh", "-c", line).strip() for one in servers}
    try:
        yield
    finally:
        for server, pid in pids.items():
            client.on_host(server, "kill", pid)


def ports(cluster: Cluster) -> dict[int, int]:
    """Node ports by the port on the load balancer."""
    return {
        one["port"]: one["node_port"] for one in cluster.balancer("status")["services"]
    }


def ingress(cluster: Cluster, service: str) -> list[str]:
    """The addresses in the status of a Service."""
    found = json.loads(cluster.kubectl("get", "service", service, "-o", "json"))
    balancer = found.get("status", {}).get("loadBalancer", {})
    return [one["ip"] for one in balancer.get("ingress") or ()]


def answers(cluster: Cluster, port: int) -> bool:
    """Whether a CNF answers on this port of the load balancer."""
    with contextlib.suppress(OSError):
        address = (cluster.balancer_address(), port)
        with socket.create_connection(address, 5) as connection:
            return connection.recv(10) == b"web"
    return False


def follow(cluster: Cluster, web: Web, other: Web, servers: list[str]) -> None:
    """Expose a CNF, change that, and see it go; another one wants the same port."""
    wanted = {"services": [{"name": "web", "ports": [{"port": 80}]}]}
    web.expose(wanted)
    assert ports(cluster) == {NODE_PORT: NODE_PORT}
    with answering(servers, NODE_PORT):
        assert eventually(lambda: answers(cluster, NODE_PORT))
    # The node port in its manifest is taken in the cluster, too.
    error = other.expose(wanted, "FAILED_TEMP")
    assert str(NODE_PORT) in error
    assert web.id in error
    other.undo()
    outer = {"services": [*wanted["services"], {"name": "web-balanced"}]}
    web.modify(json.dumps(outer))
    eventually(lambda: BALANCED in ports(cluster))
    eventually(lambda: ingress(cluster, "web-balanced") == [cluster.balancer_address()])
    web.terminate()
    assert ports(cluster) == {}
