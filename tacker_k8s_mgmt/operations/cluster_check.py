# SPDX-License-Identifier: Apache-2.0
"""Reads a cluster from all sources that know it, and changes nothing.

Each source is read on its own: the failure of one hides no other.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus
from tacker_k8s_mgmt.model.node_marks import NodeMetadata
from tacker_k8s_mgmt.model.nodes import Node, NodeObject, Role, name_nodes
from tacker_k8s_mgmt.operations.feature import Feature
from tacker_k8s_mgmt.operations.records import ClusterRecords, nodes_in
from tacker_k8s_mgmt.remote.readonly_site import ReadOnlySite
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.status import rows as report
from tacker_k8s_mgmt.status import settings_report
from tacker_k8s_mgmt.status.facts import Answers, HealCommands, Report, Source
from tacker_k8s_mgmt.status.settings_report import SettingsReport
from tacker_k8s_mgmt.text import Redactor
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.heat_stack import Machines
from tacker_k8s_mgmt.topology.node_settings import Settings

Answer = TypeVar("Answer")
Listing = tuple[tuple[Node, ...], frozenset[str] | None]
Objects = tuple[tuple[NodeObject, ...], Mapping[str, NodeMetadata]]


class ClusterInspection:
    """The comparison of one VNF instance's cluster."""

    def __init__(
        self,
        params: ClusterRequest,
        vnf_id: str,
        view: ReadOnlySite,
        settings: Settings | None = None,
        heals: HealCommands | None = None,
        features: Sequence[Feature] = (),
    ) -> None:
        self._params = params
        self._vnf_id = vnf_id
        self._view = view
        self._settings = settings or Settings()
        self._heals = heals or HealCommands()
        self._redact = Redactor(params.secrets())
        self._features = features
        self._failures: dict[Source, str] = {}
        #: The sources of the core's rows that could not be read.
        self._silent: frozenset[Source] = frozenset()
        self._balancer: BalancerStatus | None = None
        #: The control planes to ask; None: not known yet.
        self._planes: tuple[Node, ...] | None = None

    @property
    def params(self) -> ClusterRequest:
        """The stored parameters."""
        return self._params

    @property
    def view(self) -> ReadOnlySite:
        """The site, read-only."""
        return self._view

    @property
    def records(self) -> ClusterRecords:
        """The files of the cluster's directory."""
        return ClusterRecords(self._view, self._params.ansible.host)

    @property
    def balancer(self) -> BalancerStatus | None:
        """What the load balancer reports; None if there is none, or no answer."""
        return self._balancer

    @property
    def failures(self) -> Mapping[Source, str]:
        """Why sources could not be read."""
        return self._failures

    def ask(self, source: Source, read: Callable[[], Answer]) -> Answer | None:
        """What *read* returns; None if the source cannot be read.

        One that did not answer about the VMs is not asked again.
        """
        return None if source in self._silent else self._read(source, read)

    def ask_cluster(self, read: Callable[[Node], Answer]) -> Answer | None:
        """The same of the cluster, through a control plane that answers."""
        if self._planes is None:
            listing = self._read(Source.INVENTORY, self._listing)
            self._planes = _control_planes(listing[0] if listing else (), None)
        planes = self._planes
        return self.ask(Source.CLUSTER, lambda: _first(planes, read))

    def take(self) -> Report:
        """Read the sources, and compare them."""
        answers = self._answers()
        try:
            rows = report.compare(answers, self._params)
        except errors.ClusterError as error:
            self._fail(Source.HEAT, error)
            rows = report.compare(replace(answers, machines=None), self._params)
        self._silent = frozenset(self._failures)
        of_features = (row for one in self._features for row in one.report(self))
        rows = (*rows, *of_features)
        sources = report.sources(self._params)
        failures = {s: self._failures[s] for s in sources if s in self._failures}
        return Report(rows, sources, failures, self._heals)

    def _answers(self) -> Answers:
        """Side by side; only this thread uses Tacker's database."""
        view = self._view
        with ThreadPoolExecutor(1) as pool:
            listing = pool.submit(self._read, Source.INVENTORY, self._listing)
            vims = self._read(Source.VIM, lambda: view.vims.registered())
            machines = self._read(Source.HEAT, lambda: view.machines())
            counts = self._read(Source.HEAT, lambda: tuple(view.counts()))
            listed, joined = listing.result() or (None, None)
            if machines and listed:
                machines = self._settled(machines, listed)
            planes = _control_planes(listed, machines)
            nodes = pool.submit(self._read, Source.CLUSTER, lambda: self._nodes(planes))
            clocks = pool.submit(
                self._read,
                Source.INVENTORY,
                lambda: self._view.clocks_of(listed or ()),
            )
            if self._params.load_balancer:
                self._balancer = self._read(
                    Source.BALANCER, lambda: self._status(machines)
                )
            objects, marks = nodes.result() or (None, None)
            return Answers(
                machines=machines,
                inventory=listed,
                joined=joined,
                nodes=objects,
                balancer=self._balancer,
                vims=vims,
                counts=counts,
                marks=marks,
                settings=self._settings,
                clocks=clocks.result(),
            )

    def compare_settings(self) -> SettingsReport:
        """Compare the settings of the nodes only, with those of the Node objects."""
        listing = self._read(Source.INVENTORY, self._listing)
        listed = listing[0] if listing else ()
        planes = _control_planes(listed, None)
        _, marks = self._read(Source.CLUSTER, lambda: self._nodes(planes)) or ((), {})
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
        records = self.records
        return nodes_in(records.inventory()), records.joined()

    def _settled(self, machines: Machines, listed: Sequence[Node]) -> Machines:
        """The VMs at their recorded addresses, as operations see them."""
        balancer = None
        if self._params.load_balancer:
            balancer = self._read(
                Source.INVENTORY, lambda: self.records.balancer(machines)
            )
        return membership.at_recorded_addresses(machines, listed, balancer)

    def _nodes(self, control_planes: tuple[Node, ...]) -> Objects:
        """The Node objects, through a control plane that answers."""

        def ask(plane: Node) -> Objects:
            cluster = self._view.cluster(plane)
            marks = {one.name: one for one in cluster.marks()}
            nodes = tuple(cluster.nodes())
            self._planes = (plane,)
            return nodes, marks

        self._planes = ()
        return _first(control_planes, ask)

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
