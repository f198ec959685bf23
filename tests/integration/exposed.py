# SPDX-License-Identifier: Apache-2.0
"""The sample of a CNF, whose Services the load balancer of its cluster exposes."""

import contextlib
import json
import shutil
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from lab import client
from lab.cloud.addresses import CONTROLLER_ADDRESS
from tacker_k8s_mgmt.model.services import RELEASE_ANNOTATION
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE
from tacker_k8s_mgmt.tools.csar import build as csar_cnf
from tacker_k8s_mgmt.tools.csar import parts
from tests.integration import cnf
from tests.integration.cluster import Cluster, begun, eventually

NODE_PORT, BALANCED, UDP_PORT = 30080, 8080, 30053
#: For CNFs beside workloads of the same names.
NAMESPACE = "cnfs"
ASPECT = "web_aspect"
# Where UDP's workers are checked; the laboratory's kubelet does not listen.
KUBELET = 10250
_HELLO = b"web"
# Greets, then sends back what it gets; datagrams, too.
_SERVER = """
import socketserver, sys, threading
port = int(sys.argv[1])
class Tcp(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"web")
        while data := self.request.recv(100):
            self.request.sendall(data)
class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        self.request[1].sendto(self.request[0], self.client_address)
socketserver.ThreadingTCPServer.allow_reuse_address = True
datagrams = socketserver.ThreadingUDPServer(("", port), Udp)
threading.Thread(target=datagrams.serve_forever, daemon=True).start()
socketserver.ThreadingTCPServer(("", port), Tcp).serve_forever()
"""
_UDP_SERVICE = f"""---
apiVersion: v1
kind: Service
metadata:
  name: echo
spec:
  type: NodePort
  selector:
    app: web
  ports:
    - port: 7
      protocol: UDP
      nodePort: {UDP_PORT}
"""
# The nodes answer at the ports of all others.
_SERVICE = "kind: Service\nmetadata:\n"
_OURS = f'{_SERVICE}  annotations:\n    kapi.sim/answers: "false"\n'
_CHARTS_SERVICE = "Files/helm/web/templates/service.yaml"

AnyWeb = TypeVar("AnyWeb", bound="Web")


