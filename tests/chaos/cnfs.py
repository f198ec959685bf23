# SPDX-License-Identifier: Apache-2.0
"""A CNF on a cluster of a campaign: the sample, with all of its Services exposed."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

from lab.client import Tacker
from tests.integration import cnf, exposed
from tests.integration.cluster import Cluster
from tests.integration.laboratory import Lab
from tests.integration.v2 import ClusterV2, LabV2

# Listens already where it is started once more.
_LISTENS = "ss -Hltn sport = :{port} | grep -q ."


class Cnfs:
    """At most one CNF at a time on one cluster.

    :ivar id: that of its VNF instance; "" while there is none.
    """

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self._lab = lab
        self._cluster = cluster
        self._web: exposed.Web | None = None
        self._grown = False

    @property
    def id(self) -> str:
        return self._web.id if self._web else ""

    @property
    def stands(self) -> bool:
        """Whether it is instantiated."""
        if self._web is None:
            return False
        shown = self._tacker.show(self._web.id)
        return bool(shown["instantiationState"] == "INSTANTIATED")

    def begin(self, operation: str) -> str:
        """Send the request of an operation of the catalogue; its id."""
        requests: Mapping[str, Callable[[exposed.Web], str]] = {
            "instantiate CNF": lambda web: web.begin(
                {
                    "lcm-kubernetes-def-files": [cnf.MANIFEST],
                    "namespace": exposed.NAMESPACE,
                }
            ),
            "scale CNF": self._scale,
            "terminate CNF": lambda web: self._tacker.operate(
                web.id, "terminate", {"terminationType": "FORCEFUL"}
            ),
        }
        if self._web is None:
            self._web = self._made()
        return requests[operation](self._web)

    def _made(self) -> exposed.Web:
        if isinstance(self._cluster, ClusterV2) and isinstance(self._lab, LabV2):
            vim = self._cluster.vim_for_a_cnf()
            return exposed.WebV2(self._tacker, self._lab.scratch, vim)
        name = self._cluster.vim_name
        found = next(one for one in self._tacker.vims() if one["name"] == name)
        return exposed.Web(self._tacker, self._lab.scratch, found["id"])

    def _scale(self, web: exposed.Web) -> str:
        self._grown = not self._grown
        kind = "OUT" if self._grown else "IN"
        body = {"aspectId": exposed.ASPECT, "numberOfSteps": 1, "type": f"SCALE_{kind}"}
        return self._tacker.operate(web.id, "scale", body)

    def settle(self) -> None:
        """Delete the VNF instance if it is not instantiated."""
        if self._web and not self.stands:
            self.remove()

    def remove(self) -> None:
        """Terminate and delete what there is."""
        if self._web:
            self._web.remove()
        self._web, self._grown = None, False

    def serve(self) -> None:
        """Have the workers answer where kube-proxy would: none runs there."""
        if not self._web or not self._cluster.is_balanced:
            return
        known = self._cluster.balancer("status")["services"]
        ports = {service["node_port"] for service in known} | {exposed.KUBELET}
        for server in self._cluster.workers().values():
            for port in ports if known else ():
                with contextlib.suppress(Exception):
                    exposed.answer(server, port, unless=_LISTENS.format(port=port))

    def violations(self) -> Iterator[str]:
        """What is wrong with what is exposed."""
        ports = set(exposed.ports(self._cluster))
        wanted = {exposed.NODE_PORT, exposed.BALANCED, exposed.UDP_PORT}
        stands = self.stands
        if ports != (wanted if stands else set()):
            is_so = "is" if stands else "is not"
            yield f"ports {sorted(ports)} are exposed, a CNF {is_so} instantiated"

    @property
    def _tacker(self) -> Tacker:
        return self._lab.tacker
