# SPDX-License-Identifier: Apache-2.0
"""The applications of a cluster, wanted and actual."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tacker_k8s_mgmt.features.applications import rollout
from tacker_k8s_mgmt.features.applications.content import (
    APPLIED,
    APPLYING,
    BACK,
    REMOVING,
    InstalledApplication,
)
from tacker_k8s_mgmt.features.applications.host import ApplicationHost
from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.model.manifests import JOB, ROLLED_OUT, is_going, title
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.status.facts import BLANK, Cell, Finding, Remedy, Row, Source

_AGAIN = Remedy(
    "Modify the VNF instance with metadata that have k8s_applications again; "
    "`app show` has the reason of a failure."
)
_PODS = Remedy("See the pods with kubectl; a change of the application waits for them.")


@dataclass(frozen=True)
class ObjectState:
    """An object of an application.

    :param problem: why it is not as it should be; "" if it is.
    """

    title: str
    problem: str = ""


@dataclass(frozen=True)
class ApplicationState:
    """An application, as the parameters want it and as the cluster has it.

    :param wanted: whether the parameters have it.
    :param record: None if the cluster has none.
    """

    name: str
    wanted: bool
    record: InstalledApplication | None
    objects: tuple[ObjectState, ...] = ()

    @property
    def findings(self) -> Iterator[Finding]:
        """What differs."""
        record = self.record
        if record is None:
            yield Finding("not on the cluster, although it is wanted", _AGAIN)
            return
        if not self.wanted:
            yield Finding("on the cluster, although it is not wanted", _AGAIN)
        if record.state == BACK:
            text = "its last change failed, and it is what it was before"
            yield Finding(text, _AGAIN)
        elif record.state == APPLYING:
            yield Finding("a change of it has begun and not ended", _AGAIN)
        elif record.state == REMOVING:
            yield Finding("its removal has begun and not ended", _AGAIN)
        elif record.state != APPLIED:
            yield Finding("it was not brought to what is wanted", _AGAIN)
        for one in self.objects:
            if one.problem:
                yield Finding(f"{one.title}: {one.problem}", _PODS)

    def row(self) -> Row:
        """The row of ``cluster check``."""
        text = self.record.state if self.record else "-"
        cells = dict.fromkeys(Source, BLANK)
        cells[Source.CLUSTER] = Cell(text, tuple(self.findings))
        return Row(f"application {self.name}", Role.CONTROL_PLANE, "", "", cells)


@dataclass(frozen=True)
class ApplicationsReport:
    """All applications.

    :param failures: why a source could not be read.
    """

    applications: tuple[ApplicationState, ...]
    failures: Mapping[Source, str] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return any(True for one in self.applications for _ in one.findings)


def read_states(
    host: ApplicationHost, params: ClusterRequest
) -> tuple[ApplicationState, ...]:
    """The applications that the parameters want, and those that the cluster has."""
    records = host.records.read()
    wanted = dict.fromkeys(app.name for app in params.applications)
    found = []
    for name in dict.fromkeys((*wanted, *sorted(records))):
        record = records.get(name)
        objects = tuple(_states(host, record)) if record else ()
        found.append(ApplicationState(name, name in wanted, record, objects))
    return tuple(found)


def _states(
    host: ApplicationHost, record: InstalledApplication
) -> Iterator[ObjectState]:
    """Each object, with what is wrong with it."""
    objects = rollout.recorded_objects(host, record)
    present = host.objects.present(objects)
    there = {title(one) for one in present}
    going = {title(one): "being deleted" for one in present if is_going(one)}
    workloads = manifests.of_kinds(objects, *ROLLED_OUT)
    progress = host.workloads.progress(workloads)
    unwell = {**progress.pending, **progress.failed, **going}
    for one in objects:
        name = title(one)
        # A Job may be removed by its time to live.
        missing = name not in there and one["kind"] != JOB
        yield ObjectState(name, unwell.get(name, "missing" if missing else ""))
