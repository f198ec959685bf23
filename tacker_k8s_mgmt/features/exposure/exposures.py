# SPDX-License-Identifier: Apache-2.0
"""The ports of CNFs on the external load balancer: its configuration and their record.

The record is part of the cluster's state: it says what is wanted, the load balancer is
brought in agreement with it. All of this is done with the cluster's lock.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.exposure import rows
from tacker_k8s_mgmt.model.exposure import Exposure, of_service, shown
from tacker_k8s_mgmt.model.load_balancer import STATISTICS_PORT
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.model.services import LOAD_BALANCER, Service
from tacker_k8s_mgmt.operations import balancing
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.compare import ask_balancer
from tacker_k8s_mgmt.operations.feature import Feature, Work
from tacker_k8s_mgmt.operations.records import EXPOSURES_FILE, read_or_none
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.request.accounts import SSH_PORT
from tacker_k8s_mgmt.status.facts import Contribution, Source

LOG = logging.getLogger(__name__)


class Exposures(Feature):
    """Ports of CNFs on the load balancer."""

    kept_files = (EXPOSURES_FILE,)

    def report(self, survey: ClusterInspection) -> Contribution:
        """A row for each port of a CNF that is recorded or exposed."""
        if not survey.params.load_balancer:
            return Contribution()
        recorded = survey.ask(
            Source.INVENTORY, lambda: survey.records.exposures() or ()
        )
        namespaces = sorted({one.namespace for one in recorded or ()})

        def services(plane: Node) -> tuple[Service, ...]:
            cluster = survey.view.cluster(plane)
            return tuple(chain.from_iterable(map(cluster.services, namespaces)))

        found = survey.ask_cluster(services) if namespaces else ()
        exposed = survey.balancer.services if survey.balancer else None
        answers = rows.Answers(recorded, found, exposed)
        return Contribution(tuple(rows.rows(answers)))

    def work(self, state: ClusterState) -> Work:
        return ExposureWork(state)


class ExposureWork(Work):
    """The exposures that outlive a load balancer, and that keep a cluster."""

    def restore_records(self) -> None:
        """Rebuild a damaged record by what the load balancer reports."""
        state = self._state
        ask_balancer(state.records.exposures, lambda: recorded_exposures(state))

    def balancer_leaves(self) -> None:
        """Record what it exposes."""
        recorded_exposures(self._state)

    def balancer_installed(self) -> None:
        """Expose what is recorded, in one change."""
        if exposures := self._state.records.exposures():
            services = [exposure.on_balancer() for exposure in exposures]
            balancing.change_services(self._state, services)

    def balancer_replaced(self, unless: Callable[[], bool] | None) -> Sequence[Step]:
        """The step that publishes its address."""
        return (
            Step(
                "publish-address",
                "publish its address in the exposed Services",
                lambda: restore_services(self._state),
                probe=unless,
            ),
        )

    def termination_checks(self) -> Sequence[Step]:
        """The step that refuses while CNFs are exposed."""
        title = "check that the load balancer exposes no CNF"
        return (Step("check-unexposed", title, self._check_unexposed),)

    def _check_unexposed(self) -> None:
        """Refuse to terminate a cluster whose load balancer exposes CNFs.

        A record that cannot be read refuses nothing: it must not keep the VNF.
        """
        deps = self._state.deps
        try:
            own = deps.site.workdir.owner() == deps.vnf_id
            found = self._state.records.exposures() if own else ()
        except (errors.K8sMgmtError, OSError, ValueError) as error:
            LOG.warning("Whether CNFs are exposed is not known: %s", error)
            return
        # An application goes with the cluster.
        exposures = [one for one in found or () if not one.is_of_application]
        if exposures:
            owners = {exposure.owner: exposure.title for exposure in exposures}
            listed = ", ".join(f"{owner} (port {owners[owner]})" for owner in owners)
            raise errors.ClusterError(
                detail=f"The load balancer exposes CNFs on the cluster: {listed}.",
                hint="Terminate these VNFs first, or terminate the cluster with "
                "terminationType FORCEFUL; nothing was changed.",
            )


def recorded_exposures(state: ClusterState) -> tuple[Exposure, ...]:
    """The exposures of all CNFs; a lost or damaged record is rebuilt.

    :raises DamagedFile: it is, and there is no load balancer that could report.
    :raises K8sMgmtError: the load balancer does not report what it exposes.
    """
    if balancing.exists(state):
        how = "It is rebuilt by the load balancer."
        exposures = read_or_none(state.records.exposures, how)
    else:
        exposures = state.records.exposures()
    if exposures is None:
        exposures = _on_balancer(state)
        _write(state, exposures)
    return exposures


def refuse_conflicts(
    state: ClusterState, owner: str, wanted: Sequence[Exposure]
) -> None:
    """Refuse ports of the load balancer that are in use already.

    :param owner: whose exposures *wanted* are to be.
    :raises ExposureError: naming each port, its Service, and what uses it.
    """
    users = dict(_users(state, owner))
    problems = []
    for exposure in wanted:
        if user := users.get(exposure.outer_port):
            problems.append(f"port {exposure.title} is in use by {user}")
        service = f"{exposure.namespace}/{exposure.service}"
        users[exposure.outer_port] = f"its own Service {service}"
    if problems:
        raise errors.ExposureError(
            problems,
            owner=shown(owner),
            hint="Choose other ports of the load balancer with external_port; its "
            "configuration was not changed.",
        )


def set_exposures(state: ClusterState, owner: str, wanted: Sequence[Exposure]) -> None:
    """Make these the exposures of an owner, on the load balancer and in the record.

    Others of this owner are removed, and so is what the load balancer exposes for a CNF
    without a record. With nothing to change, the load balancer is not called.

    The record is written first, for it is what a heal restores. If the script refuses,
    which leaves the earlier configuration in place, the former record comes back. After
    any other failure nothing is known about the load balancer: the record stays, and a
    repetition, a later call for any CNF (for what is to be removed), or a heal of the
    load balancer brings it in agreement; meanwhile ``cluster check`` shows a
    difference.

    :param wanted: empty: remove all; then the load balancer may be gone.
    :raises ExposureError: see :func:`refuse_conflicts`; nothing was changed.
    :raises LoadBalancerError: the script failed; record and configuration are as they
        were.
    """
    former = recorded_exposures(state)
    if unknown := [e.title for e in wanted if not e.node_port]:
        raise errors.ExposureError(
            [f"port {title} has no node port" for title in unknown],
            owner=shown(owner),
            hint="See the Service with kubectl; the load balancer's configuration was "
            "not changed.",
        )
    if wanted:
        refuse_conflicts(state, owner, wanted)
    record = (*(e for e in former if e.owner != owner), *wanted)
    _write(state, record)
    present = {exposure.name: exposure for exposure in _on_balancer(state)}
    gone = [*(present.keys() - {exposure.name for exposure in record})]
    new = [e.on_balancer() for e in wanted if present.get(e.name) != e]
    if not new and not gone:
        return
    try:
        balancing.change_services(state, new, gone)
    except errors.LoadBalancerError:
        _write(state, former)
        raise


def services(state: ClusterState, exposures: Iterable[Exposure]) -> Iterator[Service]:
    """The Services of these exposures, as far as they are in the cluster."""
    names = {(exposure.namespace, exposure.service) for exposure in exposures}
    for namespace in {namespace for namespace, _ in names}:
        for service in state.cluster().services(namespace):
            if (namespace, service.name) in names:
                yield service


def publish(
    state: ClusterState, services: Iterable[Service], exposed: Collection[str]
) -> None:
    """See that the status of these Services has the address if they are exposed.

    That of another implementation of load balancers is left alone, and the cloud
    controller writes its own.

    :param exposed: their names.
    """
    machine = state.machines.load_balancer
    ours = machine and not state.params.cluster.has_cloud_controller
    address = machine.ssh_address if machine and ours else ""
    for service in services:
        wanted = address if service.name in exposed else ""
        if service.type != LOAD_BALANCER or service.shows(wanted):
            continue
        if service.has_foreign_address:
            LOG.warning(
                "Service %s has the address of another load balancer: %s",
                service.name,
                ", ".join(service.ingress),
            )
            continue
        state.cluster().publish(service, wanted)


def restore_services(state: ClusterState) -> None:
    """Write the address of a load balancer that may be new into all their Services.

    Without a change nothing is written.
    """
    for service in services(state, state.records.exposures() or ()):
        publish(state, [service], [service.name])


def _write(state: ClusterState, exposures: Sequence[Exposure]) -> None:
    content = [asdict(e) for e in sorted(exposures, key=lambda e: e.name)]
    state.write_json(EXPOSURES_FILE, content)


def _on_balancer(state: ClusterState) -> tuple[Exposure, ...]:
    """What the load balancer exposes for CNFs; nothing if there is none."""
    if not balancing.exists(state):
        return ()
    exposures = map(of_service, balancing.report(state).services)
    return tuple(exposure for exposure in exposures if exposure is not None)


def _users(state: ClusterState, owner: str) -> Iterator[tuple[tuple[str, int], str]]:
    """What uses a port of the load balancer, by protocol and port, without *owner*."""
    report = balancing.report(state)
    for service in report.services:
        if of_service(service) is None:
            by_hand = f"{service.name}, which was exposed by hand"
            yield (service.protocol, service.port), by_hand
    for exposure in recorded_exposures(state):
        if exposure.owner != owner:
            name = f"{exposure.namespace}/{exposure.service}"
            yield exposure.outer_port, f"Service {name} of {shown(exposure.owner)}"
    if report.api_port is not None:
        yield ("tcp", report.api_port), "the Kubernetes API"
    yield ("tcp", STATISTICS_PORT), "HAProxy's statistics"
    yield ("tcp", SSH_PORT), "SSH"
