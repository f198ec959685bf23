# SPDX-License-Identifier: Apache-2.0
"""A modification changes the settings of the nodes.

A node that comes back from maintenance gets its routes first; its taint goes with the
other changes of labels, annotations and taints, so that the pods of others have a place
there. A request that names a maintenance also mends what a failed one left behind.

A node that goes into maintenance is then taken out of service as for a scale-in:
routes, cordon, drain. Its taint comes last, because it evicts pods whatever their
budgets say.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import node_marks, placement
from tacker_k8s_mgmt.model import node_settings as entries
from tacker_k8s_mgmt.model.node_marks import NodeMetadata
from tacker_k8s_mgmt.model.nodes import Node, Role, names_of, of_role
from tacker_k8s_mgmt.operations import balancing, node_settings
from tacker_k8s_mgmt.operations.feature import Feature, Work
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects, OperationContext
from tacker_k8s_mgmt.operations.step import Step

LOG = logging.getLogger(__name__)


class NodeSettings(Feature):
    """Labels, annotations, taints and maintenance of nodes."""

    def owns(self, entry: str) -> bool:
        """Whether an entry of the VNF instance's metadata is for this feature."""
        return entries.is_entry(entry)

    def precondition_problems(self, deps: OperationContext) -> Iterable[str]:
        """What is wrong with the settings."""
        return deps.settings.problems

    def work(self, state: ClusterState) -> Work:
        """Its work in one operation."""
        return NodeSettingsWork(state)


