# SPDX-License-Identifier: Apache-2.0
"""An application is brought to what it is to be, phase by phase, goes back, or goes.

Each stage of manifests has three phases: configuration (everything that has no pods),
bootstrap (Jobs, until they are complete), rollout (workloads, until their pods are
ready). A chart has one stage; Helm itself makes its objects and waits for its hooks.
The HTTP probe comes last.

An application that worked before goes back when a phase fails. A new one is left as it
is: its pods say why it failed, and the next attempt continues from there. Of one that
is removed nothing of its own stays but kept volumes. A record says only what to look
for in the cluster.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications.content import (
    APPLIED,
    APPLYING,
    BACK,
    FAILED,
    REMOVING,
    Content,
    InstalledApplication,
    Progress,
    digest_of,
    owner_of,
)
from tacker_k8s_mgmt.features.applications.host import ApplicationHost
from tacker_k8s_mgmt.features.applications.sources import Wanted, namespace_of
from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.model.manifests import (
    CLAIM,
    JOB,
    NAMESPACE,
    OWNER,
    ROLLED_OUT,
    Object,
    identity,
    is_going,
    is_hook,
    is_kept,
    named,
    of_kinds,
    title,
    titles,
)
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.text import Redactor

LOG = logging.getLogger(__name__)

_DEPLOYED = "deployed"


def released_objects(host: ApplicationHost, name: str, namespace: str) -> list[Object]:
    """The objects of a chart's release, with its hooks; none if there is no release.

    :raises ClusterError: what Helm has of it cannot be understood.
    """
    try:
        objects = manifests.parse(host.charts.manifest(name, namespace))
    except manifests.Unusable as error:
        raise errors.ClusterError(
            detail=f"The manifest of the release {namespace}/{name} {error}.",
            hint="See it with `helm get manifest` and `helm get hooks`.",
        ) from None
    wide = host.objects.cluster_wide()
    return list(manifests.in_namespace(objects, namespace, wide))


def recorded_objects(
    host: ApplicationHost, record: InstalledApplication
) -> list[Object]:
    """The objects that were last applied completely, without hooks of a chart."""
    objects = list(record.good.objects) if record.good else []
    if record.chart:
        found = released_objects(host, record.name, record.namespace)
        objects += [one for one in found if not manifests.is_hook(one)]
    return objects


def lacking_objects(
    host: ApplicationHost, record: InstalledApplication
) -> tuple[str, ...]:
    """What the cluster lacks of an application that its record says is there.

    A Job is not looked for: its time to live removes it. What cannot be read, because
    the API server fails at a kind, is taken to be there.
    """
    if record.chart:
        state = host.charts.state(record.name, record.namespace)
        if state != _DEPLOYED:
            return (f"its release, which is {state or 'not there'}",)
    try:
        wanted = [one for one in recorded_objects(host, record) if one["kind"] != JOB]
        present = host.objects.present(wanted)
    except (errors.CommandFailed, errors.ClusterError) as error:
        text = "Application %s: its objects cannot be compared: %s"
        LOG.warning(text, record.name, error)
        return ()
    there = {identity(one) for one in present if not is_going(one)}
    return tuple(title(one) for one in wanted if identity(one) not in there)


_CONFIGURATION, _BOOTSTRAP = "configuration", "bootstrap"
_ROLLOUT, _HEALTH = "rollout", "health"
_LONGEST = 4000  # characters of an error in the record
# Hooks of a chart whose number is not known before it is installed.
_HOOKS = 20


class ApplicationError(errors.ClusterError, errors.ProblemList):
    """An application could not be brought to what its request wants.

    :param name: of the application.
    :param phase: what failed.
    :param problems: each names the object, with what its pods report.
    """

    message = "The application {name} failed in {phase}: {listed}."

    def __init__(self, problems: Sequence[str], **fields: Any) -> None:
        super().__init__(problems, **fields)


class Rollout:
    """The work on one application.

    :param record: what the cluster records of it; None if it is new.
    """

    def __init__(
        self, state: ClusterState, wanted: Wanted, record: InstalledApplication | None
    ) -> None:
        self._deps = state.deps
        self._host = state.client(ApplicationHost.through)
        self._wanted = wanted
        self._app = wanted.app
        self._owner = owner_of(wanted.app.name)
        chart = wanted.chart is not None
        new = InstalledApplication(
            self._app.name, self._app.place, APPLYING, chart=chart
        )
        self._record = record or new
        if self._record.state == REMOVING:
            # What is there of it is not known: nothing to go back to, no Job is done.
            self._record = self._record.changed(good=None, leaving=())
        if not self._record.salt:
            self._record = self._record.changed(salt=wanted.salt)

    def run(self) -> None:
        """Bring it to what it is to be.

        :raises ApplicationError: a phase failed; says what became of it.
        """
        number = self._record.revision + 1
        self._write(APPLYING, revision=number, volumes=self._app.volumes)
        try:
            if self._wanted.chart:
                self._recover()
            content = self._bring(self._wanted.content)
            self._probe()
        except errors.K8sMgmtError as error:
            self._failed(error, self._record.good)
            raise
        self._write(APPLIED, good=content)

    def _recover(self) -> None:
        """End what an interrupted operation has left of the chart's release.

        After that there may be nothing to go back to.
        """
        good = self._record.good
        place, keep = (self._app.name, self._app.place), self._app.volumes == "keep"
        revisions = self._host.charts.recover(*place, keep_volumes=keep)
        if good and good.revision not in revisions:
            LOG.warning(
                "Application %s: revision %d of its release is not there any more",
                self._app.name,
                good.revision,
            )
            self._write(APPLYING, good=None)

    def _failed(self, error: errors.K8sMgmtError, good: Content | None) -> None:
        """Go back, if it can; the error says what became of it."""
        try:
            if good is None:
                back = "It is left as it is; the next attempt continues from there."
                self._write(FAILED, detail=self._detail(error))
            else:
                good = self._go_back(good)
                back = "What it was before is in force again."
                self._write(BACK, detail=self._detail(error), good=good)
        except errors.K8sMgmtError as second:
            back = f"Going back failed, too: {second}"
            LOG.warning("Application %s: %s", self._app.name, back)
        error.hint = f"{error.hint} {back}".strip()

    def _bring(self, content: Content) -> Content:
        self._wait_deleted()
        self._make_namespace()
        first, *stages = content.stages
        limits = self._app.limits
        self._apply(first, limits.configuration, _CONFIGURATION)
        if self._wanted.chart:
            content = self._install(content)
        for stage in stages:
            self._stage(stage)
        self._prune(content)
        return content

    def _wait_deleted(self) -> None:
        """Wait for the end of objects of it that were deleted.

        What is applied to one of them ends with it.
        """
        objects = [namespace_of(self._app), *self._wanted.objects]
        going = [one for one in self._host.objects.present(objects) if is_going(one)]
        self._host.objects.wait_gone(going, self._app.limits.configuration)

    def _make_namespace(self) -> None:
        """Make it, and leave one alone that is there: it may be a tenant's."""
        space = namespace_of(self._app)
        if not self._host.objects.present([space]):
            self._apply([space], self._app.limits.configuration, _CONFIGURATION)

    def _stage(self, stage: Sequence[Object], jobs_too: bool = True) -> None:
        limits = self._app.limits
        jobs = [one for one in stage if one["kind"] == JOB]
        workloads = [one for one in stage if one["kind"] in (*ROLLED_OUT, "Pod")]
        others = manifests.without(stage, [*jobs, *workloads])
        self._apply(others, limits.configuration, _CONFIGURATION)
        if jobs_too:
            self._run_jobs(jobs)
        self._apply(workloads, limits.configuration, _ROLLOUT)
        self._wait(workloads, limits.rollout, _ROLLOUT)

    def _run_jobs(self, jobs: Sequence[Object]) -> None:
        """Run those that were not complete before, or were others then."""
        wanted = [_with_digest(one) for one in jobs]
        present = {title(one): one for one in self._host.objects.present(wanted)}
        failed = self._host.workloads.progress(wanted).failed
        done = _digests(self._record.good)
        new = []
        for one in wanted:
            there, digest = present.get(title(one)), _digest_of(one)
            if there is None and done.get(title(one)) == digest:
                continue  # complete, and removed by its time to live
            if there is None or _digest_of(there) != digest or title(one) in failed:
                new.append(one)
        former = [one for one in new if title(one) in present]
        self._host.objects.delete(former, self._app.limits.configuration)
        ended = self._ended_jobs(new)
        self._apply(new, self._app.limits.configuration, _BOOTSTRAP)
        running = [one for one in wanted if one in new or title(one) in present]
        self._wait(running, self._app.limits.bootstrap, _BOOTSTRAP, ended)

    def _ended_jobs(self, jobs: Sequence[Object]) -> frozenset[str]:
        """The uids of earlier Jobs in the namespaces of these."""
        places = {one["metadata"]["namespace"] for one in jobs}
        found = (self._host.workloads.ended_jobs(place) for place in sorted(places))
        return frozenset(chain.from_iterable(found))

    def _install(self, content: Content) -> Content:
        chart, app, host = self._wanted.chart, self._app, self._host
        if chart is None:
            return content
        limit = float(app.limits.bootstrap)
        ended = host.workloads.ended_jobs(app.place)
        try:
            release = (chart, app.name, app.place, limit, self._hooks())
            host.charts.install(*release, keep_volumes=app.volumes == "keep")
        except (errors.CommandFailed, errors.CommandTimeout) as error:
            reason = str(error.fields.get("tail") or error)
            # Those of the chart's hooks, too.
            jobs = [one for one in self._wanted.rendered if one["kind"] == JOB]
            causes = [f"Helm: {reason}", *self._ill(jobs)]
            raise self._error(_BOOTSTRAP, causes) from error
        released = released_objects(host, app.name, app.place)
        self._wait(of_kinds(released, JOB), limit, _BOOTSTRAP, ended)
        workloads = of_kinds(released, *ROLLED_OUT)
        self._wait(workloads, app.limits.rollout, _ROLLOUT)
        revision = host.charts.revision(app.name, app.place)
        return Content(content.digest, content.stages, content.version, revision)

    def _hooks(self) -> int:
        """How many hooks Helm runs, at most."""
        rendered = self._wanted.rendered
        if not rendered:
            return _HOOKS
        actions = ("install", "upgrade")
        return max(manifests.hook_runs(rendered, action) for action in actions)

    def _apply(self, objects: Sequence[Object], limit: float, phase: str) -> None:
        if not objects:
            return
        try:
            self._host.objects.apply(objects, owner=self._owner, timeout=limit)
        except (errors.CommandFailed, errors.CommandTimeout) as error:
            reason = str(error.fields.get("tail") or error)
            raise self._error(phase, [reason]) from error

    def _wait(
        self,
        objects: Sequence[Object],
        limit: float,
        phase: str,
        ended: Collection[str] = (),
    ) -> None:
        """Wait until workloads and Jobs are done.

        :param ended: uids of earlier Jobs.
        :raises ApplicationError: one has failed, or takes longer than the limit.
        """
        clock, waited = self._deps.clock, [o for o in objects if o["kind"] != "Pod"]
        deadline = clock.now() + limit
        while waited:
            progress = self._host.workloads.progress(waited, ended)
            if progress.failed:
                raise self._unfinished(phase, waited, progress, progress.failed)
            if not progress.pending:
                return
            if clock.now() >= deadline:
                late = {
                    name: f"{text}, after {limit:g} s"
                    for name, text in progress.pending.items()
                }
                raise self._unfinished(phase, waited, progress, late)
            clock.sleep(min(self._deps.limits.poll_interval, deadline - clock.now()))

    def _unfinished(
        self,
        phase: str,
        objects: Sequence[Object],
        progress: Progress,
        why: Mapping[str, str],
    ) -> ApplicationError:
        LOG.info("Application %s, %s: %s", self._app.name, phase, progress)
        ill = [one for one in objects if title(one) in why]
        texts = [
            ": ".join(filter(None, (f"{title(one)}: {why[title(one)]}", reason)))
            for one, reason in zip(ill, map(self._diagnosis, ill), strict=True)
        ]
        return self._error(phase, texts)

    def _ill(self, objects: Sequence[Object]) -> list[str]:
        """What the pods of these Jobs report that are there and not complete."""
        progress = self._host.workloads.progress(objects) if objects else Progress()
        unwell = {**progress.pending, **progress.failed}
        return [
            f"{title(one)}: {unwell[title(one)]}: {self._diagnosis(one)}"
            for one in objects
            if title(one) in unwell
        ]

    def _diagnosis(self, one: Object) -> str:
        try:
            return self._host.workloads.diagnosis(one)
        except errors.K8sMgmtError as error:
            # The failure itself matters more.
            LOG.warning("%s cannot be looked into: %s", title(one), error)
            return ""

    def _probe(self) -> None:
        probe, clock = self._app.probe, self._deps.clock
        if probe is None:
            return
        limit = self._app.limits.health
        deadline = clock.now() + limit
        request = (probe.service, probe.port, probe.path, probe.scheme)
        while reason := self._host.workloads.probe(self._app.place, *request):
            if clock.now() >= deadline:
                asked = f"{probe.scheme}://{probe.service}:{probe.port}{probe.path}"
                text = f"{asked} did not answer as expected within {limit} s: {reason}"
                raise self._error(_HEALTH, [text])
            clock.sleep(min(self._deps.limits.poll_interval, deadline - clock.now()))

    def _prune(self, content: Content) -> None:
        """Remove what it had, and is not to have any more."""
        kept = (NAMESPACE, *((CLAIM,) if self._app.volumes == "keep" else ()))
        owned = self._host.objects.owned(self._owner)
        good = self._record.good.objects if self._record.good else []
        known = [*good, *self._wanted.content.objects]
        had = [*owned.objects, *filter(owned.may_lack, known)]
        others = manifests.without(had, content.objects)
        gone = [one for one in others if one["kind"] not in kept]
        if gone:
            LOG.info("Application %s: removed: %s", self._app.name, titles(gone))
        self._host.objects.delete(gone, self._app.limits.configuration)

    def _go_back(self, good: Content) -> Content:
        """Bring back what was there; Jobs that were complete do not run again.

        :returns: the same content, with the release's new revision.
        """
        first, *stages = good.stages
        app, host = self._app, self._host
        self._apply(first, app.limits.configuration, _CONFIGURATION)
        if good.revision:
            limit = float(app.limits.bootstrap)
            place, keep = (app.name, app.place), app.volumes == "keep"
            host.charts.rollback(*place, good.revision, limit, keep_volumes=keep)
            released = released_objects(host, app.name, app.place)
            workloads = of_kinds(released, *ROLLED_OUT)
            self._wait(workloads, app.limits.rollout, _ROLLOUT)
            # Helm forgets old revisions.
            good = replace(good, revision=host.charts.revision(app.name, app.place))
        for stage in stages:
            self._stage(stage, jobs_too=False)
        self._prune(good)
        return good

    def _error(self, phase: str, problems: Sequence[str]) -> ApplicationError:
        texts = [text.strip().rstrip(".") for text in problems]
        return ApplicationError(texts, name=self._app.name, phase=phase)

    def _detail(self, error: errors.K8sMgmtError) -> str:
        """The message without the hint, for the record."""
        redact = Redactor(self._deps.params.secrets())
        return redact(str(error.args[0]))[:_LONGEST]

    def _write(self, state: str, **fields: object) -> None:
        self._record = self._record.enter(state, **fields)
        self._host.records.write(self._record)