class Web(cnf.Cnf):
    """A VNF instance of the sample."""

    api = "v1"
    _vnfcs = "vnfcResourceInfo"

    def _build(self, csar: Path, vnfd_id: str, manifest: str | None) -> None:
        source = csar.with_suffix("")
        shutil.copytree(parts.samples() / "cnf", source)
        with (source / cnf.MANIFEST).open("a") as file:
            file.write(_UDP_SERVICE)
        for path in (source / cnf.MANIFEST, source / _CHARTS_SERVICE):
            path.write_text(path.read_text().replace(_SERVICE, _OURS))
        csar_cnf.pack(csar, source=source, api=self.api, vnfd_id=vnfd_id)

    @property
    def _vims(self) -> Any:
        return [{"id": str(uuid.uuid4()), "vimId": self._vim, "vimType": "kubernetes"}]

    def expose(
        self,
        wanted: Any = None,
        state: str = "COMPLETED",
        namespace: str = cnf.NAMESPACE,
    ) -> str:
        """Instantiate it.

        :param wanted: its parameter; None for none.
        :param state: that the operation ends in.
        :returns: the operation's error; "" if it has none.
        """
        given = {"lcm-kubernetes-def-files": [cnf.MANIFEST], "namespace": namespace}
        if wanted is not None:
            given[ATTRIBUTE] = wanted
        return self._instantiate(given, state)

    def begin_balanced(self) -> str:
        """Send the request to instantiate it, one Service exposed; the operation."""
        given = {"lcm-kubernetes-def-files": [cnf.MANIFEST], "namespace": cnf.NAMESPACE}
        return self.begin(
            {**given, ATTRIBUTE: {"services": [{"name": "web-balanced"}]}}
        )

    def install(self) -> None:
        """Instantiate it from its chart."""
        self._instantiate(self._of_chart())

    def begin(self, given: dict[str, Any], level: str = "one") -> str:
        """Send the request to instantiate it; the id of the operation."""
        body = {**self._body(given), "instantiationLevelId": level}
        return self._tacker.operate(self.id, "instantiate", body)

    def begin_on_port(self, port: int) -> str:
        """The same from its chart, with a release of its own, exposed on this port."""
        ports = [{"port": 80, "external_port": port}]
        service = {"name": f"web-{self._release}", "ports": ports}
        return self.begin({**self._renamed(), ATTRIBUTE: {"services": [service]}})

    def end(self, operation: str, *states: str) -> dict[str, Any]:
        """Wait until an operation is in one of these states."""
        return self._tacker.wait(operation, *states)

    def end_without_conductor(self, operation: str) -> None:
        """Have an operation FAILED_TEMP whose conductor was killed."""
        self._tacker.cancel(operation)
        self.end(operation, "FAILED_TEMP")

    def begin_retry(self) -> str:
        """Retry the operation that has failed; its id."""
        (operation,) = self._tacker.failed(self.id)
        self._tacker.handle(operation, "retry")
        return operation

    @property
    def _release(self) -> str:
        return f"v{self.id[:8]}"

    def _renamed(self) -> dict[str, Any]:
        """The parameters of an installation beside another one of the same chart."""
        given, name = self._of_chart(), self._release
        (release,) = given["using_helm_install_param"]
        release["helmreleasename"] = name
        # Its node port.
        del release["helmparameter"]
        given["vdu_mapping"]["web"] |= {"name": f"web-{name}", "helmreleasename": name}
        return given

    def _of_chart(self) -> dict[str, Any]:
        sample = parts.samples() / "cnf" / "requests" / "instantiate-helm.json"
        return dict(json.loads(sample.read_text())["additionalParams"])

    def _instantiate(self, given: dict[str, Any], state: str = "COMPLETED") -> str:
        return self.do("instantiate", self._body(given), state)

    def _body(self, given: dict[str, Any]) -> dict[str, Any]:
        return {
            "flavourId": "web",
            "instantiationLevelId": "one",
            "additionalParams": given,
            "vimConnectionInfo": self._vims,
        }

    def scale(self, direction: str, state: str = "COMPLETED") -> str:
        """By one pod, ``OUT`` or ``IN``; the operation's error."""
        body = {"type": f"SCALE_{direction}", "aspectId": ASPECT, "numberOfSteps": 1}
        return self.do("scale", body, state)

    def do(self, verb: str, body: dict[str, Any], state: str = "COMPLETED") -> str:
        """Run an operation; returns its error, if it has one."""
        operation = self._tacker.operate(self.id, verb, body)
        found = self._tacker.wait(operation, state)
        return str((found.get("error") or {}).get("detail") or "")

    def heal(self, state: str = "COMPLETED") -> str:
        """One of its pods; the operation's error."""
        vnfc = self._tacker.show(self.id)["instantiatedVnfInfo"][self._vnfcs][0]["id"]
        return self.do("heal", {"vnfcInstanceId": [vnfc]}, state)

    def undo(self) -> None:
        """Roll the operation back that has failed."""
        self._handle("rollback", "ROLLED_BACK")

    def retry(self) -> None:
        """Retry it, to its end."""
        self._handle("retry", "COMPLETED")

    def _handle(self, verb: str, state: str) -> None:
        (operation,) = self._tacker.failed(self.id)
        self._tacker.handle(operation, verb)
        self._tacker.wait(operation, state)

    def modify(self, wanted: Any, state: str = "COMPLETED", **more: Any) -> str:
        """Change the parameter by a PATCH; returns the operation's error.

        :param more: further attributes of the request.
        """
        path = f"{self._tacker.LCM}/vnf_instances/{self.id}"
        body = {"metadata": {ATTRIBUTE: wanted}, **more}
        with begun(self._tacker, self.id) as started:
            self._tacker.call("PATCH", path, json=body)
        found = self._tacker.wait(*started, state)
        return str((found.get("error") or {}).get("detail") or "")

    def parameter(self) -> Any:
        """The parameter in its metadata; None if there is none."""
        shown = self._tacker.show(self.id)
        return (shown.get("metadata") or {}).get(ATTRIBUTE)

    def give_up(self) -> None:
        """Have the operation that has failed end so."""
        (operation,) = self._tacker.failed(self.id)
        self._tacker.handle(operation, "fail")


