"""Exposure of a CNF's Services on the external load balancer of its cluster.

It works on the cluster, on behalf of the CNF; both hold the cluster's lock meanwhile.
"""

from collections.abc import Collection, Iterable, Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import ClusterState, Dependencies
from tacker_k8s_mgmt.lifecycle.steps import exposures, load_balancer
from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.services import LOAD_BALANCER, Cnf, Service
from tacker_k8s_mgmt.request.cnf_exposure import ExposureParams

LOG = logging.getLogger(__name__)

# Seconds for the lock: another CNF's exposure takes less, playbooks take longer.
_PATIENCE = 120.0


class _OnCluster:
    """What all of these operations begin with."""

    def __init__(self, deps: Dependencies) -> None:
        self._state = ClusterState(deps, ready_first=True)

    def left(self) -> str:
        """What stays behind when a step fails."""
        return ""

    def _open(self, locked: bool = True) -> Step:
        def find() -> None:
            state = self._state
            if locked:
                state.site.lock(_PATIENCE)
            state.nodes = state.listed()
            state.machines = state.site.machines()

        return Step("find the nodes and the load balancer of the cluster", find)

    def _need_balancer(self) -> None:
        state = self._state
        if not load_balancer.exists(state):
            raise errors.UnsupportedOperation(
                detail=f"The cluster of VNF instance {state.deps.vnf_id} has no "
                "external load balancer, so nothing can be exposed on it.",
                hint="Instantiate the CNF from a package without this driver, or on a "
                "cluster with external_lb_param.",
            )


class CheckExposure(_OnCluster):
    """Refuses, before anything is created, what could not be exposed.

    :param expected: what is known of it by then.
    """

    def __init__(
        self, deps: Dependencies, owner: str, expected: Sequence[Exposure]
    ) -> None:
        super().__init__(deps)
        self._owner = owner
        self._expected = expected

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work; they change nothing."""
        return (
            self._open(locked=False),
            Step("see that the cluster has a load balancer", self._need_balancer),
            Step("see that the ports are free", self._refuse),
        )

    def _refuse(self) -> None:
        exposures.refuse_conflicts(self._state, self._owner, self._expected)


class Expose(_OnCluster):
    """Brings the exposures of a CNF into agreement with its Services.

    So it serves instantiation, and whatever may have changed Services since.
    """

    def __init__(self, deps: Dependencies, cnf: Cnf, params: ExposureParams) -> None:
        super().__init__(deps)
        self._cnf = cnf
        self._params = params
        self._services: tuple[Service, ...] = ()
        self._wanted: tuple[Exposure, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        owner = self._cnf.vnf_id
        return (
            self._open(),
            Step("see that the cluster has a load balancer", self._need_balancer),
            Step("find the Services of the CNF", self._find),
            Step(
                "expose the Services on the load balancer",
                lambda: exposures.set_exposures(self._state, owner, self._wanted),
            ),
            Step("write its address into the Services' status", self._publish),
        )

    def _find(self) -> None:
        found = self._state.cluster().services(self._cnf.namespace)
        self._services = tuple(one for one in found if self._cnf.owns(one))
        self._wanted = self._params.exposures(self._cnf.vnf_id, self._services)
        pending = [one.service for one in self._wanted if not one.node_port]
        if pending:
            raise errors.ExposureError(
                [f"Service {name} has no node port" for name in pending],
                vnf_id=self._cnf.vnf_id,
                hint="Leave spec.allocateLoadBalancerNodePorts at true.",
            )
        for one in self._wanted:
            outer = f"{one.port}/{one.protocol} -> node port {one.node_port}"
            LOG.info("CNF %s: Service %s: %s", one.owner, one.service, outer)

    def _publish(self) -> None:
        exposed = {one.service for one in self._wanted}
        _publish(self._state, self._services, exposed)


class Unexpose(_OnCluster):
    """Removes all exposures of a CNF; the load balancer need not be there.

    :param owner: id of the CNF's VNF instance.
    """

    def __init__(self, deps: Dependencies, owner: str) -> None:
        super().__init__(deps)
        self._owner = owner
        self._exposed: tuple[Exposure, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        if self._state.params.load_balancer is None:
            return ()
        return (
            self._open(),
            Step("find what is exposed of the CNF", self._find),
            Step(
                "take the load balancer's address out of the Services' status",
                self._withdraw,
                probe=lambda: not self._exposed,
            ),
            # Last: a repetition needs the record.
            Step(
                "remove it from the load balancer",
                lambda: exposures.set_exposures(self._state, self._owner, ()),
            ),
        )

    def _find(self) -> None:
        found = exposures.recorded(self._state)
        self._exposed = tuple(one for one in found if one.owner == self._owner)

    def _withdraw(self) -> None:
        """Not by what Tacker lists: after a failure that may be another CNF's."""
        names = {(one.namespace, one.service) for one in self._exposed}
        for namespace in {namespace for namespace, _ in names}:
            services = self._state.cluster().services(namespace)
            ours = [one for one in services if (namespace, one.name) in names]
            _publish(self._state, ours, ())


def _publish(
    state: ClusterState, services: Iterable[Service], exposed: Collection[str]
) -> None:
    """See that the status of these Services has the address if they are exposed.

    That of another implementation of load balancers is left alone.
    """
    machine = state.machines.load_balancer
    address = machine.ssh_address if machine else ""
    for service in services:
        wanted = address if service.name in exposed else ""
        if service.type != LOAD_BALANCER or service.published == wanted:
            continue
        if service.ingress and not service.published:
            LOG.warning(
                "Service %s has the address of another load balancer: %s",
                service.name,
                ", ".join(service.ingress),
            )
            continue
        state.cluster().publish(service, wanted)