def _with_digest(job: Object) -> Object:
    metadata = dict(job["metadata"])
    annotations = {**(metadata.get("annotations") or {})}
    annotations[manifests.JOB_DIGEST] = digest_of(job)
    return {**job, "metadata": {**metadata, "annotations": annotations}}


def _digest_of(job: Object) -> str:
    annotations = job["metadata"].get("annotations") or {}
    return str(annotations.get(manifests.JOB_DIGEST, ""))


def _digests(good: Content | None) -> dict[str, str]:
    """The digests of the Jobs that were complete, by their titles."""
    jobs = [one for one in good.objects if one["kind"] == JOB] if good else []
    return {title(one): digest_of(one) for one in jobs}


_STATEFUL, _VOLUME = "StatefulSet", "PersistentVolume"
_LIMIT = 300.0  # seconds, until objects and their pods are gone
_OF_APPLICATIONS = owner_of("")


def remove(host: ApplicationHost, record: InstalledApplication) -> str:
    """Remove an application; this can be repeated after a failure.

    :returns: what stays, and why; "" for nothing.
    :raises RemoteError: kubectl or Helm failed.
    :raises ClusterError: something is not gone within the time limit.
    """
    owned = host.objects.owned(owner_of(record.name))
    good = record.good.objects if record.good else []
    objects = [*owned.objects, *filter(owned.may_lack, good)]
    record = _begin(host, record, objects)
    claims = of_kinds(record.leaving, CLAIM)
    hooks = manifests.without(record.leaving, claims)
    if record.chart:
        place, keep = (record.name, record.namespace), record.volumes == "keep"
        host.charts.uninstall(*place, _LIMIT, keep_volumes=keep)
    gone = [one for one in (*hooks, *objects) if one["kind"] not in (CLAIM, NAMESPACE)]
    host.objects.delete(gone, _LIMIT)
    if record.volumes == "delete":
        volumes = _deleted_with(host, claims)
        host.objects.delete(claims, _LIMIT)
        # The storage driver deletes what they are made of, and then them.
        host.objects.wait_gone(volumes, _LIMIT)
        claims = []
    claims = list(host.objects.present(claims))
    left = _remove_namespace(host, record)
    host.records.remove(record.name)
    kept = [f"its volumes {titles(claims)}"] if claims else []
    return " and ".join([*kept, *([left] if left else [])])


