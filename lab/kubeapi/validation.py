# SPDX-License-Identifier: Apache-2.0
"""What a real API server refuses to create: the little that clients come across."""

import re
from typing import Any

from .errors import bad_request, invalid
from .objects import Obj
from .resources import BUDGETS, JOBS, LEASES, PODS, Resource

# Kinds whose updates must have the version that they change.
_READ_BEFORE_WRITTEN = (BUDGETS, LEASES)
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NOT_A_NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_ANY_NAME = "rbac.authorization.k8s.io"  # system:node and the like


def check(resource: Resource, namespace: str | None, body: Any) -> None:
    """Refuse an object that cannot be created there.

    :raises ApiError: 400 for another kind or namespace, 422 for a name or a pod that
        is none.
    """
    if not isinstance(body, dict):
        raise bad_request("the body is not an object")
    _check_kind(resource, body)
    metadata = body.get("metadata") or {}
    if resource.namespaced and metadata.get("namespace") not in (None, "", namespace):
        text = "the namespace of the provided object does not match the namespace sent"
        raise bad_request(f"{text} on the request")
    name, kind, group = metadata.get("name"), resource.kind, resource.group
    if name and group != _ANY_NAME and not re.fullmatch(_SUBDOMAIN, name):
        problem = f'Invalid value: "{name}": {_NOT_A_NAME}'
        raise invalid(kind, name, "metadata.name", problem, group)
    if resource is PODS and not (body.get("spec") or {}).get("containers"):
        raise invalid(kind, name or "", "spec.containers", "Required value")


def _check_kind(resource: Resource, body: Obj) -> None:
    kind, api_version = body.get("kind"), body.get("apiVersion") or ""
    if kind in (None, resource.kind):
        return
    version = api_version.rpartition("/")[2]
    internal = resource.group.partition(".")[0] or "core"
    raise bad_request(
        f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
        f"converting ({version}.{kind}) to ({internal}.{resource.kind}): "
        "unknown conversion"
    )


def check_change(resource: Resource, old: Obj, new: Obj) -> None:
    """Refuse to change what cannot be.

    :raises ApiError: 422, for the pods of a Job.
    """
    if resource is JOBS and _template(new) != _template(old):
        name, problem = old["metadata"]["name"], "Invalid value: field is immutable"
        raise invalid(resource.kind, name, "spec.template", problem, resource.group)


def _template(job: Obj) -> Any:
    return (job.get("spec") or {}).get("template")


def check_version(resource: Resource, body: Obj) -> None:
    """Refuse to replace an object that the client has not read.

    :raises ApiError: 422, of kinds whose updates have to say what they change
        (``AllowUnconditionalUpdate`` in k8s.io/kubernetes, ``pkg/registry``).
    """
    metadata = body.get("metadata") or {}
    if resource in _READ_BEFORE_WRITTEN and not metadata.get("resourceVersion"):
        problem = "Invalid value: 0: must be specified for an update"
        field, group = "metadata.resourceVersion", resource.group
        raise invalid(resource.plural, metadata.get("name", ""), field, problem, group)
