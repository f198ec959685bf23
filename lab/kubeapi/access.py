# SPDX-License-Identifier: Apache-2.0
"""The user of a request, and whether RBAC allows it: users, groups, roles and bindings.

Besides the roles in the store, members of ``system:masters`` may do everything and
kubelets (group ``system:nodes``) what they need for their own node.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import ApiError
from .objects import Obj, namespace_of
from .resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from .store import Store

MASTERS = "system:masters"
NODES_GROUP = "system:nodes"
_NODE_USER = "system:node:"
_READ = ("get", "list", "watch")


@dataclass(frozen=True)
class Identity:
    """An authenticated (or anonymous) user."""

    user: str
    groups: frozenset[str] = frozenset()


def order_of_group(group: str) -> tuple[bool, str]:
    """Sorts a user's groups; the one of all that are authenticated comes last."""
    return group == "system:authenticated", group


ANONYMOUS = Identity("system:anonymous", frozenset({"system:unauthenticated"}))


def service_account_identity(user: str) -> Identity:
    """The identity behind ``system:serviceaccount:NAMESPACE:NAME``."""
    namespace = user.split(":")[2]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return Identity(user, frozenset({*groups, "system:authenticated"}))


def certificate_identity(certificate: dict[str, Any]) -> Identity:
    """The identity in a client certificate: CN is the user, each O a group.

    :param certificate: as ``SSLSocket.getpeercert()`` gives it.
    """
    pairs = [pair for part in certificate["subject"] for pair in part]
    user = next((value for key, value in pairs if key == "commonName"), "")
    groups = {value for key, value in pairs if key == "organizationName"}
    return Identity(user, frozenset({*groups, "system:authenticated"}))


@dataclass(frozen=True)
class Access:
    """What is asked for. ``resource`` is a plural, with ``/subresource`` if any."""

    verb: str
    group: str
    resource: str
    namespace: str | None = None
    name: str = ""


def _subject_is(subject: Obj, identity: Identity) -> bool:
    match subject["kind"]:
        case "ServiceAccount":
            account = f"{subject.get('namespace')}:{subject['name']}"
            return identity.user == f"system:serviceaccount:{account}"
        case "Group":
            return subject["name"] in identity.groups
    return bool(subject["name"] == identity.user)


def _rules(store: Store, identity: Identity, namespace: str | None) -> Iterator[Obj]:
    bindings = store.all(CLUSTER_ROLE_BINDINGS)
    if namespace:
        bindings += store.all(ROLE_BINDINGS, namespace)
    for binding in bindings:
        if any(_subject_is(s, identity) for s in binding.get("subjects") or []):
            reference = binding["roleRef"]
            kind = ROLES if reference["kind"] == "Role" else CLUSTER_ROLES
            role = store.find(kind, namespace_of(binding), reference["name"])
            yield from (role or {}).get("rules") or []


def _covers(rule: Obj, field: str, wanted: str) -> bool:
    values = rule.get(field) or []
    return "*" in values or wanted in values


def _rule_allows(rule: Obj, access: Access) -> bool:
    names = rule.get("resourceNames") or []
    return (
        _covers(rule, "verbs", access.verb)
        and _covers(rule, "apiGroups", access.group)
        and _covers(rule, "resources", access.resource)
        and (not names or access.name in names)
    )


def _node_allows(identity: Identity, access: Access) -> bool:
    """What the node authoriser grants: one's own Node and Lease, and reading pods."""
    if NODES_GROUP not in identity.groups:
        return False
    node = identity.user.removeprefix(_NODE_USER)
    own = access.verb == "create" or access.name == node
    match access.resource:
        case "nodes" | "nodes/status":
            return own or access.verb in _READ
        case "leases":
            return own and access.namespace == "kube-node-lease"
        case "pods" | "services":
            return access.verb in _READ
        case "pods/status":
            return True
    return False


def allowed(store: Store, identity: Identity, access: Access) -> bool:
    """Whether the identity may do that."""
    return (
        MASTERS in identity.groups
        or _node_allows(identity, access)
        or any(
            _rule_allows(rule, access)
            for rule in _rules(store, identity, access.namespace)
        )
    )


def check(store: Store, identity: Identity, access: Access) -> None:
    """:raises ApiError: 403, worded as a real server words it."""
    if allowed(store, identity, access):
        return
    where = (
        f'in the namespace "{access.namespace}"'
        if access.namespace
        else "at the cluster scope"
    )
    details: dict[str, Any] = {"kind": access.resource.partition("/")[0]}
    if access.group:
        details["group"] = access.group
    if access.name:
        details["name"] = access.name
    qualified = f"{details['kind']}.{access.group}" if access.group else details["kind"]
    quoted = f' "{access.name}"' if access.name else ""
    text = (
        f'{qualified}{quoted} is forbidden: User "{identity.user}" cannot '
        f'{access.verb} resource "{access.resource}" in API group "{access.group}" '
        f"{where}"
    )
    raise ApiError(403, "Forbidden", text, **details)