def _begin(
    host: ApplicationHost, record: InstalledApplication, objects: Sequence[Object]
) -> InstalledApplication:
    """Record that it is being removed, and what cannot be found any more then."""
    place = (record.name, record.namespace)
    release = released_objects(host, *place) if record.chart else []
    # Helm does not remove a chart's hooks with its release.
    hooks = [one for one in release if is_hook(one) and not is_kept(one)]
    found = [*record.leaving, *_claims(host, record, [*release, *objects]), *hooks]
    leaving = list({identity(one): named(one) for one in found}.values())
    record = record.enter(REMOVING, leaving=leaving)
    host.records.write(record)
    return record


def delete_volumes(host: ApplicationHost) -> None:
    """Remove the applications whose volumes are to be deleted with them."""
    for record in host.records.read().values():
        if record.volumes == "delete":
            remove(host, record)


def _deleted_with(host: ApplicationHost, claims: Sequence[Object]) -> list[Object]:
    """The volumes that are deleted when nothing claims them any more."""
    specs = [one.get("spec") or {} for one in host.objects.present(claims)]
    volumes = [
        {"apiVersion": "v1", "kind": _VOLUME, "metadata": {"name": spec["volumeName"]}}
        for spec in specs
        if spec.get("volumeName")
    ]
    return [
        one
        for one in host.objects.present(volumes)
        if (one.get("spec") or {}).get("persistentVolumeReclaimPolicy") == "Delete"
    ]


