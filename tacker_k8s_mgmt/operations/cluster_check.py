# SPDX-License-Identifier: Apache-2.0
"""Reads a cluster from all sources that know it, and changes nothing.

Each source is read on its own: the failure of one hides no other.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus
from tacker_k8s_mgmt.model.node_marks import NodeMarks
from tacker_k8s_mgmt.model.nodes import Node, NodeObject, Role, name_nodes
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.model.vim import ClusterAccess, Vim
from tacker_k8s_mgmt.operations import application_status, tenants
from tacker_k8s_mgmt.operations.records import ClusterRecords, nodes_in
from tacker_k8s_mgmt.remote.readonly_site import SeenSite
from tacker_k8s_mgmt.request.reader import InstallParams
from tacker_k8s_mgmt.status import rows as report
from tacker_k8s_mgmt.status import settings_report, tenant_rows
from tacker_k8s_mgmt.status.application_report import (
    ApplicationsReport,
    ApplicationState,
)
from tacker_k8s_mgmt.status.facts import Answers, HealCommands, Report, Source
from tacker_k8s_mgmt.status.settings_report import SettingsReport
from tacker_k8s_mgmt.status.tenant_rows import TenantsReport
from tacker_k8s_mgmt.text import Redactor
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.heat_stack import Machines
from tacker_k8s_mgmt.topology.node_settings import Settings

Answer = TypeVar("Answer")
#: What differs of each tenant; None for one that is not in the cluster.
Tenants = Mapping[str, tuple[str, ...] | None]
Listing = tuple[tuple[Node, ...], frozenset[str] | None, tuple[Exposure, ...]]


class Objects(NamedTuple):
    """What is read of the cluster's API."""

    nodes: tuple[NodeObject, ...]
    marks: Mapping[str, NodeMarks]
    services: tuple[Service, ...]
    tenants: Tenants
    logins: Mapping[str, ClusterAccess]


