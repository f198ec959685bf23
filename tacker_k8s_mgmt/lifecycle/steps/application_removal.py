# SPDX-License-Identifier: Apache-2.0
"""An application is removed: nothing that was its own stays, but kept volumes."""

from collections.abc import Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt.lifecycle.application_ports import Applications
from tacker_k8s_mgmt.model import manifest_objects
from tacker_k8s_mgmt.model.applications import Record, owner_of
from tacker_k8s_mgmt.model.manifest_objects import (
    CLAIM,
    NAMESPACE,
    OWNER,
    Object,
    title,
    titles,
)

LOG = logging.getLogger(__name__)

_STATEFUL, _VOLUME = "StatefulSet", "PersistentVolume"
_LIMIT = 300.0  # seconds, until objects and their pods are gone
_OF_APPLICATIONS = owner_of("")
# What keeps a namespace that was made for an application.
_CONTENT = (
    "pods,services,persistentvolumeclaims,configmaps,secrets,deployments,statefulsets,"
    "daemonsets,jobs,cronjobs"
)
# Kubernetes itself makes these in every namespace.
_ROOT_CERTIFICATE = "kube-root-ca.crt"
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105


def remove(host: Applications, record: Record) -> str:
    """Remove an application.

    :returns: what stays, and why; "" for nothing.
    :raises RemoteError: kubectl or Helm failed.
    :raises ClusterError: something is not gone within the time limit.
    """
    owner = owner_of(record.name)
    released, owned = _released(host, record), host.objects.owned(owner)
    claims = _claims(host, record, released, owned)
    if record.chart:
        host.charts.uninstall(record.name, record.namespace, _LIMIT)
    # Hooks of a chart are none of its release.
    hooks = [one for one in released if manifest_objects.is_hook(one)]
    gone = [one for one in (*hooks, *owned) if one["kind"] not in (CLAIM, NAMESPACE)]
    host.objects.delete(gone, _LIMIT)
    if record.volumes == "delete":
        volumes = _deleted_with(host, claims)
        host.objects.delete(claims, _LIMIT)
        # The storage driver deletes what they are made of, and then them.
        host.objects.wait_gone(volumes, _LIMIT)
        claims = []
    left = _remove_namespace(host, record)
    host.records.remove(record.name)
    kept = [f"its volumes {titles(claims)}"] if claims else []
    return " and ".join([*kept, *([left] if left else [])])


def delete_volumes(host: Applications) -> None:
    """Remove the applications whose volumes are to be deleted with them."""
    for record in host.records.read().values():
        if record.volumes == "delete":
            remove(host, record)


def _deleted_with(host: Applications, claims: Sequence[Object]) -> list[Object]:
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


def _released(host: Applications, record: Record) -> list[Object]:
    """The objects of a chart's release, with its hooks."""
    if not record.chart:
        return []
    text = host.charts.manifest(record.name, record.namespace)
    objects = manifest_objects.parse(text)
    wide = host.objects.cluster_wide()
    return list(manifest_objects.placed(objects, record.namespace, wide))


def _claims(
    host: Applications,
    record: Record,
    released: Sequence[Object],
    owned: Sequence[Object],
) -> list[Object]:
    """Its volumes' claims: of its manifests, and of its StatefulSets."""
    objects = [*released, *owned]
    found = [one for one in objects if one["kind"] == CLAIM]
    sets = [one for one in objects if one["kind"] == _STATEFUL]
    for namespace, selector in manifest_objects.claims_of(host.objects.present(sets)):
        place = namespace or record.namespace
        found += host.objects.get("persistentvolumeclaims", place, selector)
    return list({manifest_objects.identity(one): one for one in found}.values())


def _remove_namespace(host: Applications, record: Record) -> str:
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
        content = host.objects.get(_CONTENT, record.namespace)
        others = [one for one in content if not _is_usual(one)]
        if others:
            text = f"the namespace {record.namespace}, which has {_some(others)}"
            LOG.info("Application %s: what stays: %s", record.name, text)
            return text
    host.objects.delete([space], _LIMIT)
    return ""


def _is_usual(one: Object) -> bool:
    return one["metadata"]["name"] == _ROOT_CERTIFICATE or one.get("type") == _TOKEN


def _some(objects: Sequence[Object]) -> str:
    shown = ", ".join(map(title, objects[:3]))
    return f"{shown} and {len(objects) - 3} more" if len(objects) > 3 else shown
