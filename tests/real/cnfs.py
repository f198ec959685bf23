# SPDX-License-Identifier: Apache-2.0
"""CNFs of Tacker that the load balancer of a real cluster exposes."""

import contextlib
import shutil
import socket
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import requests

from lab.artifacts import releases
from tacker_k8s_mgmt.tools.csar import build as csar_cnf
from tacker_k8s_mgmt.tools.csar import parts
from tests.integration import cnf, exposed
from tests.integration.cluster import Cluster, eventually
from tests.real import workloads

NAMESPACE = "cnfs"
# Who asks for the address of "web", with the number that the answer has, too.
_QUESTION = b"\x12\x34\x01\x00\0\1\0\0\0\0\0\0" + b"\3web\0" + b"\0\1\0\1"
# What answers over HTTP, and the others.
_HTTP = {workloads.EXPOSED_PORT, workloads.BALANCED_PORT, workloads.CHART_PORT}
_PORTS = {*_HTTP, workloads.DNS_NODE_PORT, workloads.ECHO_PORT}
_STILL = b"still there?"
_PRECIOUS = 1000


class _Real:
    """What the sample runs on a real cluster.

    :ivar coredns: version of the mirror's image.
    """

    api: str
    coredns = ""

    def _build(self, csar: Path, vnfd_id: str, manifest: str | None) -> None:
        source = csar.with_suffix("")
        shutil.copytree(parts.samples() / "cnf", source)
        (source / cnf.MANIFEST).write_text(workloads.exposed_cnf(self.coredns))
        csar_cnf.pack(csar, source=source, api=self.api, vnfd_id=vnfd_id)


class Web(_Real, exposed.Web):
    """It in the v1 API."""

    def chart(self) -> dict[str, Any]:
        """The parameters of an instantiation from the chart."""
        given = self._of_chart()
        (release,) = given["using_helm_install_param"]
        release["helmparameter"] = [f"{k}={v}" for k, v in _values().items()]
        return {**given, "namespace": NAMESPACE}


class WebV2(_Real, exposed.WebV2):
    """It in the v2 API."""

    def chart(self) -> dict[str, Any]:
        """The parameters of an instantiation from the chart."""
        return {
            **self._of_chart(),
            "namespace": NAMESPACE,
            "helm_parameters": _values(),
        }


def _values() -> dict[str, Any]:
    return {
        "image": workloads.IMAGE,
        "containerPort": workloads.PORT,
        "nodePort": workloads.CHART_PORT,
    }


class Cnfs:
    """Two CNFs on a cluster, one of manifests and one from a chart."""

    def __init__(self, cluster: Cluster, made: tuple[Any, Any]) -> None:
        self._cluster = cluster
        self.web, self.charted = made

    def instantiate(self) -> None:
        """Instantiate both; the load balancer exposes what they have."""
        self._cluster.kubectl("create", "namespace", NAMESPACE)
        files = {"lcm-kubernetes-def-files": [cnf.MANIFEST], "namespace": NAMESPACE}
        self._instantiate(self.web, files, level="two")
        self._instantiate(self.charted, self.charted.chart(), level="one")
        assert set(exposed.ports(self._cluster)) == _PORTS

    def _instantiate(self, web: Any, given: dict[str, Any], level: str) -> None:
        web.end(web.begin(given, level), "COMPLETED")

    def answer(self) -> None:
        """See that both answer through the load balancer, from outside."""
        assert set(exposed.ports(self._cluster)) == _PORTS
        for port in _HTTP:
            eventually(partial(self._pod, port))
        eventually(self._names)
        address = self._cluster.balancer_address()
        found = self._cluster.kubectl(
            *("-n", NAMESPACE, "get", "service", "web-local"),
            *("-o", "jsonpath={.status.loadBalancer.ingress[*]['ip', 'ipMode']}"),
        )
        assert found.split() == [address, "Proxy"]

    def scale(self, direction: str) -> None:
        """Scale both by one pod, which drops no connection with another pod."""
        with self.held_open():
            self.web.scale(direction)
        self.charted.scale(direction)

    @contextlib.contextmanager
    def held_open(self, *leaving: str) -> Iterator[None]:
        """Hold a connection through the load balancer, which works at the end, too.

        The Service leads to the pods of the worker that a connection comes to, so this
        worker is its only way. Its pod is the last one to go when the CNF is scaled in.

        :param leaving: names of the workers that are deleted meanwhile.
        """
        found = eventually(partial(self._connected, leaving))
        assert found is not None
        connection, pod = found
        cost = f"controller.kubernetes.io/pod-deletion-cost={_PRECIOUS}"
        annotate = ("-n", NAMESPACE, "annotate", "--overwrite", "pod", pod)
        with connection:
            self._cluster.kubectl(*annotate, cost)
            yield
            connection.sendall(_STILL)
            assert connection.recv(len(_STILL), socket.MSG_WAITALL) == _STILL
        self._cluster.kubectl(*annotate, cost.partition("=")[0] + "-")

    def _connected(self, leaving: Sequence[str]) -> tuple[socket.socket, str] | None:
        """A connection with a pod on none of these workers, and the pod's name."""
        address = (self._cluster.balancer_address(), workloads.ECHO_PORT)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            connection = stack.enter_context(socket.create_connection(address, 10))
            pod = connection.recv(100).decode().strip()
            where = self._cluster.kubectl(
                *("-n", NAMESPACE, "get", "pod", pod),
                *("-o", "jsonpath={.spec.nodeName}"),
            )
            if where not in leaving:
                stack.pop_all()
                return connection, pod
        return None

    def end(self) -> None:
        """Terminate and delete both, and see that nothing is exposed any more."""
        for web in (self.web, self.charted):
            web.terminate()
            web.delete()
        assert exposed.ports(self._cluster) == {}
        for port in _HTTP:
            assert self._pod(port) == ""

    def _pod(self, port: int) -> str:
        """The name of the pod that answers; "" if none does."""
        url = f"http://{self._cluster.balancer_address()}:{port}/"
        with contextlib.suppress(requests.RequestException):
            answer = requests.get(url, timeout=10, headers={"Connection": "close"})
            if answer.ok:
                return answer.text.strip()
        return ""

    def _names(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as ask:
            ask.settimeout(5)
            address = self._cluster.balancer_address()
            ask.connect((address, workloads.DNS_NODE_PORT))
            ask.send(_QUESTION)
            answer = ask.recv(512)
            # The same question's, and an answer.
            return answer[:2] == _QUESTION[:2] and bool(answer[2] & 0x80)
        return False


@contextlib.contextmanager
def on(lab: Any, cluster: Cluster, vim: Any) -> Iterator[Cnfs]:
    """The CNFs on a cluster, deleted at the end whatever became of them.

    :param lab: the real laboratory of the API that they are instantiated through.
    :param vim: as :class:`.cnf.Cnf` has it.
    """
    kind: type[Web | WebV2] = WebV2 if lab.api == "v2" else Web
    site = lab.site
    kind.coredns = releases.find(site.release).built("coredns")
    made: list[Any] = []
    try:
        made += [kind(lab.tacker, lab.scratch, vim) for _ in range(2)]
        yield Cnfs(cluster, (made[0], made[1]))
    finally:
        for web in made:
            web.remove()