def _claims(
    host: ApplicationHost, record: InstalledApplication, objects: Sequence[Object]
) -> list[Object]:
    """Its volumes' claims: of its manifests, and of its StatefulSets."""
    found = [one for one in objects if one["kind"] == CLAIM]
    sets = [one for one in objects if one["kind"] == _STATEFUL]
    for namespace, selector in manifests.claims_of(host.objects.present(sets)):
        place = namespace or record.namespace
        found += host.objects.get("persistentvolumeclaims", place, selector)
    return found


def _remove_namespace(host: ApplicationHost, record: InstalledApplication) -> str:
    """Remove the namespace, if it was made for an application and is empty."""
    space = {
        "apiVersion": "v1",
        "kind": NAMESPACE,
        "metadata": {"name": record.namespace},
    }
    for one in host.objects.present([space]):
        labels = one["metadata"].get("labels") or {}
        if not str(labels.get(OWNER, "")).startswith(_OF_APPLICATIONS):
            return ""
        content = host.objects.content(record.namespace)
        reasons = [
            *([f"has {_some(content.objects)}"] if content.objects else []),
            *([f"may have objects of {content.unknown}"] if content.unlisted else []),
        ]
        if reasons:
            text = f"the namespace {record.namespace}, which {' and '.join(reasons)}"
            LOG.warning("Application %s: what stays: %s", record.name, text)
            return text
    host.objects.delete([space], _LIMIT)
    return ""


def _some(objects: Sequence[Object]) -> str:
    shown = ", ".join(map(title, objects[:3]))
    return f"{shown} and {len(objects) - 3} more" if len(objects) > 3 else shown
