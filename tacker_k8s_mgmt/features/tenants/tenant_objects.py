# SPDX-License-Identifier: Apache-2.0
"""The objects of a tenant in the cluster.

Its account is in a namespace of the driver's, so that no pod of the tenant can run as
it, and the tenant cannot delete it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.request.tenants import Allowed, Tenant

#: Of the tenants' accounts; nothing else is in it.
ACCOUNTS = "tacker-k8s-mgmt-tenants"
#: Owner of that namespace.
OF_ALL = "tenants"
_NAME = "tacker-k8s-mgmt-tenant"
_RBAC = "rbac.authorization.k8s.io"
_DNS = 53
_ADMISSION = "admissionregistration.k8s.io/v1"
#: Version and kind of the policies; Kubernetes has them from 1.30 on.
POLICY = (_ADMISSION, "ValidatingAdmissionPolicy")
# CEL. What a Service has from before stays: its finalizers are updates, too.
_FOR_SERVICES = (
    (
        "!has(object.spec.externalIPs) || object.spec.externalIPs.all(ip, "
        "oldObject != null && has(oldObject.spec.externalIPs) "
        "&& ip in oldObject.spec.externalIPs)",
        "a tenant's Services have no externalIPs: they take over what other pods of "
        "the cluster send there (CVE-2020-8554)",
    ),
    (
        "object.spec.type != 'ExternalName' || oldObject != null "
        "&& oldObject.spec.type == 'ExternalName' "
        "&& oldObject.spec.externalName == object.spec.externalName",
        "a tenant's Services are not of the type ExternalName, which leads an ingress "
        "controller out of the namespace",
    ),
)
_READ = ("get", "list", "watch")
_ALL = (*_READ, "create", "update", "patch", "delete", "deletecollection")

# What Tacker and Helm make of a CNF, besides what only an administrator may: quotas,
# limits and NetworkPolicies, which bind the tenant, and EndpointSlices, with which it
# could have an ingress controller reach other tenants (CVE-2021-25740).
_RULES = (
    ("", "configmaps endpoints events limitranges resourcequotas", _READ),
    ("", "pods/log pods/status services/status resourcequotas/status", _READ),
    ("", "persistentvolumeclaims pods podtemplates replicationcontrollers", _ALL),
    ("", "configmaps secrets serviceaccounts services", _ALL),
    ("", "replicationcontrollers/scale", _ALL),
    ("", "pods/attach pods/exec pods/portforward", ("get", "create")),
    ("", "pods/eviction serviceaccounts/token", ("create",)),
    ("apps", "controllerrevisions daemonsets deployments replicasets", _ALL),
    ("apps", "statefulsets", _ALL),
    ("apps", "deployments/scale replicasets/scale statefulsets/scale", _ALL),
    ("batch", "cronjobs jobs", _ALL),
    ("autoscaling", "horizontalpodautoscalers", _ALL),
    ("policy", "poddisruptionbudgets", _ALL),
    ("coordination.k8s.io", "leases", _ALL),
    ("networking.k8s.io", "ingresses", _ALL),
    ("networking.k8s.io", "networkpolicies", _READ),
    ("discovery.k8s.io", "endpointslices", _READ),
    ("events.k8s.io", "events", _READ),
    ("authorization.k8s.io", "localsubjectaccessreviews", ("create",)),
    (_RBAC, "roles rolebindings", _ALL),
)

Object = dict[str, Any]


def owner(tenant: str) -> str:
    """The owner of a tenant's objects, as their label says it."""
    return f"tenant.{tenant}"


def tenant_of(owner: str) -> str:
    """The tenant whose objects these are; "" if they are of none."""
    kind, _, name = owner.partition(".")
    return name if kind == "tenant" else ""


def accounts() -> Object:
    """The namespace of the tenants' accounts."""
    return _object("v1", "Namespace", ACCOUNTS)


def token(tenant: str) -> Object:
    """The Secret with the token of the tenant's account."""
    secret = _object("v1", "Secret", tenant, ACCOUNTS)
    annotation = {"kubernetes.io/service-account.name": tenant}
    secret["metadata"]["annotations"] = annotation
    return {**secret, "type": "kubernetes.io/service-account-token"}


def of(tenant: Tenant, *, guarded: bool) -> tuple[Object, ...]:
    """All objects of a tenant.

    :param guarded: whether the API server has :data:`POLICY`.
    """
    return (
        _namespace(tenant),
        *(_guard(tenant) if guarded else ()),
        _object("v1", "ServiceAccount", tenant.name, ACCOUNTS),
        token(tenant.name),
        *_rights(tenant),
        *_bounds(tenant),
        *((_isolation(tenant),) if tenant.isolated else ()),
    )


