# SPDX-License-Identifier: Apache-2.0
"""Reads the applications of a cluster, and changes nothing."""

from collections.abc import Iterator

from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.model.applications import Record
from tacker_k8s_mgmt.model.manifests import JOB, ROLLED_OUT, is_going, title
from tacker_k8s_mgmt.operations import application_objects
from tacker_k8s_mgmt.remote.kubernetes.application_host import ApplicationHost
from tacker_k8s_mgmt.request.reader import InstallParams
from tacker_k8s_mgmt.status.application_report import ApplicationState, ObjectState


def read(host: ApplicationHost, params: InstallParams) -> tuple[ApplicationState, ...]:
    """The applications that the parameters want, and those that the cluster has."""
    records = host.records.read()
    wanted = dict.fromkeys(app.name for app in params.applications)
    found = []
    for name in dict.fromkeys((*wanted, *sorted(records))):
        record = records.get(name)
        objects = tuple(_states(host, record)) if record else ()
        found.append(ApplicationState(name, name in wanted, record, objects))
    return tuple(found)


def _states(host: ApplicationHost, record: Record) -> Iterator[ObjectState]:
    """Each object, with what is wrong with it."""
    objects = application_objects.recorded(host, record)
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
