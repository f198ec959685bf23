# SPDX-License-Identifier: Apache-2.0
"""The roles that every cluster has for users, as far as kinds here are concerned.

As k8s.io/kubernetes has them (``plugin/pkg/auth/authorizer/rbac/bootstrappolicy``):
``admin``, ``edit`` and ``view`` have the rules of the roles with a label; so a custom
resource's own roles are added to them.
"""

from .objects import Obj, labels_of, name_of
from .resources import CLUSTER_ROLES
from .store import Store

_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_ALL = ["*"]
_APPS = "daemonsets deployments deployments/scale replicasets replicasets/scale"
_SETS = f"{_APPS} statefulsets statefulsets/scale"
_NETWORK = "ingresses networkpolicies"
_INSIDE = "pods/attach pods/exec pods/portforward pods/proxy"
_CORE = "configmaps persistentvolumeclaims replicationcontrollers serviceaccounts"

_RULES = {
    "view": (
        ("", f"{_CORE} endpoints pods services services/status", _READ),
        ("", "events limitranges namespaces pods/log pods/status", _READ),
        ("", "resourcequotas resourcequotas/status", _READ),
        ("discovery.k8s.io", "endpointslices", _READ),
        ("apps", f"controllerrevisions {_SETS}", _READ),
        ("autoscaling", "horizontalpodautoscalers", _READ),
        ("batch", "cronjobs jobs", _READ),
        ("policy", "poddisruptionbudgets", _READ),
        ("networking.k8s.io", _NETWORK, _READ),
    ),
    "edit": (
        ("", f"{_INSIDE} secrets services/proxy", _READ),
        ("", "serviceaccounts", ["impersonate"]),
        ("", f"{_INSIDE} pods events secrets services services/proxy", _WRITE),
        ("", _CORE, _WRITE),
        ("", "pods/eviction serviceaccounts/token", ["create"]),
        ("apps", _SETS, _WRITE),
        ("autoscaling", "horizontalpodautoscalers", _WRITE),
        ("batch", "cronjobs jobs", _WRITE),
        ("policy", "poddisruptionbudgets", _WRITE),
        ("networking.k8s.io", _NETWORK, _WRITE),
        ("coordination.k8s.io", "leases", [*_READ, *_WRITE]),
    ),
    "admin": (
        ("authorization.k8s.io", "localsubjectaccessreviews", ["create"]),
        ("rbac.authorization.k8s.io", "rolebindings roles", [*_READ, *_WRITE]),
    ),
}
# Whose rules another one has, too.
_PART_OF = {"view": "edit", "edit": "admin"}


def all_roles() -> list[Obj]:
    """The ClusterRoles of a new cluster."""
    rule = {"apiGroups": _ALL, "resources": _ALL, "verbs": _ALL}
    roles: list[Obj] = [{"metadata": {"name": "cluster-admin"}, "rules": [rule]}]
    for name, rules in _RULES.items():
        label = f"{_AGGREGATE}{name}"
        part = {f"{_AGGREGATE}{_PART_OF[name]}": "true"} if name in _PART_OF else {}
        selected = {"matchLabels": {label: "true"}}
        roles.append(
            {
                "metadata": {"name": name, "labels": part},
                "aggregationRule": {"clusterRoleSelectors": [selected]},
                "rules": [],
            }
        )
        metadata = {"name": f"system:aggregate-to-{name}", "labels": {label: "true"}}
        made = [
            {"apiGroups": [group], "resources": names.split(), "verbs": verbs}
            for group, names, verbs in rules
        ]
        roles.append({"metadata": metadata, "rules": made})
    return roles


def step(store: Store) -> None:
    """Give roles that aggregate others the rules of these."""
    for role in store.all(CLUSTER_ROLES):
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if selectors:
            wanted = [one.get("matchLabels") or {} for one in selectors]
            rules = [
                rule
                for other in sorted(store.all(CLUSTER_ROLES), key=name_of)
                if other is not role
                and any(labels.items() <= labels_of(other).items() for labels in wanted)
                for rule in other.get("rules") or ()
            ]
            store.replace(CLUSTER_ROLES, role, rules=rules)