class NodeSettingsWork(Work):
    """New nodes get their settings; a modification changes those of nodes."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._marks: Mapping[Node, NodeMetadata] = {}
        self._out: tuple[Node, ...] = ()
        self._entering: tuple[Node, ...] = ()
        self._to_route: tuple[Node, ...] = ()
        self._to_unroute: tuple[Node, ...] = ()
        #: Names of nodes that an operation left cordoned, and of those cordoned here.
        self._left_cordoned: tuple[str, ...] = ()
        self._cordoned: tuple[str, ...] = ()
        self._ready: frozenset[str] = frozenset()
        self._left = ""

    def joined(
        self,
        new: Callable[[], Sequence[Node]],
        what: str,
        without: Callable[[], Collection[str]],
    ) -> Sequence[Step]:
        """The step that sets them on all nodes; none without settings."""
        if not self._state.deps.settings:
            return ()
        return (
            Step(
                f"set labels, taints and annotations of {what}",
                lambda: node_settings.apply(self._state),
                probe=lambda: node_settings.is_set(self._state),
            ),
        )

    def inspect(self, seen: NodeObjects) -> None:
        """Find the nodes that go into maintenance and come out of it."""
        state, settings = self._state, self._state.deps.settings
        marks = node_settings.named(state.nodes, state.cluster().marks())
        out = tuple(n for n in marks if settings.of(n, state.params).maintenance)
        self._marks, self._out = marks, out
        self._ready = frozenset(name for name in seen if seen[name].ready)
        self._entering = tuple(n for n in out if not marks[n].in_maintenance)
        state.kept_in_service = frozenset(self._entering_names())
        back = [n for n in marks if n not in out and marks[n].in_maintenance]
        for what, nodes in (("into", self._entering), ("out of", back)):
            if nodes:
                LOG.info(
                    "These nodes are to go %s maintenance: %s", what, names_of(nodes)
                )
        if self._entering or back or settings.names_maintenance:
            staying = [n for n in marks if n not in out and n.name in seen]
            self._left_cordoned = tuple(
                n.name for n in staying if seen[n.name].cordoned_by_us
            )
            if balancing.exists(state):
                self._compare_routes(staying, out)

    def problems(self) -> Iterator[str]:
        """What the settings cannot be, with the cluster as it is."""
        state, settings, marks = self._state, self._state.deps.settings, self._marks
        yield from settings.unknown(state.nodes, state.params)
        yield from settings.owned(state.nodes, state.params)
        planes = [n for n in state.planes() if n.name not in state.lost]
        if planes and set(planes) <= set(self._out):
            yield (
                "maintenance of every control plane is refused: one of "
                f"{names_of(planes)} has to stay in service"
            )
        wanted = node_settings.wanted(state)
        after = [node_marks.labels_after(m, wanted[m.name]) for m in marks.values()]
        if after == list(marks.values()):
            return
        workloads = state.cluster().workloads()
        out = {node.name for node in self._out}
        later = [node_marks.served(one, one.name not in out) for one in after]
        for workload in placement.stranded(workloads, list(marks.values()), later):
            yield (
                f"{workload} could start on no node any more: its nodeSelector or "
                "required node affinity needs a label that the request takes away, and "
                "nodes that are cordoned, in maintenance or have taints that it does "
                "not tolerate do not count"
            )

    def changes(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        state = self._state
        return (
            Step(
                "put nodes that come back behind the load balancer",
                self._return,
                probe=lambda: not (self._to_route or self._left_cordoned),
            ),
            Step(
                "set labels, annotations and taints",
                lambda: node_settings.apply(state),
                probe=lambda: node_settings.is_set(state),
            ),
            Step(
                "take nodes out of the load balancer",
                self._unroute,
                probe=lambda: not self._to_unroute,
            ),
            Step("cordon them", self._cordon, probe=self._stay),
            Step("drain them", self._drain, probe=self._stay),
            Step("taint them for the maintenance", self._taint, probe=self._stay),
        )

    def left(self) -> str:
        """What stays behind when a step fails."""
        return self._left

    def _compare_routes(self, staying: Sequence[Node], out: Sequence[Node]) -> None:
        status = balancing.report(self._state)
        routed = {one.name for one in (*status.control_planes, *status.workers)}
        lacking = (node for node in staying if node.name not in routed)
        self._to_route = tuple(n for n in lacking if n.name not in self._state.lost)
        self._to_unroute = tuple(node for node in out if node.name in routed)

    def _entering_names(self) -> list[str]:
        return [node.name for node in self._entering]

    def _stay(self) -> bool:
        """Whether no node goes into maintenance."""
        return not self._entering

    def _return(self) -> None:
        self._state.cluster().uncordon(self._left_cordoned)
        self._route(self._to_route)

    def _route(self, nodes: Sequence[Node]) -> None:
        balancing.add(self._state, of_role(nodes, Role.WORKER))
        self._balance(nodes)

    def _unroute(self) -> None:
        self._state.kept_in_service = frozenset()
        balancing.remove(self._state, of_role(self._to_unroute, Role.WORKER))
        self._balance(self._to_unroute)

    def _balance(self, nodes: Sequence[Node]) -> None:
        """Set the control planes of the load balancer, if some of these nodes are."""
        if of_role(nodes, Role.CONTROL_PLANE):
            balancing.set_control_planes(self._state, self._state.nodes)

    def _cordon(self) -> None:
        self._cordoned = self._state.cluster().cordon(self._entering_names())

    def _drain(self) -> None:
        """Drain those that are Ready; no kubelet ends the pods of the others.

        :raises DrainError: pods did not leave; the nodes are in service again.
        """
        state = self._state
        names = [name for name in self._entering_names() if name in self._ready]
        try:
            if names:
                state.cluster().drain(names, state.params.drain)
        except errors.K8sMgmtError:
            self._take_back()
            raise

    def _take_back(self) -> None:
        names = names_of(self._entering)
        self._state.kept_in_service = frozenset(self._entering_names())
        try:
            self._state.cluster().uncordon(self._cordoned)
            self._route(self._entering)
        except errors.K8sMgmtError as error:
            self._left = (
                f"{names} may still be cordoned or without routes, for taking that "
                f"back failed too: {error}"
            )
        else:
            self._left = (
                f"{names} can be scheduled again and have their routes; pods that have "
                "left do not come back by themselves."
            )

    def _taint(self) -> None:
        self._state.kept_in_service = frozenset()
        node_settings.apply(self._state)