class Survey:
    """The comparison of one VNF instance's cluster."""

    def __init__(
        self,
        params: InstallParams,
        vnf_id: str,
        view: SeenSite,
        settings: Settings | None = None,
        heals: HealCommands | None = None,
    ) -> None:
        self._params = params
        self._vnf_id = vnf_id
        self._view = view
        self._settings = settings or Settings()
        self._heals = heals or HealCommands()
        self._redact = Redactor(params.secrets())
        self._failures: dict[Source, str] = {}
        self._answering: tuple[Node, ...] = ()

    def take(self) -> Report:
        """Read the sources, and compare them."""
        answers, apps = self._answers()
        try:
            rows = report.compare(answers, self._params)
        except errors.ClusterError as error:
            self._fail(Source.HEAT, error)
            rows = report.compare(replace(answers, machines=None), self._params)
        sources = report.sources(self._params)
        failures = {s: self._failures[s] for s in sources if s in self._failures}
        rows = (*rows, *(one.row() for one in apps))
        return Report(rows, sources, failures, self._heals)

    def applications(self) -> ApplicationsReport:
        """Read the applications only."""
        listing = self._read(Source.INVENTORY, self._listing)
        planes = _control_planes(listing[0] if listing else (), None)
        found = self._read(Source.CLUSTER, lambda: self._applications(planes))
        return ApplicationsReport(found or (), self._failures)

    def _answers(self) -> tuple[Answers, tuple[ApplicationState, ...]]:
        """Side by side; only this thread uses Tacker's database."""
        view = self._view
        with ThreadPoolExecutor(1) as pool:
            listing = pool.submit(self._read, Source.INVENTORY, self._listing)
            vims = self._read(Source.VIM, lambda: view.vims.registered())
            tenant_vims = self._read(Source.VIM, lambda: view.vims.of_tenants())
            machines = self._read(Source.HEAT, lambda: view.machines())
            counts = self._read(Source.HEAT, lambda: tuple(view.counts()))
            listed, joined, exposures = listing.result() or (None, None, None)
            if machines and listed:
                machines = self._settled(machines, listed)
            planes = _control_planes(listed, machines)
            nodes = pool.submit(
                self._read, Source.CLUSTER, lambda: self._nodes(planes, exposures)
            )
            clocks = pool.submit(
                self._read,
                Source.INVENTORY,
                lambda: self._view.clocks_of(listed or ()),
            )
            status = None
            if self._params.load_balancer:
                status = self._read(Source.BALANCER, lambda: self._status(machines))
            objects = nodes.result()
            logins = objects.logins if objects else {}
            former = self._read(
                Source.VIM, lambda: self._former(logins, tenant_vims or {})
            )
            # Only a control plane that has answered.
            asked = self._answering
            apps = self._read(Source.CLUSTER, lambda: self._applications(asked))
            answers = Answers(
                machines=machines,
                inventory=listed,
                joined=joined,
                nodes=objects.nodes if objects else None,
                balancer=status,
                vims=vims,
                counts=counts,
                exposures=exposures,
                services=objects.services if objects else None,
                marks=objects.marks if objects else None,
                settings=self._settings,
                tenants=objects.tenants if objects else None,
                tenant_vims=tenant_vims,
                former_logins=former,
                clocks=clocks.result(),
            )
            return answers, apps or ()

    def compare_settings(self) -> SettingsReport:
        """Compare the settings of the nodes only, with those of the Node objects."""
        listing = self._read(Source.INVENTORY, self._listing)
        listed = listing[0] if listing else ()
        planes = _control_planes(listed, None)
        answer = self._read(Source.CLUSTER, lambda: self._nodes(planes))
        marks = answer.marks if answer else {}
        rows = settings_report.rows(listed, marks, self._settings, self._params)
        return SettingsReport(tuple(rows), self._settings.problems, self._failures)

    def _read(self, source: Source, read: Callable[[], Answer]) -> Answer | None:
        try:
            return read()
        except Exception as error:
            # Whatever a client, a driver of the database or Tacker may raise.
            self._fail(source, error)
        return None

    def _fail(self, source: Source, error: Exception) -> None:
        text = str(error).strip()
        if isinstance(error, OSError) and error.filename:
            text = f"{error.filename} cannot be read: {error.strerror}."
        elif not isinstance(error, errors.K8sMgmtError | OSError):
            text = f"{type(error).__name__}: {text}"
        self._failures[source] = self._redact(text)

    def _listing(self) -> Listing:
        workdir, host = self._view.workdir, self._params.ansible.host
        owner = workdir.owner()
        if owner not in (None, self._vnf_id):
            raise errors.OwnershipError(
                path=workdir.path,
                host=host,
                reason=f"belongs to the VNF instance {owner}",
            )
        records = ClusterRecords(self._view, host)
        exposures = records.exposures() or ()
        return nodes_in(records.inventory()), records.joined(), exposures

    def _settled(self, machines: Machines, listed: Sequence[Node]) -> Machines:
        """The VMs at their recorded addresses, as operations see them."""
        balancer = None
        if self._params.load_balancer:
            records = ClusterRecords(self._view, self._params.ansible.host)
            balancer = self._read(Source.INVENTORY, lambda: records.balancer(machines))
        return membership.at_recorded_addresses(machines, listed, balancer)

    def compare_tenants(self) -> TenantsReport:
        """Compare the tenants only."""
        answers, _ = self._answers()
        rows = tuple(tenant_rows.rows(answers, self._params))
        params, failures = self._params, self._failures
        asked = (Source.CLUSTER, Source.VIM)
        unread = {s: failures[s] for s in failures if s in asked}
        return TenantsReport(rows, params.tenants, params.metadata_problems, unread)

    def _nodes(
        self,
        control_planes: tuple[Node, ...],
        exposures: Collection[Exposure] | None = None,
    ) -> Objects:
        """The objects, with the Services of these exposures.

        Through a control plane that answers.
        """
        namespaces = sorted({exposure.namespace for exposure in exposures or ()})

        def ask(plane: Node) -> Objects:
            cluster = self._view.cluster(plane)
            marks = {one.name: one for one in cluster.marks()}
            services = chain.from_iterable(map(cluster.services, namespaces))
            nodes = tuple(cluster.nodes())
            self._answering = (plane,)
            found = self._tenants(plane)
            logins = self._logins(plane, found)
            return Objects(nodes, marks, tuple(services), found, logins)

        return _first(control_planes, ask)

    def _applications(self, planes: tuple[Node, ...]) -> tuple[ApplicationState, ...]:
        """The applications; none without a control plane to ask."""

        def ask(plane: Node) -> tuple[ApplicationState, ...]:
            return application_status.read(self._view.applications(plane), self._params)

        return _first(planes, ask) if planes else ()

    def _tenants(self, plane: Node) -> Tenants:
        """What differs of each tenant that is wanted or there."""
        manifests, wanted = self._view.manifests(plane), self._params.tenants
        there = tenants.known(manifests)
        found = {
            tenant.name: tuple(tenants.differences(manifests, tenant))
            for tenant in wanted
            if tenant.name in there
        }
        lost = {tenant.name for tenant in wanted} - there
        return {**dict.fromkeys(there, ()), **dict.fromkeys(lost), **found}

    def _logins(self, plane: Node, found: Tenants) -> Mapping[str, ClusterAccess]:
        """The logins of the tenants in the cluster that have a token."""
        manifests = self._view.manifests(plane)
        logins = {name: tenants.access(manifests, name) for name in sorted(found)}
        return {name: login for name, login in logins.items() if login}

    def _former(
        self, logins: Mapping[str, ClusterAccess], vims: Mapping[str, Vim]
    ) -> frozenset[str]:
        """The tenants whose VIM has another login."""
        both = logins.keys() & vims.keys()
        has_login = self._view.vims.has_login
        return frozenset(name for name in both if not has_login(name, logins[name]))

    def _status(self, machines: Machines | None) -> BalancerStatus:
        machine = machines.load_balancer if machines else None
        if machine is None:
            raise errors.ClusterError(detail="The address of its VM is not known.")
        return self._view.balancer(machine).status()


def _first(planes: Sequence[Node], ask: Callable[[Node], Answer]) -> Answer:
    """The answer of the first control plane that has one."""
    error: errors.K8sMgmtError = errors.ClusterError(
        detail="Neither the inventory nor Heat has a control plane."
    )
    for plane in planes:
        try:
            return ask(plane)
        except errors.K8sMgmtError as caught:
            error = caught
    raise error


def _control_planes(
    listed: tuple[Node, ...] | None, machines: Machines | None
) -> tuple[Node, ...]:
    """The control planes of inventory and Heat, each address once."""
    in_heat = name_nodes(machines.control_planes) if machines else ()
    planes: dict[str, Node] = {}
    for node in (*(listed or ()), *in_heat):
        if node.role is Role.CONTROL_PLANE:
            planes.setdefault(node.ssh_address, node)
    return tuple(planes.values())
