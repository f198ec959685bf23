# SPDX-License-Identifier: Apache-2.0
"""The list ``tenants``: who shares the cluster, and what each one may use."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from tacker_k8s_mgmt.request import field_types
from tacker_k8s_mgmt.request.key_aliases import Structure

#: RFC 1123's label, as names of namespaces are; the names that follow need room.
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
_RESERVED = re.compile(r"default|kube-.*|tacker-k8s-mgmt-.*")
# k8s.io/apimachinery/pkg/api/resource: a quantity that is not negative.
_QUANTITY = re.compile(
    r"[0-9]+(?:\.[0-9]*)?(?:[mkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?|\.[0-9]+[mkMGTPE]?i?"
)
_RESOURCE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9./-]{0,250}[A-Za-z0-9])?")
_CLASS = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,200}[a-z0-9])?")
# It becomes the name of a group. Without a colon it is none of Kubernetes' own, such as
# system:authenticated, and none with the prefix of another authentication.
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_WORD = re.compile(r"[a-zA-Z0-9*](?:[a-zA-Z0-9./*-]{0,250}[a-zA-Z0-9*])?")


def _tenant(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError(
            "must be the name of a namespace: 1 to 48 lower-case letters, digits and "
            "'-', with a letter or digit at both ends"
        )
    if _RESERVED.fullmatch(value):
        raise ValueError("is the name of a namespace of Kubernetes or of this driver")
    return value


def _quantity(value: Any) -> str:
    """Text or a number; JSON writes ``10`` pods without quotation marks."""
    text = str(value) if isinstance(value, int | str) else ""
    if isinstance(value, bool) or not _QUANTITY.fullmatch(text):
        raise ValueError("must be a quantity such as 4, 500m or 8Gi")
    return text


def _resource(value: str) -> str:
    if not _RESOURCE.fullmatch(value):
        raise ValueError("must be the name of a resource such as requests.cpu")
    return value


def _storage_class(value: str) -> str:
    if not _CLASS.fullmatch(value):
        raise ValueError("must be the name of a StorageClass")
    return value


def _volumes(value: int) -> int:
    if value < 0:
        raise ValueError("must be 0 or more")
    return value


def _project(value: str) -> str:
    if not _PROJECT.fullmatch(value):
        raise ValueError("must be the id of a project in Keystone")
    return value


def _word(value: str) -> str:
    if value and not _WORD.fullmatch(value):
        raise ValueError("must be a name of the Kubernetes API")
    return value


TenantName = Annotated[str, AfterValidator(_tenant)]
Quantity = Annotated[str, BeforeValidator(_quantity)]
Quantities = dict[Annotated[str, AfterValidator(_resource)], Quantity]
_Word = Annotated[str, AfterValidator(_word)]


class Limits(Structure):
    """What each container of a tenant gets, and what it may have."""

    default: Quantities = Field(default_factory=dict)
    """Limits of a container that states none, by resource, such as memory: 512Mi."""
    default_request: Quantities = Field(default_factory=dict)
    """Requests of a container that states none, by resource. Default: its limits."""
    min: Quantities = Field(default_factory=dict)
    """Least requests of a container, by resource."""
    max: Quantities = Field(default_factory=dict)
    """Most limits of a container, by resource."""


class Storage(Structure):
    """How much of a StorageClass a tenant may use."""

    name: Annotated[str, AfterValidator(_storage_class)]
    """Name of the StorageClass, such as cinder-csi."""
    size: field_types.Optional[Quantity] = None
    """Most storage of all claims of this class together, such as 100Gi. Default: no
    limit."""
    volumes: Annotated[int, Strict(), AfterValidator(_volumes)] | None = None
    """Most claims of this class. Default: no limit."""


class AllowedPort(Structure):
    """A port that an exception of the isolation opens."""

    port: field_types.Port
    """Number of the port, of the pods and not of a Service."""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    """Its protocol. Default: TCP."""


class Allowed(Structure):
    """An exception of a tenant's isolation."""

    direction: Literal["ingress", "egress"]
    """ingress: to the tenant's pods; egress: from them."""
    tenants: tuple[TenantName, ...] = ()
    """List of other tenants with whose pods there may be connections."""
    namespaces: tuple[field_types.Name, ...] = ()
    """List of namespaces with whose pods there may be connections."""
    networks: tuple[field_types.Network, ...] = ()
    """List of networks with whose hosts there may be connections. 0.0.0.0/0 stands for
    all, with most plugins also for the pods of all tenants."""
    ports: tuple[AllowedPort, ...] = ()
    """List of ports to connect to. Default: all."""


class Rule(Structure):
    """A further right of a tenant in its namespace."""

    api_groups: tuple[_Word, ...]
    """List of API groups; the empty text stands for the core group."""
    resources: tuple[_Word, ...]
    """List of resources in the plural."""
    verbs: tuple[_Word, ...]
    """List of verbs, such as get or create."""


class Tenant(Structure):
    """Who shares the cluster, with a namespace of the same name."""

    name: TenantName
    """Name of the tenant and of its namespace."""
    vim_name: field_types.OptionalName = None
    """Name of the tenant's VIM. Default: the cluster's vim_name, an underscore and the
    tenant's name."""
    pod_security: Literal["privileged", "baseline", "restricted"] = "baseline"
    """Pod Security Standard that the tenant's pods have to meet. Default: baseline."""
    quota: Quantities = Field(default_factory=dict)
    """Most of each resource that the tenant may use, such as requests.cpu: 8,
    limits.memory: 16Gi, pods: 50. Default: no limit."""
    storage: tuple[Storage, ...] = ()
    """List of StorageClasses with how much of each the tenant may use."""
    limits: Limits | None = None
    """Defaults and bounds of each container's resources. Default: none."""
    isolated: field_types.Flag = True
    """Whether the tenant's pods can connect with each other and with the cluster's DNS
    only, by NetworkPolicies. Default: true; refused with a network plugin that enforces
    none."""
    allowed: tuple[Allowed, ...] = ()
    """List of exceptions of this isolation."""
    rules: tuple[Rule, ...] = ()
    """List of further rights of the tenant in its namespace, for example for custom
    resources. Default: those for the usual kinds of workloads."""
    keystone_project: field_types.Optional[Annotated[str, AfterValidator(_project)]] = (
        None
    )
    """Id of a Keystone project whose users have the tenant's rights, too, where
    k8s-keystone-auth is the token webhook of cluster.authentication. Default: none."""
