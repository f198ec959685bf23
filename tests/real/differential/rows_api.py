# SPDX-License-Identifier: Apache-2.0
"""Plain requests: health, discovery, refusals, objects, patches, selectors, watches."""

from typing import Any

from tests.real.differential.rows import Row, http, patch
from tests.real.differential.site import Site

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"


def config_map(name: str, **data: str) -> dict[str, Any]:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**kind, "metadata": {"name": name}, "data": data}


HEALTH = (
    http("health: /readyz without a token", "GET", "/readyz", token=""),
    http("health: /livez", "GET", "/livez"),
    http("health: /healthz", "GET", "/healthz"),
    http("health: the report of /readyz", "GET", "/readyz?verbose"),
    http("health: the report of /livez", "GET", "/livez?verbose"),
    http("health: one check", "GET", "/readyz/etcd"),
    http("health: a check that there is not", "GET", "/readyz/nothing"),
    http("version", "GET", "/version", None, "# major minor gitVersion"),
    http("version: without a token", "GET", "/version", None, "#", token=""),
)

_SERVED = (
    ("/api/v1", "nodes", "nodes/status", "pods", "pods/eviction", "secrets"),
    ("/api/v1", "configmaps", "namespaces", "serviceaccounts", "serviceaccounts/token"),
    ("/apis/apps/v1", "deployments", "deployments/scale", "daemonsets"),
    ("/apis/policy/v1", "poddisruptionbudgets"),
    ("/apis/storage.k8s.io/v1", "volumeattachments"),
)


def _served(site: Site) -> Any:
    """How discovery describes the kinds that are used."""
    seen = {}
    for group, *names in _SERVED:
        known = {
            resource["name"]: resource for resource in site.get(group)["resources"]
        }
        for name in names:
            seen[name] = {
                key: value
                for key, value in known[name].items()
                if key not in ("storageVersionHash", "verbs") and value
            }
            seen[name]["verbs"] = sorted(known[name]["verbs"])
    return seen


DISCOVERY = (
    Row("discovery: kinds", _served),
    http("discovery: /api", "GET", "/api", None, "kind versions #"),
    http("discovery: /api/, which Tacker asks", "GET", "/api/", None, "versions #"),
    http(
        "discovery: addresses of the server",
        "GET",
        "/api/",
        None,
        "serverAddressByClientCIDRs.*.clientCIDR",
    ),
    http("discovery: /apis", "GET", "/apis", None, "kind groups.*.name #"),
    http("discovery: a group", "GET", "/apis/apps", None, "kind name versions"),
    http("discovery: no such group", "GET", "/apis/nothing.io"),
    http("discovery: no such resource", "GET", "/apis/apps/v1/nothings"),
    http("discovery: no such version", "GET", "/apis/policy/v1beta1"),
)

REFUSALS = (
    http("401: a token that is none", "GET", "/api/", token="wrong"),
    http("403: nodes for anybody", "GET", NODES, token=""),
    http("403: one node for anybody", "GET", f"{NODES}/w1", token=""),
    http("403: /api for anybody", "GET", "/api", token=""),
    http(
        "403: a pod's eviction for anybody",
        "POST",
        "/api/v1/namespaces/default/pods/p/eviction",
        {},
        token="",
    ),
    http(
        "403: a deployment for anybody",
        "DELETE",
        "/apis/apps/v1/namespaces/default/deployments/web",
        token="",
    ),
    http("404: a path of no group", "GET", "/nothing"),
    http("404: a node", "GET", f"{NODES}/none"),
    http(
        "404: a deployment", "GET", "/apis/apps/v1/namespaces/default/deployments/none"
    ),
    http("404: in no such namespace", "GET", "/api/v1/namespaces/none/pods/p"),
    http("404: delete", "DELETE", f"{CONFIG_MAPS}/none"),
    patch("404: patch", f"{CONFIG_MAPS}/none", "merge", {"data": {"a": "b"}}),
    http(
        "404: create in no such namespace",
        "POST",
        "/api/v1/namespaces/none/configmaps",
        config_map("c"),
    ),
    http(
        "404: an empty list is none",
        "GET",
        "/api/v1/namespaces/none/pods",
        None,
        "kind items",
    ),
    http("405: create at a name", "POST", f"{NODES}/w1", {}),
    http("405: update a collection", "PUT", NODES, {}),
    http("400: a body that is no JSON", "POST", CONFIG_MAPS, b"{"),
    http(
        "400: another kind's object",
        "POST",
        CONFIG_MAPS,
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}},
    ),
    http(
        "400: another namespace's object",
        "POST",
        CONFIG_MAPS,
        {"metadata": {"name": "c", "namespace": "kube-system"}},
    ),
    http("422: no name", "POST", CONFIG_MAPS, {"metadata": {}}),
    http("422: a name that is none", "POST", CONFIG_MAPS, config_map("A_B")),
    http(
        "415: a content type",
        "POST",
        CONFIG_MAPS,
        b"a: b",
        headers={"Content-Type": "text/html"},
    ),
)


ROWS = (*HEALTH, *DISCOVERY, *REFUSALS)
