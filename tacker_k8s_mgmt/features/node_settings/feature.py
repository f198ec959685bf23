# SPDX-License-Identifier: Apache-2.0
"""A modification changes the settings of the nodes.

A node that comes back from maintenance gets its routes first; its taint goes with the
other changes of labels, annotations and taints, so that the pods of others have a place
there. A request that names a maintenance also fixes what a failed one left behind.

A node that goes into maintenance is then taken out of service as for a scale-in:
routes, cordon, drain. Its taint comes last, because it evicts pods whatever their
budgets say.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.node_settings import marks
from tacker_k8s_mgmt.features.node_settings.marks import MetadataClient, NodeMetadata
from tacker_k8s_mgmt.features.node_settings.settings import (
    NodeSettings,
    Settings,
    SettingsError,
    is_entry,
)
from tacker_k8s_mgmt.model.nodes import MAINTENANCE_TAINT, Node, Role, names_of, of_role
from tacker_k8s_mgmt.model.plan import Difference, PodMove
from tacker_k8s_mgmt.operations import balancing
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.feature import Feature, Work
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects, OperationContext
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.status.facts import Contribution, Finding, Source
from tacker_k8s_mgmt.status.rows import SEND_AGAIN

LOG = logging.getLogger(__name__)

# A kubelet or a controller may change a Node object between look and change.
_TRIES = 10


class NodeSettingsFeature(Feature):
    """Labels, annotations, taints and maintenance of nodes."""

    def owns(self, entry: str) -> bool:
        return is_entry(entry)

    def precondition_problems(self, deps: OperationContext) -> Iterable[str]:
        """What is wrong with the settings."""
        return _settings(deps).problems

    def report(self, survey: ClusterInspection) -> Contribution:
        """What nodes have otherwise than wanted, and those that are in maintenance."""
        settings = Settings.read(survey.metadata, survey.heals.vnfcs)
        nodes = survey.nodes()
        wanted = {node.name: settings.of(node, survey.params) for node in nodes}
        findings = {
            name: [Finding(text, SEND_AGAIN) for text in marks.differences(one, own)]
            for name, one in _metadata(survey).items()
            if (own := wanted.get(name))
        }
        out = [name for name, one in wanted.items() if one.maintenance]
        return Contribution(findings=findings, out_of_service=out)

    def work(self, state: ClusterState) -> Work:
        return NodeSettingsWork(state)


def _settings(deps: OperationContext) -> Settings:
    return Settings.read(deps.metadata, deps.vnfcs, deps.patch)


def future_labels(state: ClusterState) -> list[NodeMetadata]:
    """The Node objects, with their labels as the settings want them."""
    settings = _settings(state.deps)
    wanted = {node.name: settings.of(node, state.params) for node in state.nodes}
    return [
        marks.labels_after(one, wanted[one.name]) if one.name in wanted else one
        for one in state.client(MetadataClient.through).metadata()
    ]


class NodeSettingsWork(Work):
    """New nodes get their settings; a modification changes those of nodes."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._settings = _settings(state.deps)
        #: Names of the members that are not in maintenance, and stay so whatever the
        #: settings want: only a modification takes them out of service.
        self._kept: frozenset[str] = frozenset()
        self._found: Mapping[Node, NodeMetadata] = {}
        self._out: tuple[Node, ...] = ()
        self._entering: tuple[Node, ...] = ()
        self._to_route: tuple[Node, ...] = ()
        self._to_unroute: tuple[Node, ...] = ()
        #: Names of nodes that an operation left cordoned, and of those cordoned here.
        self._left_cordoned: tuple[str, ...] = ()
        self._cordoned: tuple[str, ...] = ()
        self._ready: frozenset[str] = frozenset()
        self._left = ""

    def check_metadata(self) -> None:
        """Refuse wrong settings.

        :raises SettingsError: with every problem.
        """
        if self._settings.problems:
            raise SettingsError(self._settings.problems)

    def compared(self, seen: NodeObjects) -> None:
        """Keep the full members in service that are not in maintenance.

        Where a request could not begin one, the pods of the node were not drained.
        """
        state = self._state
        self._kept = frozenset(
            node.name
            for node in state.nodes
            if node.server_id in state.members
            and node.name in seen
            and not seen[node.name].in_maintenance
        )

    def in_service(self, node: Node) -> bool:
        """Whether it is not in maintenance, nor to be when it has joined."""
        wanted = self._settings.of(node, self._state.params).maintenance
        return not wanted or node.name in self._kept

    def joined(
        self,
        new: Callable[[], Sequence[Node]],
        what: str,
        without: Callable[[], Collection[str]],
    ) -> Sequence[Step]:
        """The step that sets them on all nodes; none without settings."""
        if not self._settings.settings:
            return ()
        name = f"set labels, taints and annotations of {what}"
        return (Step("set-node-settings", name, self._apply, self._is_set),)

    def inspect(self, seen: NodeObjects) -> None:
        """Find the nodes that go into maintenance and come out of it."""
        state, settings = self._state, self._settings
        objects = {one.name: one for one in self._client().metadata()}
        found = {n: objects[n.name] for n in state.nodes if n.name in objects}
        out = tuple(n for n in found if settings.of(n, state.params).maintenance)
        self._found, self._out = found, out
        self._ready = frozenset(name for name in seen if seen[name].ready)
        self._entering = tuple(n for n in out if not found[n].in_maintenance)
        self._kept = frozenset(self._entering_names())
        back = [n for n in found if n not in out and found[n].in_maintenance]
        for what, nodes in (("into", self._entering), ("out of", back)):
            if nodes:
                LOG.info(
                    "These nodes are to go %s maintenance: %s", what, names_of(nodes)
                )
        if self._entering or back or settings.names_maintenance:
            staying = [n for n in found if n not in out and n.name in seen]
            self._left_cordoned = tuple(
                n.name for n in staying if seen[n.name].cordoned_by_us
            )
            if balancing.exists(state):
                self._compare_routes(staying, out)

    def problems(self) -> Iterator[str]:
        """What the settings cannot be, with the cluster as it is."""
        state, settings, found = self._state, self._settings, self._found
        yield from settings.unknown(state.nodes, state.params)
        yield from settings.owned(state.nodes, state.params)
        planes = [n for n in state.control_planes() if n.name not in state.lost]
        if planes and set(planes) <= set(self._out):
            yield (
                "maintenance of every control plane is refused: one of "
                f"{names_of(planes)} has to stay in service"
            )
        wanted, before = self._wanted(), list(found.values())
        after = [marks.labels_after(one, wanted[one.name]) for one in before]
        if after == before:
            return
        workloads = self._client().workloads()
        out = {node.name for node in self._out}
        later = [marks.served(one, one.name not in out) for one in after]
        for workload in marks.stranded(workloads, before, later):
            yield (
                f"{workload} could start on no node any more: its nodeSelector or "
                "required node affinity needs a label that the request takes away, and "
                "nodes that are cordoned, in maintenance or have taints that it does "
                "not tolerate do not count"
            )

    def changes(self) -> tuple[Step, ...]:
        return (
            Step(
                "add-routes",
                "add routes to returning nodes",
                self._return,
                probe=lambda: not (self._to_route or self._left_cordoned),
            ),
            Step(
                "set-node-settings",
                "set labels, annotations and taints",
                self._apply,
                self._is_set,
                effects=self._differences,
            ),
            Step(
                "remove-routes",
                "remove routes to nodes",
                self._unroute,
                probe=lambda: not self._to_unroute,
            ),
            Step(
                "cordon",
                "cordon the nodes for maintenance",
                self._cordon,
                probe=self._stay,
            ),
            Step(
                "drain",
                "drain the nodes for maintenance",
                self._drain,
                probe=self._stay,
                effects=self._pods,
            ),
            Step(
                "taint",
                "taint the nodes for maintenance",
                self._taint,
                probe=self._stay,
                effects=self._begun,
            ),
        )

    def left(self) -> str:
        return self._left

    def _client(self) -> MetadataClient:
        return self._state.client(MetadataClient.through)

    def _wanted(self) -> Mapping[str, NodeSettings]:
        """The settings of the nodes, by names; maintenance where it has begun."""
        state, of = self._state, self._settings.of
        settings = {node.name: of(node, state.params) for node in state.nodes}
        return {
            name: _without_maintenance(one) if name in self._kept else one
            for name, one in settings.items()
        }

    def _changes(self) -> dict[str, dict[str, object]]:
        """The Node objects that are not as wanted, with what has to change."""
        wanted = self._wanted()
        changes = {
            one.name: marks.change(one, wanted[one.name])
            for one in self._client().metadata()
            if one.name in wanted
        }
        return {name: change for name, change in changes.items() if change}

    def _is_set(self) -> bool:
        """Whether every Node object is as wanted."""
        return not self._changes()

    def _apply(self) -> None:
        """Change the Node objects that are not as wanted, and see that they are.

        :raises ClusterError: others change them, too, each time.
        """
        for _ in range(_TRIES):
            changes = self._changes()
            if not changes:
                return
            self._client().change(changes)
        raise errors.ClusterError(
            detail="The settings of these nodes are changed again and again by "
            f"something else: {', '.join(changes)}.",
            hint="Find out what else sets their labels or taints.",
        )

    def _compare_routes(self, staying: Sequence[Node], out: Sequence[Node]) -> None:
        status = balancing.report(self._state)
        routed = {one.name for one in (*status.control_planes, *status.workers)}
        lacking = (node for node in staying if node.name not in routed)
        self._to_route = tuple(n for n in lacking if n.name not in self._state.lost)
        self._to_unroute = tuple(node for node in out if node.name in routed)

    def _entering_names(self) -> list[str]:
        return [node.name for node in self._entering]

    def _differences(self) -> Iterator[Difference]:
        """What the settings change, for a plan."""
        wanted = self._wanted()
        for one in self._client().metadata():
            own = wanted.get(one.name)
            for words, *values in marks.values_changed(one, own) if own else ():
                yield Difference(f"{one.name}: {words}", *values)

    def _pods(self) -> tuple[PodMove, ...]:
        """The pods that a maintenance moves, for a plan."""
        state = self._state
        names = [name for name in self._entering_names() if name in self._ready]
        return state.cluster().drain_outlook(names, state.params.drain) if names else ()

    def _begun(self) -> Iterator[Difference]:
        """The maintenances that begin, for a plan."""
        for name in self._entering_names():
            yield Difference(f"{name}: maintenance", None, "true")

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
        self._kept = frozenset()
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
        self._kept = frozenset(self._entering_names())
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
        self._kept = frozenset()
        self._apply()