class WebV2(Web):
    """The same of the v2 API."""

    api = "v2"
    _vnfcs = "vnfcInfo"

    @property
    def _vims(self) -> Any:
        return {"cluster": self._vim}

    def end_without_conductor(self, operation: str) -> None:
        """Wait until it is FAILED_TEMP: a conductor that starts sees to that."""
        self.end(operation, "FAILED_TEMP")

    def move(self, vim: Any) -> None:
        """Have it on this VIM from now on, with nothing exposed."""
        self._vim = vim
        self.modify({"services": []}, vimConnectionInfo=self._vims)

    @property
    def _release(self) -> str:
        """As Tacker names it."""
        return f"vnf{self.id.replace('-', '')}"

    def _renamed(self) -> dict[str, Any]:
        return self._of_chart()

    def _of_chart(self) -> dict[str, Any]:
        self._vim = {**self._vim, "vimType": "ETSINFV.HELM.V_3"}
        sample = parts.samples() / "cnf" / "requests" / "instantiate-helm-v2.json"
        return dict(json.loads(sample.read_text())["additionalParams"])


@contextlib.contextmanager
def removed(web: AnyWeb) -> Iterator[AnyWeb]:
    """A CNF that is taken away at the end, whatever became of it."""
    try:
        yield web
    finally:
        web.remove()


def expose_beside_workloads(cluster: Cluster, web: Web) -> None:
    """Instantiate it in a namespace of its own, with everything exposed."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    web.expose(namespace=NAMESPACE)
    assert set(ports(cluster)) == {NODE_PORT, BALANCED, UDP_PORT}


@contextlib.contextmanager
def answering(servers: list[str], port: int) -> Iterator[None]:
    """Have a program answer at a node port of these workers, as kube-proxy would."""
    pids = {name: answer(name, port) for name in servers}
    try:
        yield
    finally:
        for server, pid in pids.items():
            client.on_host(server, "kill", pid)


def answer(server: str, port: int, unless: str = "false") -> str:
    """Have a program answer at a port of a worker; its process number.

    :param unless: a shell's condition with which it is not started.
    """
    starts = f"python3 -c '{_SERVER}' {port} >/dev/null 2>&1 & echo $!"
    return client.on_host(server, "sh", "-c", f"{unless} || {{ {starts}; }}").strip()


def ports(cluster: Cluster) -> dict[int, int]:
    """Node ports by the port on the load balancer."""
    return {
        service["port"]: service["node_port"]
        for service in cluster.balancer("status")["services"]
    }


def ingress(
    cluster: Cluster, service: str, namespace: str = cnf.NAMESPACE
) -> list[str]:
    """The addresses in the status of a Service that nodes leave to what has them."""
    words = ("get", "service", service, "-n", namespace, "-o", "json")
    found = json.loads(cluster.kubectl(*words))
    balancer = found.get("status", {}).get("loadBalancer", {})
    given = balancer.get("ingress") or ()
    return [entry["ip"] for entry in given if entry.get("ipMode") == "Proxy"]


def answers(cluster: Cluster, port: int) -> bool:
    """Whether a CNF answers on this port of the load balancer."""
    with contextlib.suppress(OSError):
        address = (cluster.balancer_address(), port)
        with socket.create_connection(address, 5) as connection:
            return connection.recv(10).startswith(_HELLO)
    return False


@contextlib.contextmanager
def held_open(cluster: Cluster, port: int) -> Iterator[socket.socket]:
    """Hold a connection through the load balancer, and see that it works at the end."""
    address = (cluster.balancer_address(), port)
    with socket.create_connection(address, 5) as connection:
        assert connection.recv(3) == _HELLO
        yield connection
        connection.sendall(b"still there?")
        assert connection.recv(100) == b"still there?"


@contextlib.contextmanager
def held_open_at(
    cluster: Cluster, server: str, port: int = NODE_PORT
) -> Iterator[None]:
    """The same with a worker that alone answers: no other has a pod of the CNF."""
    with answering([server], ports(cluster)[port]):
        assert eventually(lambda: answers(cluster, port))
        with held_open(cluster, port):
            yield


@contextlib.contextmanager
def served(cluster: Cluster) -> Iterator[None]:
    """Have every worker healthy for all ports of the sample, and TCP answered there."""
    workers, known = list(cluster.workers().values()), ports(cluster)
    with contextlib.ExitStack() as stack:
        for port in (known[NODE_PORT], known[BALANCED], KUBELET):
            stack.enter_context(answering(workers, port))
        eventually(lambda: _healthy(cluster))
        eventually(lambda: all(answers(cluster, p) for p in (NODE_PORT, BALANCED)))
        yield


def _healthy(cluster: Cluster) -> bool:
    """Whether the load balancer finds all workers so for the sample's ports."""
    services = cluster.balancer("status")["services"]
    states = [
        server["state"] or ""
        for service in services
        if service["port"] in {NODE_PORT, BALANCED, UDP_PORT}
        for server in service["servers"]
    ]
    return all(state.startswith("UP") for state in states)


