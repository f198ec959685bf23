# SPDX-License-Identifier: Apache-2.0
"""The kinds of objects that the API has, and the errors that it answers with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Key = tuple[str, str]
"""Group and plural name: what identifies a kind in the store."""

_TABLE = """
# group|- versions(preferred first) Kind plural namespaced short-names
#   subresources, each name[:Kind[:group/version]]
- v1 Namespace namespaces 0 ns status,finalize
- v1 Node nodes 0 no status
- v1 Pod pods 1 po status,log,binding:Binding,eviction:Eviction:policy/v1
- v1 ServiceAccount serviceaccounts 1 sa token:TokenRequest:authentication.k8s.io/v1
- v1 Secret secrets 1 - -
- v1 ConfigMap configmaps 1 cm -
- v1 Service services 1 svc status,proxy:ServiceProxyOptions
- v1 Endpoints endpoints 1 ep -
- v1 Event events 1 ev -
- v1 PersistentVolume persistentvolumes 0 pv status
- v1 PersistentVolumeClaim persistentvolumeclaims 1 pvc status
- v1 ReplicationController replicationcontrollers 1 rc status
- v1 LimitRange limitranges 1 limits -
- v1 ResourceQuota resourcequotas 1 quota status
apps v1 Deployment deployments 1 deploy status,scale:Scale:autoscaling/v1
apps v1 ReplicaSet replicasets 1 rs status,scale:Scale:autoscaling/v1
apps v1 StatefulSet statefulsets 1 sts status,scale:Scale:autoscaling/v1
apps v1 DaemonSet daemonsets 1 ds status
apps v1 ControllerRevision controllerrevisions 1 - -
batch v1 Job jobs 1 - status
batch v1 CronJob cronjobs 1 cj status
policy v1 PodDisruptionBudget poddisruptionbudgets 1 pdb status
rbac.authorization.k8s.io v1 ClusterRole clusterroles 0 - -
rbac.authorization.k8s.io v1 ClusterRoleBinding clusterrolebindings 0 - -
rbac.authorization.k8s.io v1 Role roles 1 - -
rbac.authorization.k8s.io v1 RoleBinding rolebindings 1 - -
admissionregistration.k8s.io v1 ValidatingAdmissionPolicy validatingadmissionpolicies 0 - status
admissionregistration.k8s.io v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings 0 - -
storage.k8s.io v1 StorageClass storageclasses 0 sc -
storage.k8s.io v1 VolumeAttachment volumeattachments 0 - status
coordination.k8s.io v1 Lease leases 1 - -
networking.k8s.io v1 NetworkPolicy networkpolicies 1 netpol -
networking.k8s.io v1 Ingress ingresses 1 ing status
scheduling.k8s.io v1 PriorityClass priorityclasses 0 pc -
apiextensions.k8s.io v1 CustomResourceDefinition customresourcedefinitions 0 crd,crds status
events.k8s.io v1 Event events 1 ev -
autoscaling v1 HorizontalPodAutoscaler horizontalpodautoscalers 1 hpa status
authentication.k8s.io v1 TokenReview tokenreviews 0 - -
authentication.k8s.io v1 SelfSubjectReview selfsubjectreviews 0 - -
authorization.k8s.io v1 SelfSubjectAccessReview selfsubjectaccessreviews 0 - -
"""  # noqa: E501


@dataclass(frozen=True)
class Subresource:
    """``/status``, ``/eviction``...; ``kind`` is "" where it is the parent's own."""

    name: str
    kind: str = ""
    group_version: str = ""

    @property
    def is_posted(self) -> bool:
        """Whether it is something to do, not a part to read and write."""
        return bool(self.kind) and self.name != "scale"


