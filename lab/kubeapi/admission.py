# SPDX-License-Identifier: Apache-2.0
"""What happens to an object before it is written: checks, defaults, policies."""

import base64
import ipaddress
import random
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import resources
from .objects import Obj, default_tolerations, name_of
from .resources import (
    BUDGETS,
    JOBS,
    LEASES,
    PODS,
    RESOURCES,
    ApiError,
    Resource,
    bad_request,
    invalid,
)

SERVICE_NETWORK = "10.233.0.0/18"
"""The default network of service addresses."""

#: Of a DaemonSet: the number of its pods' template.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_NODE_PORTS = range(30000, 32768)


def encode(text: str) -> str:
    """Base64, as the values of a Secret's ``data`` are written."""
    return base64.b64encode(text.encode()).decode()


def random_address(network: str) -> str:
    """An address of the network; its first ten stay free, as kubespray uses some."""
    net = ipaddress.ip_network(network)
    return str(net[random.randrange(11, min(net.num_addresses, 1 << 16) - 1)])


def _namespace(obj: Obj, _network: str) -> None:
    obj["status"] = {"phase": "Active"}
    obj["spec"]["finalizers"] = ["kubernetes"]
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = name_of(obj)


def _node(obj: Obj, _network: str) -> None:
    if not obj["spec"].get("taints"):
        obj["spec"].pop("taints", None)
    endpoints = {"kubeletEndpoint": {"Port": 0}}
    obj.setdefault("status", {}).setdefault("daemonEndpoints", endpoints)
    labels = obj["metadata"].setdefault("labels", {})
    labels.setdefault("kubernetes.io/hostname", name_of(obj))
    labels.setdefault("kubernetes.io/os", "linux")
    labels.setdefault("kubernetes.io/arch", "amd64")


def _config_map(obj: Obj, _network: str) -> None:
    if not obj.get("data"):
        obj.pop("data", None)


