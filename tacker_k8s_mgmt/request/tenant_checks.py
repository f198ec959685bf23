# SPDX-License-Identifier: Apache-2.0
"""Checks of the tenants against each other, and against the cluster's options.

They work on the request as it was read, as those of :mod:`.cross_validation` do.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.network_plugins import Plugin
from tacker_k8s_mgmt.request import field_types
from tacker_k8s_mgmt.request.key_aliases import Location, Reading
from tacker_k8s_mgmt.request.tenants import NAME

_TENANTS = "tenants"
_PLUGIN = ("cluster", "network", "plugin")
_ADMISSION = ("kubespray_vars", "kube_apiserver_enable_admission_plugins")
_NO_EXTERNAL_IPS = "DenyServiceExternalIPs"
_OPEN = "isolated: false gives a tenant without isolation"


def problems(reading: Reading) -> Iterator[str]:
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


def warnings(reading: Reading) -> Iterator[str]:
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


def _places(reading: Reading) -> list[Location]:
    tenants = reading.get(_TENANTS)
    if not isinstance(tenants, list):
        return []
    return [
        (_TENANTS, str(number))
        for number, tenant in enumerate(tenants)
        if isinstance(tenant, Mapping)
    ]


def _vim_names(reading: Reading, places: list[Location]) -> Iterator[str]:
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
        if len(composed) > field_types.LONGEST_NAME:
            yield (
                f"{attribute}: its default, vim_name with the tenant's name, has "
                f"{len(composed)} characters, and Tacker has room for "
                f"{field_types.LONGEST_NAME}; give one, or a shorter vim_name"
            )
        taken.add(name)


def _plugin(reading: Reading) -> Plugin | None:
    chosen = reading.given(*_PLUGIN) or network_plugins.DEFAULT
    return network_plugins.PLUGINS.get(chosen) if isinstance(chosen, str) else None


def _is_isolated(reading: Reading, place: Location) -> bool:
    return reading.get(*place, "isolated") is not False


def _isolation(reading: Reading, place: Location) -> Iterator[str]:
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


def _exceptions(reading: Reading, place: Location, names: list[Any]) -> Iterator[str]:
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