def sends_datagrams_back(cluster: Cluster, port: int) -> bool:
    """Whether a CNF answers a datagram on this port of the load balancer."""
    with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as flow:
        flow.settimeout(5)
        flow.connect((cluster.balancer_address(), port))
        flow.send(b"hello")
        return flow.recv(100) == b"hello"
    return False


def pods(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    """The pods of a Deployment that are not on their way out."""
    return [
        pod
        for pod in cluster.pods(f"app={name}")
        if "deletionTimestamp" not in pod["metadata"]
    ]


class HeldKubectl:
    """kubectl of the control plane, which waits where a test says so.

    What it waits for is a word of its command line.
    """

    _PROGRAM = "/usr/local/bin/kubectl"
    _WAITS = f"""#!/bin/sh
for word; do
  while [ -e "/tmp/hold$word" ]; do
    touch "/tmp/held$word"
    sleep 0.1
  done
done
exec {_PROGRAM}.real "$@"
"""

    def __init__(self, cluster: Cluster) -> None:
        self._server = cluster.server("masterNode")

    def __enter__(self) -> "HeldKubectl":
        self._run(f"mv {self._PROGRAM} {self._PROGRAM}.real")
        self._run(f"cat >{self._PROGRAM}; chmod 755 {self._PROGRAM}", self._WAITS)
        return self

    def __exit__(self, *_: object) -> None:
        self._run(
            f"mv {self._PROGRAM}.real {self._PROGRAM}; rm -f /tmp/hold* /tmp/held*"
        )

    def hold(self, word: str) -> None:
        """Have it wait from now on."""
        self._run(f"rm -f /tmp/held{word}; touch /tmp/hold{word}")

    def wait(self, word: str) -> None:
        """Until it waits there."""
        look = f"ls /tmp/held{word} 2>/dev/null; true"
        eventually(lambda: self._run(look))

    def release(self, word: str) -> None:
        """Have it continue."""
        self._run(f"rm /tmp/hold{word}")

    def _run(self, line: str, stdin: str | None = None) -> str:
        return client.on_host(self._server, "sh", "-c", line, stdin=stdin)


def race(web: Web, other: Web, port: int) -> Web:
    """Two CNFs want one port at the same moment; the one that has got it."""
    operations = {racer: racer.begin_on_port(port) for racer in (web, other)}
    ends = {
        racer: racer.end(operation, "COMPLETED", "FAILED_TEMP")
        for racer, operation in operations.items()
    }
    states = {racer: end["operationState"] for racer, end in ends.items()}
    assert sorted(states.values()) == ["COMPLETED", "FAILED_TEMP"]
    first, second = sorted(states, key=lambda racer: states[racer])
    assert first.id in ends[second]["error"]["detail"]
    assert f"port {port}/tcp" in ends[second]["error"]["detail"]
    second.undo()
    return first


def follow_chart(cluster: Cluster, web: Web, servers: list[str]) -> None:
    """Scale a CNF that Tacker has installed from a chart, and see it go."""
    (service,) = (
        item["metadata"]["name"]
        for item in json.loads(cluster.kubectl("get", "services", "-o", "json"))[
            "items"
        ]
        if RELEASE_ANNOTATION in item["metadata"].get("annotations", {})
    )
    ((port, node_port),) = ports(cluster).items()
    with answering(servers, node_port):
        assert eventually(lambda: answers(cluster, port))
        with held_open(cluster, port):
            web.scale("OUT")
            assert len(pods(cluster, service)) == 2
            web.scale("IN")
            assert len(pods(cluster, service)) == 1
        assert ports(cluster) == {port: node_port}
    web.terminate()
    assert ports(cluster) == {}
    assert eventually(lambda: not cluster.pods(f"app={service}"))
    assert service not in cluster.kubectl("get", "services")


def follow(cluster: Cluster, web: Web, other: Web, servers: list[str]) -> None:
    """Expose a CNF, change that, and see it go; another one wants the same port."""
    wanted = {
        "services": [
            {
                "name": "web",
                "ports": [{"port": 80}],
                "sources": [f"{CONTROLLER_ADDRESS}/32"],
            },
            {"name": "echo", "ports": [{"port": 7, "protocol": "UDP"}]},
        ]
    }
    web.expose(wanted)
    assert ports(cluster) == {NODE_PORT: NODE_PORT, UDP_PORT: UDP_PORT}
    with answering(servers, NODE_PORT), answering(servers, UDP_PORT):
        assert eventually(lambda: answers(cluster, NODE_PORT))
        assert eventually(lambda: sends_datagrams_back(cluster, UDP_PORT))
        with held_open(cluster, NODE_PORT):
            # The node port in its manifest is taken in the cluster, too.
            error = other.expose(wanted, "FAILED_TEMP")
            assert str(NODE_PORT) in error
            assert web.id in error
            other.undo()
            web.scale("OUT")
            assert len(pods(cluster, "web")) == 2
            outer = {
                "services": [
                    {**wanted["services"][0], "sources": ["192.0.2.0/24"]},
                    {"name": "web-balanced", "proxy_protocol": True},
                ]
            }
            taken = {"name": "web", "ports": [{"port": 80, "external_port": 6443}]}
            error = web.modify(json.dumps({"services": [taken]}), "FAILED_TEMP")
            assert "in use by the Kubernetes API" in error
            web.give_up()
            assert web.parameter() in (None, wanted)
            web.modify(json.dumps(outer))
            assert set(ports(cluster)) == {NODE_PORT, BALANCED}
        assert not answers(cluster, NODE_PORT)
        assert not sends_datagrams_back(cluster, UDP_PORT)
    assert ingress(cluster, "web-balanced") == [cluster.balancer_address()]
    with answering(servers, ports(cluster)[BALANCED]):
        assert eventually(lambda: answers(cluster, BALANCED))
        with held_open(cluster, BALANCED) as connection:
            # The header of the PROXY protocol comes first, and back.
            assert connection.recv(100).startswith(b"\r\n\r\n\0\r\nQUIT\n")
            web.heal()
    lose_a_service(cluster, web)
    web.terminate()
    assert ports(cluster) == {}


def lose_a_service(cluster: Cluster, web: Web) -> None:
    """Delete an exposed Service of a CNF without Tacker, have it back, and again."""
    words = ("service", "web-balanced")
    lost = json.loads(cluster.kubectl("get", *words, "-o", "json"))
    labels = lost["metadata"].get("labels", {})
    lost["metadata"] = {"name": lost["metadata"]["name"], "labels": labels}
    lost["spec"] = {**lost["spec"], "ports": [{"name": "http", "port": BALANCED}]}
    before = ports(cluster)
    # At its end Tacker's v1 API does not call the driver.
    web.scale("IN")
    cluster.kubectl("delete", *words)
    # It is named in the CNF's metadata.
    missing = "there is no Service web-balanced; there are echo, web"
    assert missing in web.heal("FAILED_TEMP")
    web.give_up()
    assert missing in web.scale("OUT", "FAILED_TEMP")
    assert ports(cluster) == before
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(lost))
    web.retry()
    assert len(pods(cluster, "web")) == 2
    after = ports(cluster)
    assert set(after) == set(before)
    # Its node port is another one.
    assert after[BALANCED] != before[BALANCED]
    assert ingress(cluster, "web-balanced") == [cluster.balancer_address()]
    cluster.kubectl("delete", *words)
