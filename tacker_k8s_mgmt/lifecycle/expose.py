# SPDX-License-Identifier: Apache-2.0
"""Exposure of a CNF's Services on the external load balancer of its cluster.

It works on the cluster, on behalf of the CNF; both hold the cluster's lock meanwhile.
"""

from collections.abc import Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import ClusterState, Dependencies
from tacker_k8s_mgmt.lifecycle.steps import exposures, load_balancer
from tacker_k8s_mgmt.model.exposure import Exposure, shown
from tacker_k8s_mgmt.model.services import Cnf, Service
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
        present = self._state.cluster().services(self._cnf.namespace)
        self._services = tuple(filter(self._cnf.owns, present))
        self._wanted = self._params.exposures(self._cnf.vnf_id, self._services)
        pending = [
            exposure.service for exposure in self._wanted if not exposure.node_port
        ]
        if pending:
            raise errors.ExposureError(
                [f"Service {name} has no node port" for name in pending],
                owner=shown(self._cnf.vnf_id),
                hint="Leave spec.allocateLoadBalancerNodePorts at true.",
            )
        for exposure in self._wanted:
            outer = (
                f"{exposure.port}/{exposure.protocol} -> node port {exposure.node_port}"
            )
            LOG.info("CNF %s: Service %s: %s", exposure.owner, exposure.service, outer)

    def _publish(self) -> None:
        exposed = {exposure.service for exposure in self._wanted}
        exposures.publish(self._state, self._services, exposed)


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
        recorded = exposures.recorded(self._state)
        self._exposed = tuple(e for e in recorded if e.owner == self._owner)

    def _withdraw(self) -> None:
        """Not by what Tacker lists: after a failure that may be another CNF's."""
        for service in exposures.services(self._state, self._exposed):
            exposures.publish(self._state, [service], ())
