# SPDX-License-Identifier: Apache-2.0
"""Who asks and what RBAC allows: identities, tokens, roles and bindings.

Besides the roles in the store, members of ``system:masters`` may do everything and
kubelets (group ``system:nodes``) what they need for their own node.
"""

import base64
import functools
import hashlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from jwt.utils import base64url_encode

from .objects import Obj, dig, labels_of, name_of, namespace_of
from .resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    ApiError,
)
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


_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_READ_VERBS = ["get", "list", "watch"]
_WRITE_VERBS = ["create", "delete", "deletecollection", "patch", "update"]
_ALL = ["*"]
_APPS = "daemonsets deployments deployments/scale replicasets replicasets/scale"
_SETS = f"{_APPS} statefulsets statefulsets/scale"
_NETWORK = "ingresses networkpolicies"
_INSIDE = "pods/attach pods/exec pods/portforward pods/proxy"
_CORE = "configmaps persistentvolumeclaims replicationcontrollers serviceaccounts"

_RULES = {
    "view": (
        ("", f"{_CORE} endpoints pods services services/status", _READ_VERBS),
        ("", "events limitranges namespaces pods/log pods/status", _READ_VERBS),
        ("", "resourcequotas resourcequotas/status", _READ_VERBS),
        ("discovery.k8s.io", "endpointslices", _READ_VERBS),
        ("apps", f"controllerrevisions {_SETS}", _READ_VERBS),
        ("autoscaling", "horizontalpodautoscalers", _READ_VERBS),
        ("batch", "cronjobs jobs", _READ_VERBS),
        ("policy", "poddisruptionbudgets", _READ_VERBS),
        ("networking.k8s.io", _NETWORK, _READ_VERBS),
    ),
    "edit": (
        ("", f"{_INSIDE} secrets services/proxy", _READ_VERBS),
        ("", "serviceaccounts", ["impersonate"]),
        ("", f"{_INSIDE} pods events secrets services services/proxy", _WRITE_VERBS),
        ("", _CORE, _WRITE_VERBS),
        ("", "pods/eviction serviceaccounts/token", ["create"]),
        ("apps", _SETS, _WRITE_VERBS),
        ("autoscaling", "horizontalpodautoscalers", _WRITE_VERBS),
        ("batch", "cronjobs jobs", _WRITE_VERBS),
        ("policy", "poddisruptionbudgets", _WRITE_VERBS),
        ("networking.k8s.io", _NETWORK, _WRITE_VERBS),
        ("coordination.k8s.io", "leases", [*_READ_VERBS, *_WRITE_VERBS]),
    ),
    "admin": (
        ("authorization.k8s.io", "localsubjectaccessreviews", ["create"]),
        (
            "rbac.authorization.k8s.io",
            "rolebindings roles",
            [*_READ_VERBS, *_WRITE_VERBS],
        ),
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


def create_default_roles(store: Store) -> None:
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


_ISSUER = "https://kubernetes.default.svc.cluster.local"
_SECRETS_ISSUER = "kubernetes/serviceaccount"


class Tokens:
    """Issues and checks the tokens of one cluster.

    :param signing_key: the cluster's secret; tokens of other clusters do not pass. ""
        has one made when the first token is issued.
    """

    def __init__(self, store: Store, signing_key: str = "") -> None:
        self._store = store
        self.signing_key = signing_key

    @functools.cached_property
    def _key(self) -> RSAPrivateKey:
        if not self.signing_key:
            words = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            self.signing_key = made.private_bytes(*words).decode()
        key = load_pem_private_key(self.signing_key.encode(), password=None)
        return cast("RSAPrivateKey", key)

    @functools.cached_property
    def _key_id(self) -> str:
        public = self._key.public_key()
        data = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return base64url_encode(hashlib.sha256(data).digest()).decode()

    def _signed(self, claims: Obj) -> str:
        return jwt.encode(claims, self._key, "RS256", {"kid": self._key_id})

    def issue(self, account: Obj, seconds: int) -> str:
        """A token for a ServiceAccount that is good for that time."""
        now = int(time.time())
        reference = {"name": name_of(account), "uid": account["metadata"]["uid"]}
        about = {"namespace": namespace_of(account), "serviceaccount": reference}
        return self._signed(
            {
                "aud": [_ISSUER],
                "exp": now + seconds,
                "iat": now,
                "iss": _ISSUER,
                "jti": str(uuid.uuid4()),
                "kubernetes.io": about,
                "nbf": now,
                "sub": _user(account),
            }
        )

    def of_secret(self, account: Obj, secret: Obj) -> str:
        """The token that a Secret holds."""
        about = {
            "namespace": namespace_of(account),
            "secret.name": name_of(secret),
            "service-account.name": name_of(account),
            "service-account.uid": account["metadata"]["uid"],
        }
        claims = {f"kubernetes.io/serviceaccount/{k}": v for k, v in about.items()}
        return self._signed({"iss": _SECRETS_ISSUER, **claims, "sub": _user(account)})

    def user_of(self, token: str) -> str | None:
        """The user that the token speaks for; None if it is not a good one."""
        if not self.signing_key:
            return None
        try:
            key = self._key.public_key()
            claims = jwt.decode(token, key, ["RS256"], options={"verify_aud": False})
        except jwt.InvalidTokenError:
            return None
        _, _, namespace, name = claims["sub"].split(":")
        account = self._store.find(SERVICE_ACCOUNTS, namespace, name)
        if account is None:
            return None
        if claims["iss"] == _SECRETS_ISSUER:
            good = self._is_kept(claims, account, token)
        else:
            uid = claims["kubernetes.io"]["serviceaccount"]["uid"]
            good = uid == account["metadata"]["uid"]
        return str(claims["sub"]) if good else None

    def _is_kept(self, claims: Obj, account: Obj, token: str) -> bool:
        about: Any = {k.rpartition("/")[2]: v for k, v in claims.items()}
        where = namespace_of(account)
        secret = self._store.find(SECRETS, where, about["secret.name"])
        kept = base64.b64decode(dig(secret, "data.token")).decode()
        uid = account["metadata"]["uid"]
        return kept == token and about["service-account.uid"] == uid


def _user(account: Obj) -> str:
    return f"system:serviceaccount:{namespace_of(account)}:{name_of(account)}"
