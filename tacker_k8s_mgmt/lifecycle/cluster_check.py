"""Asks everybody who knows of a cluster, and changes nothing.

Each is asked on its own: one that does not answer hides no other.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.steps.records import ClusterRecords, nodes_in
from tacker_k8s_mgmt.model.cluster import NodeObject
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus
from tacker_k8s_mgmt.model.nodes import Node, Role, name_nodes
from tacker_k8s_mgmt.model.redaction import Redactor
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.status import report
from tacker_k8s_mgmt.status.facts import Answers, Report, Source
from tacker_k8s_mgmt.topology.heat_stack import Machines

Answer = TypeVar("Answer")
Listing = tuple[tuple[Node, ...], frozenset[str] | None]


class Survey:
    """One look at one VNF instance's cluster."""

    def __init__(self, params: InstallParams, vnf_id: str, view: ports.View) -> None:
        self._params = params
        self._vnf_id = vnf_id
        self._view = view
        self._redact = Redactor(params.secrets())
        self._failures: dict[Source, str] = {}

    def take(self) -> Report:
        """Ask, and compare."""
        said = self._answers()
        try:
            rows = report.compare(said, self._params)
        except errors.ClusterError as error:
            self._fail(Source.HEAT, error)
            rows = report.compare(replace(said, machines=None), self._params)
        sources = report.sources(self._params)
        failures = {
            one: self._failures[one] for one in sources if one in self._failures
        }
        return Report(rows, sources, failures)

    def _answers(self) -> Answers:
        """Side by side; this thread alone uses Tacker's database."""
        with ThreadPoolExecutor(1) as pool:
            listing = pool.submit(self._ask, Source.INVENTORY, self._listing)
            vims = self._ask(Source.VIM, lambda: self._view.vims.registered())
            machines = self._ask(Source.HEAT, lambda: self._view.machines())
            counts = self._ask(Source.HEAT, lambda: tuple(self._view.counts()))
            listed, joined = listing.result() or (None, None)
            planes = tuple(_control_planes(listed, machines))
            nodes = pool.submit(self._ask, Source.CLUSTER, lambda: self._nodes(planes))
            status = None
            if self._params.load_balancer:
                status = self._ask(Source.BALANCER, lambda: self._status(machines))
            return Answers(
                machines, listed, joined, nodes.result(), status, vims, counts
            )

    def _ask(self, source: Source, question: Callable[[], Answer]) -> Answer | None:
        try:
            return question()
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
        records = self._view.workdir
        owner = records.owner()
        if owner not in (None, self._vnf_id):
            raise errors.OwnershipError(
                path=records.path,
                host=self._params.ansible.host,
                reason=f"belongs to the VNF instance {owner}",
            )
        own = ClusterRecords(self._view, self._params.ansible.host)
        return nodes_in(own.inventory()), own.joined()

    def _nodes(self, control_planes: tuple[Node, ...]) -> tuple[NodeObject, ...]:
        """The Node objects, from the first control plane that answers."""
        error: errors.K8sMgmtError = errors.ClusterError(
            detail="Neither the inventory nor Heat tells of a control plane."
        )
        for one in control_planes:
            try:
                return tuple(self._view.cluster(one).nodes())
            except errors.K8sMgmtError as caught:
                error = caught
        raise error

    def _status(self, machines: Machines | None) -> BalancerStatus:
        machine = machines.load_balancer if machines else None
        if machine is None:
            raise errors.ClusterError(detail="Heat does not tell where its VM is.")
        return self._view.balancer(machine).status()


def _control_planes(
    listed: tuple[Node, ...] | None, machines: Machines | None
) -> Iterator[Node]:
    """Every control plane that somebody knows, each address once."""
    found = name_nodes(machines.control_planes) if machines else ()
    tried: set[str] = set()
    for one in (*(listed or ()), *found):
        if one.role is Role.CONTROL_PLANE and one.ssh_address not in tried:
            tried.add(one.ssh_address)
            yield one