def unwanted(tenant: Tenant) -> tuple[Object, ...]:
    """What the tenant may have from before, and is not to have."""
    kinds = (
        ("v1", "ResourceQuota"),
        ("v1", "LimitRange"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
    )
    wanted = {one["kind"] for one in of(tenant, guarded=False)}
    return tuple(
        _object(api, kind, _NAME, tenant.name)
        for api, kind in kinds
        if kind not in wanted
    )


def _object(api: str, kind: str, name: str, namespace: str = "") -> Object:
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def _namespace(tenant: Tenant) -> Object:
    modes = ("enforce", "audit", "warn")
    namespace = _object("v1", "Namespace", tenant.name)
    namespace["metadata"]["labels"] = {
        f"pod-security.kubernetes.io/{mode}": tenant.pod_security for mode in modes
    }
    return namespace


def _guard(tenant: Tenant) -> Iterator[Object]:
    """What no Service of the namespace may be, from any user."""
    name = f"{_NAME}-{tenant.name}"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["services"],
        "scope": "*",
    }
    checks = [{"expression": cel, "message": text} for cel, text in _FOR_SERVICES]
    own = {"matchLabels": {"kubernetes.io/metadata.name": tenant.name}}
    yield {
        **_object(*POLICY, name),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": checks,
        },
    }
    yield {
        **_object(_ADMISSION, "ValidatingAdmissionPolicyBinding", name),
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": own},
        },
    }


def _rights(tenant: Tenant) -> Iterator[Object]:
    """The tenant's rights in its namespace, and the few that it needs beyond.

    Tacker lists the namespaces when it registers a VIM.
    """
    api = f"{_RBAC}/v1"
    rules = [_rule((group,), names.split(), verbs) for group, names, verbs in _RULES]
    rules += [_rule(r.api_groups, r.resources, r.verbs) for r in tenant.rules]
    own = _rule(("",), ["namespaces"], ("get",))
    beyond = [
        _rule(("",), ["namespaces"], ("list",)),
        {**own, "resourceNames": [tenant.name]},
    ]
    everywhere = f"{_NAME}:{tenant.name}"
    yield {**_object(api, "Role", _NAME, tenant.name), "rules": rules}
    yield {
        **_object(api, "RoleBinding", _NAME, tenant.name),
        **_binding(tenant, "Role", _NAME),
    }
    yield {**_object(api, "ClusterRole", everywhere), "rules": beyond}
    yield {
        **_object(api, "ClusterRoleBinding", everywhere),
        **_binding(tenant, "ClusterRole", everywhere),
    }


def _rule(groups: Any, resources: Any, verbs: Any) -> Object:
    return {
        "apiGroups": list(groups),
        "resources": list(resources),
        "verbs": list(verbs),
    }


def _binding(tenant: Tenant, kind: str, name: str) -> Object:
    account = {"kind": "ServiceAccount", "name": tenant.name, "namespace": ACCOUNTS}
    subjects = [account]
    if tenant.keystone_project:
        # k8s-keystone-auth makes the project of a token a group (authenticator.go).
        group = {"kind": "Group", "name": tenant.keystone_project, "apiGroup": _RBAC}
        subjects.append(group)
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": subjects,
    }


def _bounds(tenant: Tenant) -> Iterator[Object]:
    hard = dict(tenant.quota)
    for storage in tenant.storage:
        prefix = f"{storage.name}.storageclass.storage.k8s.io"
        if storage.size is not None:
            hard[f"{prefix}/requests.storage"] = storage.size
        if storage.volumes is not None:
            hard[f"{prefix}/persistentvolumeclaims"] = str(storage.volumes)
    if hard:
        quota = _object("v1", "ResourceQuota", _NAME, tenant.name)
        yield {**quota, "spec": {"hard": hard}}
    limits = tenant.limits
    if limits is None:
        return
    given = {
        "default": limits.default,
        "defaultRequest": limits.default_request,
        "min": limits.min,
        "max": limits.max,
    }
    item = {name: dict(values) for name, values in given.items() if values}
    if item:
        limit = _object("v1", "LimitRange", _NAME, tenant.name)
        yield {**limit, "spec": {"limits": [{"type": "Container", **item}]}}


def _isolation(tenant: Tenant) -> Object:
    """What is not named here is denied, in both directions."""
    own: Mapping[str, Any] = {"podSelector": {}}
    dns = [{"port": _DNS, "protocol": protocol} for protocol in ("UDP", "TCP")]
    rules: dict[str, list[Object]] = {
        "ingress": [{"from": [own]}],
        # To any address: the cluster's DNS may be at one of the node.
        "egress": [{"to": [own]}, {"ports": dns}],
    }
    for one in tenant.allowed:
        rules[one.direction].append(_exception(one))
    policy = _object("networking.k8s.io/v1", "NetworkPolicy", _NAME, tenant.name)
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], **rules}
    return {**policy, "spec": spec}


def _exception(one: Allowed) -> Object:
    names = [*one.tenants, *one.namespaces]
    label = "kubernetes.io/metadata.name"
    peers: list[Object] = [
        {"namespaceSelector": {"matchLabels": {label: name}}} for name in names
    ]
    peers += [{"ipBlock": {"cidr": str(network)}} for network in one.networks]
    rule: Object = {"from" if one.direction == "ingress" else "to": peers}
    if one.ports:
        ports = [{"port": p.port, "protocol": p.protocol} for p in one.ports]
        rule["ports"] = ports
    return rule
