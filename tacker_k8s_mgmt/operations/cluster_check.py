# SPDX-License-Identifier: Apache-2.0
"""Reads a cluster from all sources that know it, and changes nothing.

Each source is read on its own: the failure of one hides no other.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus
from tacker_k8s_mgmt.model.nodes import Node, NodeObject, Role, name_nodes
from tacker_k8s_mgmt.operations.feature import Feature
from tacker_k8s_mgmt.operations.records import ClusterRecords, nodes_in
from tacker_k8s_mgmt.remote.readonly_site import ReadOnlySite
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.status import rows
from tacker_k8s_mgmt.status.facts import (
    Answers,
    ClusterComparison,
    HealCommands,
    Source,
)
from tacker_k8s_mgmt.status.rows import Member
from tacker_k8s_mgmt.text import Redactor
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.heat_stack import Machines

Answer = TypeVar("Answer")
Listing = tuple[tuple[Node, ...], frozenset[str] | None]


class ClusterInspection:
    """The comparison of one VNF instance's cluster.

    :param metadata: of the VNF instance.
    :param heals: the commands that heal, with the server of each VNFC.
    :ivar failures: why sources could not be read.
    :ivar balancer: what the load balancer reports; None if there is none, or no answer.
    """

    def __init__(
        self,
        params: ClusterRequest,
        vnf_id: str,
        view: ReadOnlySite,
        metadata: Mapping[str, Any] | None = None,
        heals: HealCommands | None = None,
        features: Sequence[Feature] = (),
    ) -> None:
        self.params = params
        self._vnf_id = vnf_id
        self.view = view
        self.metadata = metadata or {}
        self.heals = heals or HealCommands()
        self._redact = Redactor(params.secrets())
        self._features = features
        self.failures: dict[Source, str] = {}
        #: The sources of the core's rows that could not be read.
        self._silent: frozenset[Source] = frozenset()
        self.balancer: BalancerStatus | None = None
        #: None: not known yet.
        self._nodes: tuple[Node, ...] | None = None
        #: The control planes to ask; None: likewise.
        self._planes: tuple[Node, ...] | None = None

    @property
    def records(self) -> ClusterRecords:
        """The files of the cluster's directory."""
        return ClusterRecords(self.view, self.params.ansible.host)

    def ask(self, source: Source, read: Callable[[], Answer]) -> Answer | None:
        """What *read* returns; None if the source cannot be read.

        One that did not answer about the VMs is not asked again.
        """
        return None if source in self._silent else self._read(source, read)

    def ask_cluster(self, read: Callable[[Node], Answer]) -> Answer | None:
        """The same of the cluster, through a control plane that answers."""
        if self._planes is None:
            self._planes = _control_planes(self.nodes(), None)
        planes = self._planes
        return self.ask(Source.CLUSTER, lambda: _first(planes, read))

    def nodes(self) -> tuple[Node, ...]:
        """The nodes of Heat and inventory; before they are compared, the inventory's.

        :returns: none if the inventory cannot be read.
        """
        if self._nodes is None:
            listing = self._read(Source.INVENTORY, self._listing)
            self._nodes = listing[0] if listing else ()
        return self._nodes

    def look(self) -> tuple[list[Member], Answers]:
        """Read the sources; what they have under one name each."""
        answers = self._answers()
        try:
            members = rows.members_of(answers)
        except errors.ClusterError as error:
            self._fail(Source.HEAT, error)
            answers = replace(answers, machines=None)
            members = rows.members_of(answers)
        self._nodes = tuple(one.place for one in members if one.place)
        self._silent = frozenset(self.failures)
        return members, answers

    def compare(self, members: Sequence[Member], answers: Answers) -> ClusterComparison:
        """Compare what :meth:`look` has found, and what features add."""
        found = [one.report(self) for one in self._features]
        compared = rows.compare(members, answers, self.params, found)
        sources = rows.sources(self.params)
        failures = {s: self.failures[s] for s in sources if s in self.failures}
        return ClusterComparison(compared, sources, failures, self.heals)

    def take(self) -> ClusterComparison:
        """Read the sources, and compare them."""
        return self.compare(*self.look())

    def _answers(self) -> Answers:
        """Side by side; only this thread uses Tacker's database."""
        view = self.view
        with ThreadPoolExecutor(1) as pool:
            listing = pool.submit(self._read, Source.INVENTORY, self._listing)
            vims = self._read(Source.VIM, lambda: view.vims.registered())
            machines = self._read(Source.HEAT, lambda: view.machines())
            counts = self._read(Source.HEAT, lambda: tuple(view.counts()))
            listed, joined = listing.result() or (None, None)
            if machines and listed:
                machines = self._settled(machines, listed)
            planes = _control_planes(listed, machines)
            nodes = pool.submit(
                self._read, Source.CLUSTER, lambda: self._objects(planes)
            )
            # A node that does not answer is left out. What may fail is to read, on the
            # Ansible server, the host keys and logins for it.
            clocks = pool.submit(
                self._read, Source.INVENTORY, lambda: self.view.clocks_of(listed or ())
            )
            if self.params.load_balancer:
                self.balancer = self._read(
                    Source.BALANCER, lambda: self._status(machines)
                )
            return Answers(
                machines=machines,
                inventory=listed,
                joined=joined,
                nodes=nodes.result(),
                balancer=self.balancer,
                vims=vims,
                counts=counts,
                clocks=clocks.result(),
            )

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
        self.failures[source] = self._redact(text)

    def _listing(self) -> Listing:
        workdir, host = self.view.workdir, self.params.ansible.host
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
        if self.params.load_balancer:
            balancer = self._read(
                Source.INVENTORY, lambda: self.records.balancer(machines)
            )
        return membership.at_recorded_addresses(machines, listed, balancer)

    def _objects(self, control_planes: tuple[Node, ...]) -> tuple[NodeObject, ...]:
        """The Node objects, through a control plane that answers."""

        def ask(plane: Node) -> tuple[NodeObject, ...]:
            nodes = tuple(self.view.cluster(plane).nodes())
            self._planes = (plane,)
            return nodes

        self._planes = ()
        return _first(control_planes, ask)

    def _status(self, machines: Machines | None) -> BalancerStatus:
        machine = machines.load_balancer if machines else None
        if machine is None:
            raise errors.ClusterError(detail="The address of its VM is not known.")
        return self.view.balancer(machine).status()


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
