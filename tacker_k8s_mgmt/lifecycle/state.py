"""What every operation on the cluster's nodes has in common."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import polling, ports
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.steps.inventory import Keeper
from tacker_k8s_mgmt.lifecycle.steps.load_balancer import Balancing
from tacker_k8s_mgmt.lifecycle.steps.records import rebuilt
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, api_url
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest, Progress
from tacker_k8s_mgmt.request.params import API_PORT, InstallParams
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.membership import Membership

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

Reached = TypeVar("Reached")


@dataclass(frozen=True)
class Dependencies:
    """What an operation on one VNF instance's cluster works with.

    :param ready_timeout: seconds for nodes to become Ready.
    :param poll_interval: longest pause between two looks, seconds.
    :param on_progress: is called with how far a playbook has come.
    """

    params: InstallParams
    vnf_id: str
    site: ports.Site
    clock: ports.Clock
    ready_timeout: float
    poll_interval: float
    on_progress: Callable[[Progress], None]


class Operation(Keeper):
    """One operation on one VNF instance's cluster."""

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps.params, deps.site)
        self._vnf_id = deps.vnf_id
        self._clock = deps.clock
        self._ready_timeout = deps.ready_timeout
        self._poll_interval = deps.poll_interval
        self._on_progress = deps.on_progress
        self._nodes: tuple[Node, ...] = ()
        #: The control plane that it took out, if its VM is there to join again.
        self._returning: tuple[Node, ...] = ()
        #: Names of the control planes whose VM is gone, or was built anew without us.
        self._lost: frozenset[str] = frozenset()
        #: Ids of the control planes that did not accept a login in this operation.
        self._silent_planes: set[str] = set()

    def left(self) -> str:
        """What stays behind when a step fails."""
        return ""

    # What there is

    def _compare(self) -> tuple[Membership, Mapping[str, ports.ClusterNode]]:
        """Heat, the inventory and the cluster, compared; its Node objects by name.

        :raises ClusterError: there is no inventory to compare with.
        """
        with ThreadPoolExecutor(2) as pool:
            # Heat takes longer than two logins.
            listing = pool.submit(self._site.machines)
            listed = self._listed()
            self._site.lock()
            login = pool.submit(self._through, self._site.cluster, listed)
            self._machines = listing.result()
        self._rebuilding.inventory()
        self._healing = self._records.healing()
        out = (self._healing.plane,) if self._healing.plane else ()
        previous = self._previous()
        away = {node.name for node in out}
        self._nodes = tuple(n for n in previous if n.name not in away) or previous
        recorded = rebuilt(self._records.joined, "The cluster's nodes tell.")
        there = self._machines.places.keys()
        # Where it did not join, a server has no etcd and no API server.
        hosts = there if recorded is None else there & set(recorded)
        missing = {node.server_id for node in previous} - hosts
        self._silent_planes |= missing
        if self._nodes == listed and not missing:
            # There is no one else to ask: a refused password is not tried once more.
            login.result()
        self._meanwhile()
        seen = self._seen()
        self._members = membership.whole_members(recorded, previous, seen)
        self._rebuilding.all(
            previous, self._members, seen, self._cluster, self._balancing()
        )
        found = membership.compare(
            self._machines, previous, self._members, frozenset(seen), out
        )
        self._nodes, self._returning = found.nodes, found.returning
        if found.returning:
            LOG.warning(
                "%s was taken out to be built anew and has not joined again; the next "
                "heal joins it",
                names_of(found.returning),
            )
        if found.lost:
            self._lost = frozenset(node.name for node in found.lost)
            lost = (node for node in self._nodes if node.name in self._lost)
            self._silent_planes |= {node.server_id for node in lost}
            LOG.warning(
                "Control planes of the inventory whose VM is gone or was replaced, and "
                "which stay in it: %s",
                names_of(found.lost),
            )
        return found, seen

    def _meanwhile(self) -> None:
        """Begin what can go on while the cluster tells its nodes."""

    def _seen(self) -> Mapping[str, ports.ClusterNode]:
        """The cluster's Node objects by name."""
        return {node.name: node for node in self._cluster().nodes()}

    def _all(self) -> tuple[Machine, ...]:
        """Every VM of the cluster, the load balancer's last."""
        found = self._machines
        balancers = (found.load_balancer,) if found.load_balancer else ()
        return (*found.control_planes, *found.workers, *balancers)

    def _control_plane(self) -> Node:
        return next(node for node in self._nodes if node.role is Role.CONTROL_PLANE)

    def _planes(self) -> tuple[Node, ...]:
        return _planes_of(self._nodes)

    def _cluster(self) -> ports.Cluster:
        """The cluster through the first control plane that accepts a login.

        :raises ConnectError: none does.
        """
        return self._through(self._site.cluster)

    def _through(
        self, reach: Callable[[Node], Reached], listed: Sequence[Node] = ()
    ) -> Reached:
        """What the first control plane that accepts a login leads to.

        :param listed: the nodes, where they are not known yet.
        :raises ConnectError: none does.
        """
        control_planes = list(_planes_of(listed or self._nodes))
        while True:
            asked = control_planes.pop(0)
            if asked.server_id in self._silent_planes and control_planes:
                continue
            try:
                return reach(asked)
            except errors.ConnectError as error:
                self._silent_planes.add(asked.server_id)
                if not control_planes:
                    raise
                LOG.warning("The next control plane is asked: %s", error)

    def _endpoint(self) -> str:
        """URL at which Tacker reaches the cluster's API."""
        machine, wanted = self._machines.load_balancer, self._params.load_balancer
        if machine and wanted:
            return api_url(machine.ssh_address, wanted.api_port)
        return api_url(self._control_plane().ssh_address, API_PORT)

    def _balancing(self) -> Balancing | None:
        """The load balancer, or None where none was asked for."""
        machine, wanted = self._machines.load_balancer, self._params.load_balancer
        if machine is None or wanted is None:
            return None
        return Balancing(self._site, self._params, machine, wanted)

    def _balancer(self) -> Balancing:
        """The load balancer that was asked for."""
        balancing = self._balancing()
        if balancing is None:
            raise errors.ClusterError(detail="No load balancer was asked for.")
        return balancing

    def _expect_balancer(self) -> None:
        """Have the load balancer logged in to by the time when it is needed."""
        machine = self._machines.load_balancer
        if machine is not None and self._params.load_balancer is not None:
            self._site.expect(machine)

    # What is done

    def _run(self, request: PlaybookRequest, nodes: int) -> None:
        self._site.playbooks.run(request, nodes, self._on_progress)

    def _register(self, access: ports.ClusterAccess) -> None:
        """Make the cluster a VIM, at the address where it is."""
        spec = ports.VimSpec(
            name=preflight.vim_name(self._params, self._vnf_id),
            auth_url=self._endpoint(),
            token=access.token,
            ca_certificate=access.ca_certificate,
        )
        self._site.vims.register(spec)

    def _wait_ready(self, nodes: Sequence[Node]) -> Mapping[str, ports.ClusterNode]:
        """Wait until these nodes are Ready; the cluster's Node objects then, by name.

        :raises ClusterError: with every node that is not, after ``ready_timeout``.
        """
        seen: Mapping[str, ports.ClusterNode] = {}

        def problem() -> str:
            nonlocal seen
            seen = self._seen()
            told = ((n.name, polling.not_ready(seen.get(n.name))) for n in nodes)
            return "; ".join(f"{name}: {why}" for name, why in told if why)

        self._wait_until_well(
            problem,
            "these nodes are not Ready: {left}.",
            "Look at the kubelet's log on them, and mend it.",
        )
        return seen

    def _wait_until_well(
        self, problem: Callable[[], str], detail: str, hint: str
    ) -> None:
        """Wait until there is no problem left.

        :param detail: what there is after ``ready_timeout``, with ``{left}`` in it.
        :raises ClusterError: with what is left then.
        """
        limit = self._ready_timeout
        left = polling.until_well(problem, self._clock, limit, self._poll_interval)
        if left:
            told = detail.format(left=left)
            raise errors.ClusterError(detail=f"After {limit:g} s {told}", hint=hint)


def _planes_of(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The control planes among nodes, in their order."""
    return tuple(node for node in nodes if node.role is Role.CONTROL_PLANE)


def names_of(nodes: Sequence[Node]) -> str:
    """The nodes' names as they are listed in a sentence."""
    return ", ".join(node.name for node in nodes)
