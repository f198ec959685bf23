# SPDX-License-Identifier: Apache-2.0
"""Exposure of a CNF's Services on the external load balancer of its cluster.

It works on the cluster, on behalf of the CNF; both hold the cluster's lock meanwhile.
"""

from collections.abc import Callable, Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.exposure import exposures
from tacker_k8s_mgmt.model.exposure import Exposure, shown
from tacker_k8s_mgmt.model.services import Cnf, Service
from tacker_k8s_mgmt.operations import balancing
from tacker_k8s_mgmt.operations.compare import settle
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Step
from tacker_k8s_mgmt.request.cnf_exposure import ExposureParams

LOG = logging.getLogger(__name__)

# Seconds for the lock: another CNF's exposure takes less, playbooks take longer.
_PATIENCE = 120.0
# Seconds in which it is released again, for which operations of the cluster wait: the
# load balancer's script may install packages ([k8s_mgmt] load_balancer_timeout).
_WITHIN = 1200.0


class _OnCluster(Operation):
    """What all of these operations begin with."""

    def __init__(self, deps: OperationContext) -> None:
        self._state = ClusterState(deps)

    def _open(self, locked: bool = True) -> Step:
        def find() -> None:
            state = self._state
            if locked:
                state.site.lock(_PATIENCE, _WITHIN)
            state.nodes = state.require_inventory()
            state.machines = state.site.machines()
            settle(state, state.nodes)

        return Step("find-nodes", "find the cluster's nodes and load balancer", find)

    def _need_balancer(self) -> None:
        state = self._state
        if state.params.load_balancer is None:
            raise errors.UnsupportedOperation(
                detail=f"The cluster of VNF instance {state.deps.vnf_id} has no "
                "external load balancer, so nothing can be exposed on it.",
                hint="Instantiate the CNF from a package without this driver, or on a "
                "cluster with external_lb_param.",
            )
        if not balancing.exists(state):
            raise errors.ClusterError(
                detail="The load balancer of the cluster of VNF instance "
                f"{state.deps.vnf_id} has no complete VM.",
                hint="Wait for the end of its heal, or heal it.",
            )


class CheckExposure(_OnCluster):
    """Refuses, before anything is created, what could not be exposed.

    :param expected: returns what is known of it by then, given whether the cluster has
        a cloud controller.
    """

    def __init__(
        self,
        deps: OperationContext,
        owner: str,
        expected: Callable[[bool], Sequence[Exposure]],
    ) -> None:
        super().__init__(deps)
        self._owner = owner
        self._expected = expected

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work; they change nothing."""
        return (
            self._open(locked=False),
            Step(
                "check-load-balancer",
                "check that the cluster has a load balancer",
                self._need_balancer,
            ),
            Step("check-ports", "check that the ports are free", self._refuse),
        )

    def _refuse(self) -> None:
        expected = self._expected(self._state.params.cluster.has_cloud_controller)
        exposures.refuse_conflicts(self._state, self._owner, expected)


class _OfServices(_OnCluster):
    """What those have in common that know the Services in the cluster."""

    def __init__(
        self, deps: OperationContext, cnf: Cnf, params: ExposureParams
    ) -> None:
        super().__init__(deps)
        self._cnf = cnf
        self._params = params
        self._services: tuple[Service, ...] = ()
        self._wanted: tuple[Exposure, ...] = ()

    def _find(self) -> None:
        present = self._state.cluster().services(self._cnf.namespace)
        self._services = tuple(filter(self._cnf.owns, present))
        cloud = self._state.params.cluster.has_cloud_controller
        owner = self._cnf.vnf_id
        self._wanted = self._params.exposures(owner, self._services, cloud)
        pending = [
            exposure.service for exposure in self._wanted if not exposure.node_port
        ]
        if pending:
            raise errors.ExposureError(
                [f"Service {name} has no node port" for name in pending],
                owner=shown(self._cnf.vnf_id),
                hint="Leave spec.allocateLoadBalancerNodePorts at true.",
            )


class CheckModified(_OfServices):
    """Refuses other parameters of a CNF before they are stored."""

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work; they change nothing."""
        return (
            self._open(locked=False),
            Step(
                "check-load-balancer",
                "check that the cluster has a load balancer",
                self._need_balancer,
            ),
            Step("find-services", "find the CNF's Services", self._find),
            Step("check-ports", "check that the ports are free", self._refuse),
        )

    def _refuse(self) -> None:
        exposures.refuse_conflicts(self._state, self._cnf.vnf_id, self._wanted)


class Expose(_OfServices):
    """Brings the exposures of a CNF into agreement with its Services.

    So it serves instantiation, and whatever may have changed Services since.
    """

    def steps(self) -> tuple[Step, ...]:
        return (
            self._open(),
            Step(
                "check-load-balancer",
                "check that the cluster has a load balancer",
                self._need_balancer,
            ),
            Step("find-services", "find the CNF's Services", self._find),
            Step(
                "expose-services",
                "expose the Services on the load balancer",
                self._expose,
            ),
            Step(
                "publish-address", "publish its address in the Services", self._publish
            ),
        )

    def _expose(self) -> None:
        for exposure in self._wanted:
            outer = (
                f"{exposure.port}/{exposure.protocol} -> node port {exposure.node_port}"
            )
            LOG.info("CNF %s: Service %s: %s", exposure.owner, exposure.service, outer)
        exposures.set_exposures(self._state, self._cnf.vnf_id, self._wanted)

    def _publish(self) -> None:
        exposed = {exposure.service for exposure in self._wanted}
        exposures.publish(self._state, self._services, exposed)


class Unexpose(_OnCluster):
    """Removes all exposures of a CNF; the load balancer need not be there.

    Nor need the cluster: a heal of the whole VNF may have deleted its VMs or removed
    its inventory, and keeps the record until the cluster is rebuilt.

    :param owner: id of the CNF's VNF instance.
    """

    def __init__(self, deps: OperationContext, owner: str) -> None:
        super().__init__(deps)
        self._owner = owner
        self._exposed: tuple[Exposure, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        if self._state.params.load_balancer is None:
            return ()
        return (
            Step(
                "find-nodes", "find the cluster's nodes and load balancer", self._begin
            ),
            Step(
                "find-exposed-services", "find the CNF's exposed Services", self._find
            ),
            Step(
                "withdraw-address",
                "remove its address from the Services",
                self._withdraw,
                probe=lambda: not self._exposed or not self._state.nodes,
            ),
            # Last: a repetition needs the record.
            Step(
                "remove-ports",
                "remove the CNF's ports",
                lambda: exposures.set_exposures(self._state, self._owner, ()),
                probe=lambda: not self._exposed and not self._state.nodes,
            ),
        )

    def _begin(self) -> None:
        state = self._state
        state.site.lock(_PATIENCE, _WITHIN)
        state.nodes = state.inventory_nodes()
        if state.nodes:
            state.machines = state.site.machines()
            settle(state, state.nodes)
        if not any(node.server_id in state.machines.places for node in state.nodes):
            state.nodes = ()

    def _find(self) -> None:
        state = self._state
        if state.nodes:
            recorded = exposures.recorded_exposures(state)
        else:
            recorded = state.records.exposures() or ()
        self._exposed = tuple(e for e in recorded if e.owner == self._owner)

    def _withdraw(self) -> None:
        """Not by what Tacker lists: after a failure that may be another CNF's."""
        for service in exposures.services(self._state, self._exposed):
            exposures.publish(self._state, [service], ())
