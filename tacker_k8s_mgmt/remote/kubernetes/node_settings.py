# SPDX-License-Identifier: Apache-2.0
"""Settings of Node objects through kubectl, and workloads that need their labels."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import object_shapes
from tacker_k8s_mgmt.model.node_marks import NodeMetadata
from tacker_k8s_mgmt.model.placement import Workload
from tacker_k8s_mgmt.model.pods import Placement
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient

_FIELDS = (
    ".metadata.name",
    ".metadata.resourceVersion",
    ".metadata.labels",
    ".metadata.annotations",
    ".spec.taints",
    ".spec.unschedulable",
)
_KINDS = {
    "deployments.apps": "Deployment",
    "statefulsets.apps": "StatefulSet",
    "daemonsets.apps": "DaemonSet",
    "cronjobs.batch": "CronJob",
}
_TEMPLATE = ".spec.template.spec"
_TEMPLATES = {"cronjobs.batch": f".spec.jobTemplate{_TEMPLATE}"}
# Kubernetes refuses a change of an object that has another version by now.
_CONFLICT = "Error from server (Conflict)"


def marks(client: KubeClient) -> tuple[NodeMetadata, ...]:
    """What the Node objects have of their settings."""
    return tuple(client.table("nodes", _FIELDS, read=_marks))


def _marks(
    name: str,
    version: str,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    taints: Sequence[Mapping[str, Any]] | None,
    cordon: bool | None,
) -> NodeMetadata:
    for taint in taints or ():
        object_shapes.check(taint, object_shapes.Taint)
    return NodeMetadata(
        name,
        version,
        labels or {},
        annotations or {},
        tuple(taints or ()),
        cordon is True,
    )


def mark(client: KubeClient, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Change Node objects, with one command for all that change alike."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name, change in changes.items():
        alike[json.dumps(change)].append(name)
    for patch, names in alike.items():
        try:
            client.run("patch", "node", *names, "--type=merge", "-p", patch)
        except errors.CommandFailed as error:
            if _CONFLICT not in error.fields["output"]:
                raise


def _workload_fields(resource: str) -> tuple[str, ...]:
    pod = _TEMPLATES.get(resource, _TEMPLATE)
    fields = (f"{pod}.{name}" for name in Placement.FIELDS)
    return (".metadata.namespace", ".metadata.name", *fields)


def workloads(client: KubeClient) -> Sequence[Workload]:
    """The workloads that are bound to nodes by labels."""
    every = [
        workload
        for resource, kind in _KINDS.items()
        for workload in client.table(
            resource,
            _workload_fields(resource),
            partial(Workload.read, kind),
            everywhere=True,
        )
    ]
    return [workload for workload in every if workload.placement.is_bound]
