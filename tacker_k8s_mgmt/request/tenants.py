# SPDX-License-Identifier: Apache-2.0
"""The list ``tenants``: who shares the cluster, and what each one may use.

The tenants are checked against each other, and against the cluster's options. These
checks work on the request as it was read, as those of :mod:`.cross_checks` do.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.network_plugins import Plugin
from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.request.structure import Location, Structure, WrittenRequest

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


_TENANTS = "tenants"
_PLUGIN = ("cluster", "network", "plugin")
_ADMISSION = ("kubespray_vars", "kube_apiserver_enable_admission_plugins")
_NO_EXTERNAL_IPS = "DenyServiceExternalIPs"
_OPEN = "isolated: false gives a tenant without isolation"


def problems(reading: WrittenRequest) -> Iterator[str]:
    """Sentences about what contradicts itself, or cannot be with this cluster."""
    places = _places(reading)
    names = [reading.get(*place, "name") for place in places]
    for number, place in enumerate(places):
        if names[number] is not None and names[number] in names[:number]:
            yield f"{reading.dotted(*place, 'name')}: the tenant is given twice"
    yield from _vim_names(reading, places)
    for place in places:
        yield from _isolation(reading, place)
        yield from _exceptions(reading, place, names)
        if reading.given(*place, "keystone_project") and not reading.get(
            "cluster", "authentication", "webhook"
        ):
            yield (
                f"{reading.dotted(*place, 'keystone_project')}: needs "
                "k8s-keystone-auth as cluster.authentication.webhook"
            )


def warnings(reading: WrittenRequest) -> Iterator[str]:
    """Sentences about what is not as safe as it may look."""
    plugin, chosen = _plugin(reading), reading.get(*_ADMISSION)
    if chosen is not None and _NO_EXTERNAL_IPS not in str(chosen) and _places(reading):
        yield (
            f"{reading.dotted(*_ADMISSION)}: up to Kubernetes 1.29, only the plugin "
            f"{_NO_EXTERNAL_IPS} keeps Services of tenants from taking over addresses "
            "by externalIPs (CVE-2020-8554)"
        )
    for place in _places(reading):
        if _is_isolated(reading, place) and plugin and plugin.policies is None:
            yield (
                f"{reading.dotted(*place)}: whether NetworkPolicies are enforced, and "
                f"so the tenant is isolated, depends on what the plugin {plugin.name} "
                "stands for"
            )
        if reading.get(*place, "pod_security") == "privileged":
            yield (
                f"{reading.dotted(*place, 'pod_security')}: privileged pods can reach "
                "everything on their node, also what is of other tenants"
            )


def _places(reading: WrittenRequest) -> list[Location]:
    tenants = reading.get(_TENANTS)
    if not isinstance(tenants, list):
        return []
    return [
        (_TENANTS, str(number))
        for number, tenant in enumerate(tenants)
        if isinstance(tenant, Mapping)
    ]


def _vim_names(reading: WrittenRequest, places: list[Location]) -> Iterator[str]:
    """VIMs of one name, and names that Tacker has no room for."""
    cluster = reading.get("vim_name")
    taken = {str(cluster)}
    for place in places:
        name, composed = reading.given(*place, "vim_name"), ""
        own = reading.given(*place, "name")
        if not name and isinstance(cluster, str) and cluster and isinstance(own, str):
            name = composed = f"{cluster}_{own}"
        if not isinstance(name, str):
            continue
        attribute = reading.dotted(*place, "vim_name")
        if name in taken:
            yield f"{attribute}: another VIM has this name" + (
                f", {name}, which is the default" if composed else ""
            )
        if len(composed) > fields.LONGEST_NAME:
            yield (
                f"{attribute}: its default, vim_name with the tenant's name, has "
                f"{len(composed)} characters, and Tacker has room for "
                f"{fields.LONGEST_NAME}; give one, or a shorter vim_name"
            )
        taken.add(name)


def _plugin(reading: WrittenRequest) -> Plugin | None:
    chosen = reading.given(*_PLUGIN) or network_plugins.DEFAULT
    return network_plugins.PLUGINS.get(chosen) if isinstance(chosen, str) else None


def _is_isolated(reading: WrittenRequest, place: Location) -> bool:
    return reading.get(*place, "isolated") is not False


def _isolation(reading: WrittenRequest, place: Location) -> Iterator[str]:
    plugin, name = _plugin(reading), reading.dotted(*place, "isolated")
    if not _is_isolated(reading, place):
        if reading.get(*place, "allowed"):
            allowed = reading.dotted(*place, "allowed")
            yield f"{allowed}: is for a tenant that is isolated"
    elif plugin and plugin.policies is False:
        yield (
            f"{name}: the network plugin {plugin.name} enforces no NetworkPolicies, so "
            f"its pods would not be isolated. Choose another plugin, such as calico; "
            f"{_OPEN}"
        )
    elif (
        plugin
        and plugin.policy_variable
        and reading.get("kubespray_vars", plugin.policy_variable) is False
    ):
        yield (
            f"{name}: kubespray_vars.{plugin.policy_variable} keeps {plugin.name} from "
            f"enforcing NetworkPolicies; {_OPEN}"
        )


def _exceptions(
    reading: WrittenRequest, place: Location, names: list[Any]
) -> Iterator[str]:
    allowed = reading.get(*place, "allowed")
    for number, one in enumerate(allowed if isinstance(allowed, list) else ()):
        here = (*place, "allowed", str(number))
        others = one.get("tenants") if isinstance(one, Mapping) else None
        for other in others if isinstance(others, list) else ():
            if other not in names:
                shown = reading.dotted(*here, "tenants")
                # A name is repeated; anything else may be a misplaced secret.
                is_name = isinstance(other, str) and NAME.fullmatch(other)
                named = f" as {other}" if is_name else ""
                yield f"{shown}: there is no such tenant{named}"
        if isinstance(one, Mapping) and not any(
            one.get(peers) for peers in ("tenants", "namespaces", "networks")
        ):
            yield (
                f"{reading.dotted(*here)}: name tenants, namespaces or networks; the "
                "network 0.0.0.0/0 stands for all"
            )