def _pod(obj: Obj, _network: str) -> None:
    spec = obj["spec"]
    spec["tolerations"] = default_tolerations(spec.get("tolerations"))
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("serviceAccountName", "default")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _secret(obj: Obj, _network: str) -> None:
    texts = obj.pop("stringData", None) or {}
    if texts:
        encoded = {key: encode(value) for key, value in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    obj.setdefault("type", "Opaque")


def _service(obj: Obj, network: str) -> None:
    spec = obj["spec"]
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("clusterIP", random_address(network))
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    has_node_ports = spec["type"] == "NodePort" or (
        spec["type"] == "LoadBalancer" and spec["allocateLoadBalancerNodePorts"]
    )
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
        if has_node_ports:
            port.setdefault("nodePort", random.choice(_NODE_PORTS))


def _stateful_set(obj: Obj, network: str) -> None:
    _replicas(obj, network)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    obj["spec"].setdefault("updateStrategy", rolling)


def _daemon_set(obj: Obj, _network: str) -> None:
    surge = {"maxSurge": 0, "maxUnavailable": 1}
    rolling = {"type": "RollingUpdate", "rollingUpdate": surge}
    obj.setdefault("spec", {}).setdefault("updateStrategy", rolling)
    annotations = obj["metadata"].setdefault("annotations", {})
    annotations[TEMPLATE_GENERATION] = "1"


def with_template_generation(old: Obj, new: Obj) -> Obj:
    """A DaemonSet as updated: the number of its template follows the template."""
    annotations = old["metadata"].get("annotations") or {}
    number = int(annotations.get(TEMPLATE_GENERATION, "1"))
    changed = new["spec"].get("template") != old["spec"].get("template")
    own = {TEMPLATE_GENERATION: str(number + changed)}
    annotations = {**(new["metadata"].get("annotations") or {}), **own}
    return {**new, "metadata": {**new["metadata"], "annotations": annotations}}


def _replicas(obj: Obj, _network: str) -> None:
    obj["spec"].setdefault("replicas", 1)
    # Before its controller has written anything, too: clients look into it.
    obj.setdefault("status", {})


def _job(obj: Obj, _network: str) -> None:
    spec, uid = obj.setdefault("spec", {}), obj["metadata"].get("uid")
    for field, value in (("parallelism", 1), ("completions", 1), ("backoffLimit", 6)):
        spec.setdefault(field, value)
    obj.setdefault("status", {})
    prefix = "batch.kubernetes.io/"
    own = {f"{prefix}controller-uid": uid, f"{prefix}job-name": name_of(obj)}
    metadata = spec.setdefault("template", {}).setdefault("metadata", {})
    former = {"controller-uid": uid, "job-name": name_of(obj)}
    metadata["labels"] = {**(metadata.get("labels") or {}), **own, **former}
    selector = {"matchLabels": {f"{prefix}controller-uid": uid}}
    spec.setdefault("selector", selector)


def _limit_range(obj: Obj, _network: str) -> None:
    for limit in obj["spec"].get("limits", []):
        if limit.get("type") != "Container":
            continue
        limits = {**(limit.get("max") or {}), **(limit.get("default") or {})}
        requests = {**(limit.get("min") or {}), **limits}
        requests |= limit.get("defaultRequest") or {}
        limit |= {"default": limits} if limits else {}
        limit |= {"defaultRequest": requests} if requests else {}


def with_ip_modes(service: Obj, version: str) -> Obj:
    """A Service with the mode of each address in its status.

    The feature LoadBalancerIPMode, on from Kubernetes 1.30: before, the field is
    dropped, and then it has a default.

    :param version: of Kubernetes, with a leading ``v``.
    """
    is_known = [int(part) for part in version.lstrip("v").split(".")[:2]] >= [1, 30]
    status = service.get("status") or {}
    balancer = status.get("loadBalancer") or {}
    ingress = [
        {
            **{key: value for key, value in entry.items() if key != "ipMode"},
            **({"ipMode": entry.get("ipMode") or "VIP"} if is_known else {}),
        }
        if entry.get("ip")
        else entry
        for entry in balancer.get("ingress") or ()
    ]
    if not ingress:
        return service
    balancer = {**balancer, "ingress": ingress}
    return {**service, "status": {**status, "loadBalancer": balancer}}


_DEFAULTS: dict[str, Callable[[Obj, str], None]] = {
    "configmaps": _config_map,
    "jobs": _job,
    "limitranges": _limit_range,
    "namespaces": _namespace,
    "nodes": _node,
    "pods": _pod,
    "secrets": _secret,
    "services": _service,
    "deployments": _replicas,
    "replicasets": _replicas,
    "statefulsets": _stateful_set,
    "daemonsets": _daemon_set,
}
_ALWAYS_SPEC = ("nodes", "pods", "namespaces", "services")


def fill_defaults(plural: str, obj: Obj, service_network: str) -> None:
    """Fill in what the kind defaults; changes ``obj``, which is not shared yet."""
    if plural in _ALWAYS_SPEC:
        obj.setdefault("spec", {})
    if plural in _DEFAULTS:
        _DEFAULTS[plural](obj, service_network)


# Kinds whose updates must have the version that they change.
_READ_BEFORE_WRITTEN = (BUDGETS, LEASES)
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NOT_A_NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_ANY_NAME = "rbac.authorization.k8s.io"  # system:node and the like


_HEAD = frozenset({"apiVersion", "kind", "metadata"})
_BINDING = frozenset({"subjects", "roleRef"})
# The fields of kinds that have others than a spec and a status (k8s.io/api). Those of
# events are not looked at.
_FIELDS = {
    "Secret": frozenset({"data", "stringData", "type", "immutable"}),
    "ConfigMap": frozenset({"data", "binaryData", "immutable"}),
    "ServiceAccount": frozenset(
        {"secrets", "imagePullSecrets", "automountServiceAccountToken"}
    ),
    "Role": frozenset({"rules"}),
    "ClusterRole": frozenset({"rules", "aggregationRule"}),
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Endpoints": frozenset({"subsets"}),
    "ControllerRevision": frozenset({"data", "revision"}),
    "StorageClass": frozenset(
        {
            *("provisioner", "parameters", "reclaimPolicy", "mountOptions"),
            *("allowVolumeExpansion", "volumeBindingMode", "allowedTopologies"),
        }
    ),
    "PriorityClass": frozenset(
        {"value", "globalDefault", "description", "preemptionPolicy"}
    ),
}
_USUAL = frozenset({"spec", "status"})


def check_fields(resource: Resource, body: Any, *, is_apply: bool) -> None:
    """Refuse a field that the kind does not have.

    :raises ApiError: 500 in an apply (as in kubernetes/kubernetes issue 122480), else
        400 (the strict decoder).
    """
    if resource.key not in RESOURCES or resource.kind == "Event":
        return
    known = _HEAD | _FIELDS.get(resource.kind, _USUAL)
    unknown = sorted(body.keys() - known) if isinstance(body, dict) else []
    if not unknown:
        return
    kind, version = resource.kind, resource.api_version()
    if is_apply:
        metadata = body.get("metadata") or {}
        place = "/".join(metadata.get(name) or "" for name in ("namespace", "name"))
        shown = version if resource.group else f"/{version}"
        text = f"failed to create typed patch object ({place}; {shown}, Kind={kind})"
        raise ApiError(500, "", f"{text}: .{unknown[0]}: field not declared in schema")
    fields = ", ".join(f'unknown field "{name}"' for name in unknown)
    raise bad_request(
        f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a '
        f"{kind}: strict decoding error: {fields}"
    )


def check_object(resource: Resource, namespace: str | None, body: Any) -> None:
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


_WORD = re.compile(
    r"\s*(?:(?P<text>'[^']*')|(?P<number>[0-9]+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>&&|\|\||==|!=|[!().,]))"
)
_LITERALS = {"true": True, "false": False, "null": None}
_Values = Mapping[str, Any]
_Expression = Callable[[_Values], Any]


class CelError(Exception):
    """An expression that cannot be read, or has no value."""


def evaluate(text: str, values: _Values) -> Any:
    """The value of an expression.

    :raises CelError: it has none.
    """
    parser = _Parser(text)
    expression = parser.either()
    if parser.words:
        raise CelError(f"not known here: {parser.words[0]}")
    return expression(values)


def check_policies(
    policies: Iterable[Obj],
    bindings: Iterable[Obj],
    resource: Resource,
    namespace: Obj | None,
    obj: Obj,
    old: Obj | None = None,
) -> None:
    """Refuse what a bound policy does not allow.

    :raises ApiError: 422.
    """
    by_name = {name_of(policy): policy for policy in policies}
    for binding in bindings:
        spec = binding["spec"]
        policy = by_name.get(spec["policyName"])
        if policy is None or "Deny" not in spec["validationActions"]:
            continue
        scopes = (policy["spec"]["matchConstraints"], spec.get("matchResources") or {})
        if not all(_matches(one, resource, namespace, old) for one in scopes):
            continue
        for validation in policy["spec"]["validations"]:
            why = _objection(validation, obj, old)
            if why:
                raise _refusal(resource, obj, policy, binding, why)


def _objection(validation: Obj, obj: Obj, old: Obj | None) -> str:
    expression = validation["expression"]
    try:
        holds = evaluate(expression, {"object": obj, "oldObject": old})
    except CelError as error:
        return f"expression '{expression}' resulted in error: {error}"
    message = validation.get("message") or f"failed expression: {expression}"
    return "" if holds is True else str(message)


def _refusal(
    resource: Resource, obj: Obj, policy: Obj, binding: Obj, why: str
) -> resources.ApiError:
    message = (
        f"ValidatingAdmissionPolicy '{name_of(policy)}' with binding "
        f"'{name_of(binding)}' denied request: {why}"
    )
    name = obj["metadata"].get("name", "")
    text = f'{resource.qualified_name} "{name}" is forbidden: {message}'
    about = {"name": name, "group": resource.group, "kind": resource.plural}
    return resources.ApiError(
        422, "Invalid", text, **about, causes=[{"message": message}]
    )


def _matches(
    scope: Obj, resource: Resource, namespace: Obj | None, old: Obj | None
) -> bool:
    wanted = (scope.get("namespaceSelector") or {}).get("matchLabels") or {}
    labels = (namespace or {"metadata": {}})["metadata"].get("labels") or {}
    if wanted and not wanted.items() <= labels.items():
        return False
    rules = scope.get("resourceRules")
    operation = "UPDATE" if old else "CREATE"
    return not rules or any(
        {"*", resource.group} & set(rule["apiGroups"])
        and {"*", resource.plural} & set(rule["resources"])
        and {"*", operation} & set(rule["operations"])
        for rule in rules
    )


class _Parser:
    """Recursive descent over the words of an expression."""

    def __init__(self, text: str) -> None:
        self.words: list[str] = []
        place = 0
        while text[place:].strip():
            found = _WORD.match(text, place)
            if not found:
                raise CelError(f"not known here: {text[place:]}")
            self.words.append(found[0].strip())
            place = found.end()

    def either(self) -> _Expression:
        return self._joined("||", True, lambda: self._joined("&&", False, self._term))

    def _take(self, *wanted: str) -> str:
        if self.words and (not wanted or self.words[0] in wanted):
            return self.words.pop(0)
        if not wanted:
            raise CelError("the expression ends too early")
        return ""

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise CelError(f"{sign} is missing")

    def _joined(
        self, sign: str, decides: bool, read: Callable[[], _Expression]
    ) -> _Expression:
        parts = [read()]
        while self._take(sign):
            parts.append(read())
        if len(parts) == 1:
            return parts[0]

        def value(values: _Values) -> bool:
            failed = None
            for part in parts:
                try:
                    if bool(part(values)) is decides:
                        return decides
                except CelError as error:
                    failed = error
            if failed:
                raise failed
            return not decides

        return value

    def _term(self) -> _Expression:
        left = self._value()
        sign = self._take("==", "!=", "in")
        if not sign:
            return left
        right = self._value()
        compare: dict[str, Callable[[Any, Any], bool]] = {
            "==": lambda a, b: bool(a == b),
            "!=": lambda a, b: bool(a != b),
            "in": lambda a, b: a in b,
        }
        return lambda values: compare[sign](left(values), right(values))

    def _value(self) -> _Expression:
        word = self._take()
        if word == "!":
            negated = self._value()
            return lambda values: not negated(values)
        if word == "(":
            inner = self.either()
            self._need(")")
            return inner
        if word.startswith("'"):
            return lambda values: word[1:-1]
        if word.isdigit():
            return lambda values: int(word)
        if word in _LITERALS:
            return lambda values: _LITERALS[word]
        if word == "has":
            self._need("(")
            path = self._value()
            self._need(")")
            return lambda values: _has(path, values)
        return self._followed(lambda values: _field(values, word))

    def _followed(self, base: _Expression) -> _Expression:
        while self._take("."):
            name = self._take()
            base = self._all(base) if name == "all" else _member(base, name)
        return base

    def _all(self, base: _Expression) -> _Expression:
        self._need("(")
        variable = self._take()
        self._need(",")
        inner = self.either()
        self._need(")")
        return lambda values: all(
            inner({**values, variable: item}) for item in base(values)
        )


def _member(base: _Expression, name: str) -> _Expression:
    def value(values: _Values) -> Any:
        found = _field(base(values), name)
        if found is None:
            # The API server has dropped it when it read the object.
            raise _missing(name)
        return found

    return value


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, Mapping) or name not in value:
        raise _missing(name)
    return value[name]


def _missing(name: str) -> CelError:
    return CelError(f"no such key: {name}")


def _has(path: _Expression, values: _Values) -> bool:
    """Whether a field is there; only the last one of a path may be missing."""
    try:
        path(values)
    except CelError as error:
        if str(error).startswith("no such key"):
            return False
        raise
    return True