def _without_maintenance(settings: NodeSettings) -> NodeSettings:
    """The settings of a node that is not in maintenance yet."""
    taints = dict(settings.taints)
    taints.pop(MAINTENANCE_TAINT, None)
    return replace(settings, taints=taints, maintenance=False)


@dataclass(frozen=True)
class SettingRow:
    """One setting of one node.

    :param node: "" where the selector names no node.
    :param setting: such as ``label disk`` or ``taint gpu:NoSchedule``.
    :param wanted: its value; None if a former request has set it.
    :param actual: its value; None if the Node object has none.
    :param entry: the metadata's; "" likewise.
    """

    node: str
    setting: str
    wanted: str | None
    actual: str | None
    entry: str

    @property
    def differs(self) -> bool:
        """Whether the node has it otherwise than wanted."""
        return self.wanted != self.actual


@dataclass(frozen=True)
class SettingsReport:
    """All settings.

    :param problems: of the metadata.
    :param failures: why a source could not be read.
    """

    rows: tuple[SettingRow, ...]
    problems: tuple[str, ...]
    failures: Mapping[Source, str]

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return bool(self.problems) or any(row.differs for row in self.rows)


def rows(
    nodes: Sequence[Node],
    objects: Mapping[str, NodeMetadata],
    settings: Settings,
    params: ClusterRequest,
) -> Iterator[SettingRow]:
    """The settings, node by node; then those whose selector names none.

    :param nodes: of the inventory.
    :param objects: by the names of the Node objects.
    """
    used: set[str] = set()
    for node in nodes:
        actual = objects.get(node.name, NodeMetadata(node.name))
        present = actual.shown()
        entries = tuple(settings.entries(node, params))
        used.update(setting.entry for setting in entries)
        wanted = {setting.shown: setting for setting in entries}
        for shown, setting in wanted.items():
            value, entry = setting.value, setting.entry
            yield SettingRow(node.name, shown, value, present.get(shown), entry)
        for shown in marks.applied(actual):
            if shown in present and shown not in wanted:
                yield SettingRow(node.name, shown, None, present[shown], "")
    for setting in settings.settings:
        if setting.entry not in used:
            yield SettingRow("", setting.shown, setting.value, None, setting.entry)


def compare(survey: ClusterInspection) -> SettingsReport:
    """Compare the settings only, with those of the Node objects."""
    settings = Settings.read(survey.metadata, survey.heals.vnfcs)
    nodes, present = survey.nodes(), _metadata(survey)
    found = tuple(rows(nodes, present, settings, survey.params))
    return SettingsReport(found, settings.problems, survey.failures)


def _metadata(survey: ClusterInspection) -> Mapping[str, NodeMetadata]:
    """What the Node objects have, by their names; none if they cannot be read."""

    def read(plane: Node) -> tuple[NodeMetadata, ...]:
        return survey.view.client(MetadataClient.through, plane).metadata()

    return {one.name: one for one in survey.ask_cluster(read) or ()}
