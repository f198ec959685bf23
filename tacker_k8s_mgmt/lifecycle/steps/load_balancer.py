"""The external load balancer in the course of an operation."""

import json
from collections.abc import Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.steps.records import SERVICES_FILE, ClusterRecords
from tacker_k8s_mgmt.model.load_balancer import BalancerSpec, BalancerStatus
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role
from tacker_k8s_mgmt.request.models import LoadBalancer
from tacker_k8s_mgmt.request.params import InstallParams


class Balancing:
    """One cluster's load balancer.

    :param machine: its VM.
    :param wanted: what the parameters say about it.
    """

    def __init__(
        self,
        site: ports.Site,
        params: InstallParams,
        machine: Machine,
        wanted: LoadBalancer,
    ) -> None:
        self._site = site
        self._params = params
        self._machine = machine
        self._wanted = wanted

    def install(self, nodes: Sequence[Node]) -> None:
        """Install it in front of these nodes; services that it exposes are kept.

        :raises LoadBalancerError: its script failed; the earlier configuration stays.
        """
        proxy = self._params.proxy
        spec = BalancerSpec(
            api_port=self._wanted.api_port,
            control_planes=_addresses(nodes, Role.CONTROL_PLANE),
            workers=_addresses(nodes, Role.WORKER),
            http_proxy=proxy.http_proxy if proxy else None,
            https_proxy=proxy.https_proxy if proxy else None,
        )
        self._remote().install(spec)

    def front(self, nodes: Sequence[Node]) -> BalancerStatus:
        """Have it work for these control planes and, of its workers, for these.

        :returns: what it reports afterwards.
        :raises LoadBalancerError: its script failed; the earlier configuration stays.
        """
        routed = {one.name for one in self.status().workers}
        planes = [node for node in nodes if node.role is Role.CONTROL_PLANE]
        workers = [node for node in nodes if node.name in routed]
        self.install([*planes, *workers])
        return self._remote().status()

    def verify(self) -> None:
        """See that it works as it was installed.

        :raises LoadBalancerError: it does not.
        """
        status = self._remote().status()
        seen = (status.active, status.current, status.api_port)
        if seen != (True, True, self._wanted.api_port):
            raise errors.LoadBalancerError(
                host=self._machine.ssh_address,
                verb="install",
                reason="HAProxy does not run with what was installed.",
                hint="Look at `systemctl status haproxy` on it, and mend it.",
            )

    def add(self, workers: Sequence[Node]) -> None:
        """Add the routes of these workers; a route that is there stays."""
        if workers:
            self._remote().add_workers(_addresses(workers, Role.WORKER))

    def remove(self, workers: Sequence[Node]) -> None:
        """Take the routes of these workers out; one that is gone is no error."""
        if workers:
            self._remote().remove_workers([node.name for node in workers])

    def status(self) -> BalancerStatus:
        """What it reports, after noting which services it exposes."""
        status = self._remote().status()
        services = [
            {
                "name": one.name,
                "port": one.port,
                "node_port": one.node_port,
                "check_port": one.check_port,
            }
            for one in status.services
        ]
        text = json.dumps(services, indent=2) + "\n"
        self._site.workdir.write(SERVICES_FILE, text)
        return status

    def expose_again(self) -> None:
        """Expose what was noted, on a load balancer that was made anew."""
        records = ClusterRecords(self._site, self._params.ansible.host)
        self._remote().expose(records.services())

    def _remote(self) -> ports.Balancer:
        return self._site.balancer(self._machine)


def _addresses(nodes: Sequence[Node], role: Role) -> tuple[tuple[str, str], ...]:
    return tuple((node.name, node.address) for node in nodes if node.role is role)
