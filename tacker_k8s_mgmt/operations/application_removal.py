# SPDX-License-Identifier: Apache-2.0
"""An application is removed: nothing that was its own stays, but kept volumes."""

from collections.abc import Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.model.applications import REMOVING, Record, owner_of
from tacker_k8s_mgmt.model.manifests import (
    CLAIM,
    NAMESPACE,
    OWNER,
    Object,
    identity,
    is_hook,
    is_kept,
    named,
    of_kinds,
    title,
    titles,
)
from tacker_k8s_mgmt.operations import application_objects
from tacker_k8s_mgmt.remote.kubernetes.application_host import ApplicationHost

LOG = logging.getLogger(__name__)

_STATEFUL, _VOLUME = "StatefulSet", "PersistentVolume"
_LIMIT = 300.0  # seconds, until objects and their pods are gone
_OF_APPLICATIONS = owner_of("")


def remove(host: ApplicationHost, record: Record) -> str:
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


def _begin(host: ApplicationHost, record: Record, objects: Sequence[Object]) -> Record:
    """Record that it is being removed, and what cannot be found any more then."""
    place = (record.name, record.namespace)
    release = application_objects.released(host, *place) if record.chart else []
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
    host: ApplicationHost, record: Record, objects: Sequence[Object]
) -> list[Object]:
    """Its volumes' claims: of its manifests, and of its StatefulSets."""
    found = [one for one in objects if one["kind"] == CLAIM]
    sets = [one for one in objects if one["kind"] == _STATEFUL]
    for namespace, selector in manifests.claims_of(host.objects.present(sets)):
        place = namespace or record.namespace
        found += host.objects.get("persistentvolumeclaims", place, selector)
    return found


def _remove_namespace(host: ApplicationHost, record: Record) -> str:
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