@dataclass(frozen=True)
class Resource:
    """One kind, as ``kubectl api-resources`` lists it."""

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...]
    subresources: tuple[Subresource, ...]

    @property
    def key(self) -> Key:
        return self.group, self.plural

    @property
    def qualified_name(self) -> str:
        """``deployments.apps``: how messages name the resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str = "") -> str:
        """``apps/v1``; the preferred version where none is given."""
        version = version or self.versions[0]
        return f"{self.group}/{version}" if self.group else version


def _read(line: str) -> Resource:
    group, versions, kind, plural, namespaced, short, subs = line.split()
    return Resource(
        group="" if group == "-" else group,
        versions=tuple(versions.split(",")),
        kind=kind,
        plural=plural,
        namespaced=namespaced == "1",
        short_names=() if short == "-" else tuple(short.split(",")),
        subresources=()
        if subs == "-"
        else tuple(Subresource(*sub.split(":")) for sub in subs.split(",")),
    )


_LINES = [ln for ln in _TABLE.strip().splitlines() if not ln.startswith("#")]

RESOURCES: dict[Key, Resource] = {r.key: r for r in map(_read, _LINES)}

NAMESPACES = RESOURCES["", "namespaces"]
NODES = RESOURCES["", "nodes"]
PODS = RESOURCES["", "pods"]
SECRETS = RESOURCES["", "secrets"]
SERVICE_ACCOUNTS = RESOURCES["", "serviceaccounts"]
SERVICES = RESOURCES["", "services"]
ENDPOINTS = RESOURCES["", "endpoints"]
EVENTS = RESOURCES["", "events"]
DEPLOYMENTS = RESOURCES["apps", "deployments"]
REPLICA_SETS = RESOURCES["apps", "replicasets"]
STATEFUL_SETS = RESOURCES["apps", "statefulsets"]
DAEMON_SETS = RESOURCES["apps", "daemonsets"]
JOBS = RESOURCES["batch", "jobs"]
BUDGETS = RESOURCES["policy", "poddisruptionbudgets"]
DEFINITIONS = RESOURCES["apiextensions.k8s.io", "customresourcedefinitions"]
LEASES = RESOURCES["coordination.k8s.io", "leases"]
POLICIES = RESOURCES["admissionregistration.k8s.io", "validatingadmissionpolicies"]
POLICY_BINDINGS = RESOURCES[
    "admissionregistration.k8s.io", "validatingadmissionpolicybindings"
]
CLUSTER_ROLES = RESOURCES["rbac.authorization.k8s.io", "clusterroles"]
CLUSTER_ROLE_BINDINGS = RESOURCES["rbac.authorization.k8s.io", "clusterrolebindings"]
ROLES = RESOURCES["rbac.authorization.k8s.io", "roles"]
ROLE_BINDINGS = RESOURCES["rbac.authorization.k8s.io", "rolebindings"]


def served(kinds: Mapping[Key, Resource], group: str, version: str) -> list[Resource]:
    """The resources of one group and version, in the table's order."""
    return [r for r in kinds.values() if r.group == group and version in r.versions]


# Refusals that come without details, even empty ones.
_BARE = (
    *("", "BadRequest", "Unauthorized", "UnsupportedMediaType"),
    "ServiceUnavailable",
)

TOO_MANY = 429


class ApiError(Exception):
    """An answer other than success; :attr:`status` is the body that is sent."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status: Any = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": code,
        }
        if reason:
            self.status["reason"] = reason
        if details or reason not in _BARE:
            self.status["details"] = {k: v for k, v in details.items() if v}


def refused(status: int) -> ApiError:
    """What priority and fairness says, in plain text, or a server without etcd."""
    if status != TOO_MANY:
        return ApiError(status, "", "etcdserver: request timed out")
    error = ApiError(status, "TooManyRequests", "")
    error.status = b"Too many requests, please try again later.\n"
    return error


def no_such_path() -> ApiError:
    """404 for a path below a group where nothing is served."""
    text = "the server could not find the requested resource"
    return ApiError(404, "NotFound", text)


def no_such_page() -> ApiError:
    """404 for a path that belongs to no group: Go's own plain text."""
    error = ApiError(404, "NotFound", "404 page not found")
    error.status = b"404 page not found\n"
    return error


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def method_not_allowed() -> ApiError:
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", text)


def _named(
    code: int, reason: str, resource: "Resource", name: str, message: str
) -> ApiError:
    text = f'{resource.qualified_name} "{name}" {message}'
    return ApiError(
        code, reason, text, name=name, group=resource.group, kind=resource.plural
    )


def not_found(resource: "Resource", name: str) -> ApiError:
    return _named(404, "NotFound", resource, name, "not found")


def already_exists(resource: "Resource", name: str) -> ApiError:
    return _named(409, "AlreadyExists", resource, name, "already exists")


def invalid(
    kind: str, name: str, field: str, problem: str, group: str = ""
) -> ApiError:
    """422 for one field; ``problem`` begins ``Required value`` or ``Invalid value``."""
    word = problem.partition(" ")[0]
    cause = {"reason": f"FieldValue{word}", "message": problem, "field": field}
    qualified = f"{kind}.{group}" if group else kind
    text = f'{qualified} "{name}" is invalid: {field}: {problem}'
    details = {"name": name, "group": group, "kind": kind}
    return ApiError(422, "Invalid", text, **details, causes=[cause])


def conflict(resource: "Resource", name: str) -> ApiError:
    """409 for an update of an older version than the stored one."""
    text = (
        f'Operation cannot be fulfilled on {resource.qualified_name} "{name}": the '
        "object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return ApiError(
        409, "Conflict", text, name=name, group=resource.group, kind=resource.plural
    )


def precondition_failed(wanted: str, actual: str) -> ApiError:
    """409 for an update that means another object of the same name."""
    text = (
        f"Precondition failed: UID in precondition: {wanted}, "
        f"UID in object meta: {actual}"
    )
    return ApiError(409, "Conflict", text)


def another_object(resource: "Resource", name: str, wanted: str, uid: str) -> ApiError:
    """409 for a delete that means another object of the same name."""
    text = (
        f'Operation cannot be fulfilled on {resource.kind} "{name}": the UID in the '
        f"precondition ({wanted}) does not match the UID in record ({uid}). The object "
        "might have been deleted and then recreated"
    )
    return ApiError(409, "Conflict", text, name=name, kind=resource.kind)
