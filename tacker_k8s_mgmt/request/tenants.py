# SPDX-License-Identifier: Apache-2.0
"""The list ``tenants``: who shares the cluster, and what each one may use.

The tenants are checked against each other, and against the cluster's options, as
:mod:`.cross_checks` does it.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.request.structure import (
    Location,
    Problem,
    Structure,
    items,
    readable,
    valid,
)

if TYPE_CHECKING:
    from tacker_k8s_mgmt.request.installation import ClusterRequest

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
    size: fields.Optional[Quantity] = None
    """Most storage of all claims of this class together, such as 100Gi. Default: no
    limit."""
    volumes: Annotated[int, Strict(), AfterValidator(_volumes)] | None = None
    """Most claims of this class. Default: no limit."""


class AllowedPort(Structure):
    """A port that an exception of the isolation opens."""

    port: fields.Port
    """Number of the port, of the pods and not of a Service."""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    """Its protocol. Default: TCP."""


class Allowed(Structure):
    """An exception of a tenant's isolation."""

    direction: Literal["ingress", "egress"]
    """ingress: to the tenant's pods; egress: from them."""
    tenants: tuple[TenantName, ...] = ()
    """List of other tenants with whose pods there may be connections."""
    namespaces: tuple[fields.Name, ...] = ()
    """List of namespaces with whose pods there may be connections."""
    networks: tuple[fields.Network, ...] = ()
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
    vim_name: fields.OptionalName = None
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
    isolated: fields.Flag = True
    """Whether the tenant's pods can connect with each other and with the cluster's DNS
    only, by NetworkPolicies. Default: true; refused with a network plugin that enforces
    none."""
    allowed: tuple[Allowed, ...] = ()
    """List of exceptions of this isolation."""
    rules: tuple[Rule, ...] = ()
    """List of further rights of the tenant in its namespace, for example for custom
    resources. Default: those for the usual kinds of workloads."""
    keystone_project: fields.Optional[Annotated[str, AfterValidator(_project)]] = None
    """Id of a Keystone project whose users have the tenant's rights, too, where
    k8s-keystone-auth is the token webhook of cluster.authentication. Default: none."""


_TENANTS = ("tenants",)
_ADMISSION = ("kubespray_vars", "kube_apiserver_enable_admission_plugins")
_NO_EXTERNAL_IPS = "DenyServiceExternalIPs"
_OPEN = "isolated: false gives a tenant without isolation"


def problems(request: "ClusterRequest") -> Iterator[Problem]:
    """What contradicts itself, or cannot be with this cluster."""
    names = [valid(tenant, "name") for tenant in request.tenants]
    for number, name in enumerate(names):
        if name and name in names[:number]:
            here = (*_TENANTS, str(number), "name")
            yield Problem(here, "the tenant is given twice")
    yield from readable(_vim_names(request))
    for place, tenant in items(_TENANTS, request.tenants):
        yield from readable(_isolation(request, place, tenant))
        yield from readable(_exceptions(place, tenant, names))
        yield from readable(_project_of(request, place, tenant))


def _project_of(
    request: "ClusterRequest", place: Location, tenant: Tenant
) -> Iterator[Problem]:
    if tenant.keystone_project and not request.cluster.authentication.webhook:
        text = "needs k8s-keystone-auth as cluster.authentication.webhook"
        yield Problem((*place, "keystone_project"), text)


def warnings(request: "ClusterRequest") -> Iterator[Problem]:
    """What is not as safe as it may look."""
    plugin = request.cluster.network.known_plugin
    chosen = request.kubespray_vars.get(_ADMISSION[1])
    if chosen is not None and _NO_EXTERNAL_IPS not in str(chosen) and request.tenants:
        text = (
            f"up to Kubernetes 1.29, only the plugin {_NO_EXTERNAL_IPS} keeps Services "
            "of tenants from taking over addresses by externalIPs (CVE-2020-8554)"
        )
        yield Problem(_ADMISSION, text)
    for place, tenant in items(_TENANTS, request.tenants):
        if tenant.isolated and plugin.policies is None:
            text = (
                "whether NetworkPolicies are enforced, and so the tenant is isolated, "
                f"depends on what the plugin {plugin.name} stands for"
            )
            yield Problem(place, text)
        if tenant.pod_security == "privileged":
            text = (
                "privileged pods can reach everything on their node, also what is of "
                "other tenants"
            )
            yield Problem((*place, "pod_security"), text)


def _vim_names(request: "ClusterRequest") -> Iterator[Problem]:
    """VIMs of one name, and names that Tacker has no room for."""
    cluster = request.vim_name
    taken = {cluster}
    for place, tenant in items(_TENANTS, request.tenants):
        own, name = valid(tenant, "vim_name"), valid(tenant, "name")
        default = f"{cluster}_{name}" if cluster and name and not own else ""
        if (used := own or default) in taken:
            text = "another VIM has this name"
            text += f", {used}, which is the default" if default else ""
            yield Problem((*place, "vim_name"), text)
        if len(default) > fields.LONGEST_NAME:
            text = (
                f"its default, vim_name with the tenant's name, has {len(default)} "
                f"characters, and Tacker has room for {fields.LONGEST_NAME}; give one, "
                "or a shorter vim_name"
            )
            yield Problem((*place, "vim_name"), text)
        taken.update([used] if used else [])


def _isolation(
    request: "ClusterRequest", place: Location, tenant: Tenant
) -> Iterator[Problem]:
    here = (*place, "isolated")
    if not tenant.isolated:
        if tenant.allowed:
            text = "is for a tenant that is isolated"
            yield Problem((*place, "allowed"), text)
        return
    plugin = request.cluster.network.known_plugin
    if plugin.policies is False:
        text = (
            f"the network plugin {plugin.name} enforces no NetworkPolicies, so its "
            "pods would not be isolated. Choose another plugin, such as calico; "
            f"{_OPEN}"
        )
        yield Problem(here, text)
    elif request.kubespray_vars.get(plugin.policy_variable) is False:
        text = (
            f"kubespray_vars.{plugin.policy_variable} keeps {plugin.name} from "
            f"enforcing NetworkPolicies; {_OPEN}"
        )
        yield Problem(here, text)


def _exceptions(place: Location, tenant: Tenant, names: list[Any]) -> Iterator[Problem]:
    for here, allowed in items((*place, "allowed"), tenant.allowed):
        yield from readable(_exception(here, allowed, names))


def _exception(here: Location, allowed: Allowed, names: list[Any]) -> Iterator[Problem]:
    for other in allowed.tenants:
        if other not in names:
            text = f"there is no such tenant as {other}"
            yield Problem((*here, "tenants"), text)
    if not (allowed.tenants or allowed.namespaces or allowed.networks):
        text = (
            "name tenants, namespaces or networks; the network 0.0.0.0/0 stands for all"
        )
        yield Problem(here, text)
