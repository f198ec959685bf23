# SPDX-License-Identifier: Apache-2.0
"""The applications of a cluster are brought to what its parameters want.

All are checked before one of them changes anything. Those that are not wanted any more
are removed first; the others follow in the order of the parameters. One that the
cluster has already, object by object, is left alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications import report, rollout
from tacker_k8s_mgmt.features.applications.content import InstalledApplication, owner_of
from tacker_k8s_mgmt.features.applications.host import ApplicationHost
from tacker_k8s_mgmt.features.applications.report import (
    ApplicationsReport,
    ApplicationState,
)
from tacker_k8s_mgmt.features.applications.rollout import Rollout
from tacker_k8s_mgmt.features.applications.sources import Sources, Wanted, namespace_of
from tacker_k8s_mgmt.features.exposure import exposures
from tacker_k8s_mgmt.features.node_settings.feature import future_labels
from tacker_k8s_mgmt.features.node_settings.marks import NodeMetadata, Workload
from tacker_k8s_mgmt.model import exposure, manifests
from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.manifests import OWNER, is_hook, title
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.model.plan import Difference
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.operations import balancing
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.feature import Feature, Work
from tacker_k8s_mgmt.operations.state import ClusterState, NodeObjects, OperationContext
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.applications import Application
from tacker_k8s_mgmt.request.cnf_exposure import ExposureParams
from tacker_k8s_mgmt.request.reader import APPLICATIONS, ClusterRequest
from tacker_k8s_mgmt.status.facts import Contribution


def problems(
    wanted: Sequence[Wanted],
    host: ApplicationHost,
    nodes: Sequence[NodeMetadata],
    params: ClusterRequest,
) -> Iterator[str]:
    """What keeps the applications from working, a sentence each.

    :param nodes: with their labels as they are to be.
    """
    allowed = _registries(params)
    for one in wanted:
        for text in (*_places(one, nodes), *_images(one, allowed), *_api(one, host)):
            yield f"application {one.app.name}: {text}"


def lacking_labels(
    apps: Iterable[Application], nodes: Sequence[NodeMetadata]
) -> Iterator[str]:
    """The labels that applications require, and too few nodes have.

    :param nodes: with their labels as they are to be.
    """
    for app in apps:
        for needed in app.requires:
            key, _, value = needed.label.partition("=")
            having = sum(node.labels.get(key) == value for node in nodes)
            if having < needed.nodes:
                yield (
                    f"application {app.name}: it requires {needed.nodes} nodes with "
                    f"the label {needed.label}, and {having} have it"
                )


def _places(wanted: Wanted, nodes: Sequence[NodeMetadata]) -> Iterator[str]:
    for workload in _bound(wanted.objects):
        if not any(map(workload.accepts, nodes)):
            selector = ", ".join(
                f"{k}={v}" for k, v in workload.placement.selector.items()
            )
            needs = f"the labels {selector}" if selector else "its node affinity"
            yield f"{workload} can run on no node, for none has {needs}"


def _bound(objects: Iterable[manifests.Object]) -> Iterator[Workload]:
    """The workloads whose pods need labels of nodes."""
    for one in objects:
        spec = manifests.template_of(one).get("spec") or {}
        selector = spec.get("nodeSelector") or {}
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        if selector or affinity:
            metadata = one["metadata"]
            place = metadata.get("namespace") or ""
            name = metadata["name"]
            yield Workload.read(one["kind"], place, name, selector, affinity)


def _registries(params: ClusterRequest) -> frozenset[str]:
    """Hosts from which nodes can pull; empty where nothing is known about that.

    Without a registry that replaces those of the Internet, nodes may reach any.
    """
    cluster = params.cluster
    if not cluster.offline.registry_host:
        return frozenset()
    hosts = {cluster.offline.registry_host.partition("/")[0]}
    hosts |= {registry.prefix.partition("/")[0] for registry in cluster.registries}
    hosts |= {one.server.partition("/")[0] for one in params.private_registries}
    return frozenset(hosts)


def _images(wanted: Wanted, allowed: frozenset[str]) -> Iterator[str]:
    for image, user in manifests.images(wanted.objects).items():
        if allowed and manifests.registry_of(image) not in allowed:
            yield (
                f"{user} needs the image {image}, but the cluster has images from "
                f"{', '.join(sorted(allowed))} only"
            )


def _api(wanted: Wanted, host: ApplicationHost) -> Iterator[str]:
    """What the API server has against its objects."""
    owner, objects = owner_of(wanted.app.name), wanted.content.objects
    # A Job that is there is replaced, not changed.
    jobs = manifests.of_kinds(objects, manifests.JOB)
    present = host.objects.present(jobs)
    for job in present:
        if (job["metadata"].get("labels") or {}).get(OWNER) != owner:
            yield f"{title(job)} is in the cluster already, and is not its own"
    space = namespace_of(wanted.app)
    missing = [] if host.objects.present([space]) else [space]
    others = manifests.without(objects, present)
    # Helm itself refuses objects that are not of its release.
    if others:
        yield from host.objects.check([*missing, *others], owner=owner)
    for one in wanted.objects:
        if manifests.identity(one) == manifests.identity(space):
            yield f"it has {title(one)} itself, which is created for it"


LOG = logging.getLogger(__name__)


class ApplicationsRefused(errors.ProblemList):
    """The applications cannot be what the request wants.

    :param problems: each names the application.
    """

    message = "The applications have {count} problem(s): {listed}."
    default_hint = "None of them was touched."


class Applications(Feature):
    """Applications on the cluster, from manifests or charts."""

    def owns(self, entry: str) -> bool:
        return entry == APPLICATIONS

    def precondition_problems(self, deps: OperationContext) -> Iterable[str]:
        """What is wrong with their files in the VNF package."""
        return package_problems(deps.params, deps.site)

    def terminates_on_nodes(self, params: ClusterRequest) -> bool:
        """Whether volumes are to be deleted."""
        return _deletes_volumes(params)

    def report(self, survey: ClusterInspection) -> Contribution:
        """A row for each application that is wanted or there."""
        return Contribution([one.row() for one in compare(survey).applications])

    def work(self, state: ClusterState) -> Work:
        return ApplicationsWork(state)


def _described(record: InstalledApplication) -> str:
    version = record.good.version if record.good else ""
    kind = f"chart {version}".rstrip() if record.chart else "manifests"
    return f"{kind}, {record.state}"


def _deletes_volumes(params: ClusterRequest) -> bool:
    """Whether the volumes of an application are to be deleted with it."""
    return any(app.volumes == "delete" for app in params.applications)


def compare(survey: ClusterInspection) -> ApplicationsReport:
    """Compare the applications only."""

    def read(plane: Node) -> tuple[ApplicationState, ...]:
        host = survey.view.client(ApplicationHost.through, plane)
        return report.read_states(host, survey.params)

    return ApplicationsReport(survey.ask_cluster(read) or (), survey.failures)


def package_problems(params: ClusterRequest, package: Site) -> tuple[str, ...]:
    """What is wrong with the files in the VNF package; needs no cluster."""
    sources = Sources(package)
    sources.read(params.applications)
    return tuple(sources.problems)


class ApplicationsWork(Work):
    """The applications of a new cluster, and in a modification."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._records: Mapping[str, InstalledApplication] = {}
        self._wanted: Mapping[str, Wanted] = {}
        self._there: frozenset[str] = frozenset()
        self._problems: tuple[str, ...] = ()
        self._left: list[str] = []

    def built(self) -> Sequence[Step]:
        """The steps that bring them to a new cluster; none without applications."""
        if not self._state.params.applications:
            return ()
        return (
            Step("check-applications", "check the applications", self.check),
            *self.changes(),
        )

    def inspect(self, seen: NodeObjects | None = None) -> None:
        """Read the applications' files, and what the cluster has of them."""
        state, apps = self._state, self._state.params.applications
        host = state.client(ApplicationHost.through)
        self._records = host.records.read()
        version = state.cluster().version() if any(a.chart for a in apps) else ""
        sources = Sources(state.site, host, self._records, version)
        self._wanted = {one.app.name: one for one in sources.read(apps)}
        self._there = frozenset(
            name for name, one in self._wanted.items() if self._has(host, one)
        )
        changed = [one for one in self._wanted.values() if not self._is_there(one.app)]
        # Labels are as the settings of the same request want them.
        nodes = future_labels(state)
        # A requirement is not part of what an application consists of.
        lacking = lacking_labels(apps, nodes)
        found = problems(changed, host, nodes, state.params)
        self._problems = (
            *(*sources.problems, *lacking, *found),
            *(*self._kinds(), *self._ports()),
        )

    def problems(self) -> tuple[str, ...]:
        """Why the applications cannot be as they are wanted."""
        return self._problems

    def terminating(self) -> Sequence[Step]:
        """The step that deletes volumes while their cluster is there.

        They may be outside of its VMs. Best effort: a failure must not keep the VNF.
        """
        if not _deletes_volumes(self._state.params):
            return ()
        return (
            Step(
                "delete-application-volumes",
                "delete the volumes of applications",
                self._delete_volumes,
            ),
        )

    def _delete_volumes(self) -> None:
        state = self._state
        try:
            state.nodes = state.require_inventory()
            rollout.delete_volumes(state.client(ApplicationHost.through))
        except (errors.K8sMgmtError, OSError, ValueError) as error:
            LOG.warning(
                "Volumes of applications may stay behind; delete them by hand: %s",
                error,
            )

    def check(self) -> None:
        """Look, and refuse what cannot be.

        :raises ApplicationsRefused: with every problem.
        """
        self.inspect()
        if self._problems:
            raise ApplicationsRefused(self._problems)

    def changes(self) -> tuple[Step, ...]:
        apps = self._state.params.applications
        return (
            Step(
                "remove-applications",
                "remove unwanted applications",
                self._remove,
                probe=lambda: not self._unwanted(),
                effects=self._removed,
            ),
            *(
                Step(
                    "deploy-application",
                    f"deploy application {app.name}",
                    partial(self._bring, app),
                    probe=partial(self._is_there, app),
                    effects=partial(self._changed, app),
                )
                for app in apps
            ),
            *self._expose_step(),
        )

    def _expose_step(self) -> tuple[Step, ...]:
        """The load balancer follows when everything else has succeeded."""
        if self._state.params.load_balancer is None:
            return ()
        return (
            Step(
                "expose-applications",
                "expose Services of the applications",
                self._expose_all,
                effects=self._ports_changed,
            ),
        )

    def left(self) -> str:
        return " ".join(self._left)

    def _removed(self) -> Iterator[Difference]:
        """The applications that leave, for a plan."""
        for record in self._unwanted():
            yield Difference(f"application {record.name}", _described(record), None)

    def _changed(self, app: Application) -> Iterator[Difference]:
        """How an application changes, for a plan; its objects by their titles."""
        wanted, record = self._wanted.get(app.name), self._records.get(app.name)
        if wanted is None:
            return
        what, content = f"application {app.name}", wanted.content
        after = f"chart {content.version}" if content.version else "manifests"
        yield Difference(what, _described(record) if record else None, after)
        good = record.good if record else None
        before = {title(one): one for one in good.objects} if good else {}
        later = {title(one): one for one in content.objects}
        for name in dict.fromkeys((*before, *later)):
            if before.get(name) != later.get(name):
                former, new = name in before, name in later
                yield Difference(
                    f"{what}: {name}",
                    "there" if former else None,
                    ("changed" if former else "new") if new else None,
                )

    def _ports_changed(self) -> Iterator[Difference]:
        """The ports of the load balancer that change, for a plan."""
        recorded = self._state.records.exposures() or ()
        for app in self._state.params.applications:
            owner = exposure.of_application(app.name)
            before = {one.title for one in recorded if one.owner == owner}
            after = {one.title for one in self._expected(app)} if app.expose else set()
            for port in sorted(before ^ after):
                is_new = port in after
                yield Difference(
                    f"application {app.name}: port {port} of the load balancer",
                    None if is_new else "exposed",
                    "exposed" if is_new else None,
                )

    def _kinds(self) -> Iterator[str]:
        """A chart cannot follow manifests, nor its namespace change."""
        for name, wanted in self._wanted.items():
            record = self._records.get(name)
            if record is None:
                continue
            if record.namespace != wanted.app.place:
                yield (
                    f"application {name}: it is in the namespace {record.namespace}, "
                    "which cannot be changed; remove it, or give it another name"
                )
            if record.chart != bool(wanted.chart):
                was = "a chart" if record.chart else "manifests"
                yield (
                    f"application {name}: it consists of {was}, which cannot be "
                    "changed; remove it, or give it another name"
                )

    def _ports(self) -> Iterator[str]:
        """Services that cannot be exposed, and ports that are in use already."""
        for app in self._state.params.applications:
            if not app.expose:
                continue
            try:
                expected = self._expected(app)
                if balancing.exists(self._state):
                    owner = exposure.of_application(app.name)
                    exposures.refuse_conflicts(self._state, owner, expected)
            except errors.ExposureError as error:
                for problem in error.problems:
                    yield f"application {app.name}: {problem}"

    def _expected(self, app: Application) -> tuple[Exposure, ...]:
        """What it is to be exposed as, as far as that is known before it is there.

        :raises ExposureError: a Service of its files cannot be exposed.
        """
        owner = exposure.of_application(app.name)
        services = self._services(app)
        names = {service.name for service in services}
        known = tuple(one for one in app.expose if one.name in names)
        others = tuple(one for one in app.expose if one.name not in names)
        return (
            *ExposureParams(services=known).exposures(owner, services),
            *ExposureParams(services=others).announced(owner, app.place),
        )

    def _services(self, app: Application) -> list[Service]:
        """The Services of its files; with node ports that they have in the cluster."""
        wanted = self._wanted.get(app.name)
        objects = wanted.objects if wanted else []
        services = (Service.of_object(one) for one in objects if not is_hook(one))
        found = {
            one.name: one for one in services if one and one.namespace == app.place
        }
        for present in self._state.cluster().services(app.place) if found else ():
            if one := found.get(present.name):
                found[one.name] = one.with_node_ports_of(present)
        return [*found.values()]

    def _unwanted(self) -> list[InstalledApplication]:
        names = {app.name for app in self._state.params.applications}
        return [one for one in self._records.values() if one.name not in names]

    def _is_there(self, app: Application) -> bool:
        return app.name in self._there

    def _has(self, host: ApplicationHost, wanted: Wanted) -> bool:
        """Whether the cluster has it all, by its objects and not only by its record."""
        app, record = wanted.app, self._records.get(wanted.app.name)
        if record is None or not record.has(wanted.content.digest):
            return False
        if lacks := rollout.lacking_objects(host, record):
            LOG.warning("Application %s lacks %s", app.name, ", ".join(lacks))
        return record.volumes == app.volumes and not lacks

    def _remove(self) -> None:
        host = self._state.client(ApplicationHost.through)
        for record in self._unwanted():
            self._withdraw(record.name)
            if kept := rollout.remove(host, record):
                self._left.append(f"Of the application {record.name} stays {kept}.")

    def _bring(self, app: Application) -> None:
        wanted = self._wanted.get(app.name)
        if wanted is None:
            # Of the former metadata, to which a rollback goes back unchecked.
            raise ApplicationsRefused(self._problems)
        Rollout(self._state, wanted, self._records.get(app.name)).run()

    def _expose_all(self) -> None:
        for app in self._state.params.applications:
            if app.expose:
                self._expose(app)
            else:
                self._withdraw(app.name)

    def _expose(self, app: Application) -> None:
        state, owner = self._state, exposure.of_application(app.name)
        services = state.cluster().services(app.place)
        wanted = ExposureParams(services=app.expose).exposures(owner, services)
        exposures.set_exposures(state, owner, wanted)
        exposed = [one.name for one in app.expose]
        ours = [service for service in services if service.name in exposed]
        exposures.publish(state, ours, exposed)

    def _withdraw(self, name: str) -> None:
        if self._state.params.load_balancer:
            owner = exposure.of_application(name)
            exposures.set_exposures(self._state, owner, ())
