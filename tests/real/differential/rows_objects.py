# SPDX-License-Identifier: Apache-2.0
"""Objects: writes, patches, deletes, watches, selectors and tables."""

import json
from functools import partial
from typing import Any

from tests.real.differential.rows import Row, comparable, do, http, patch, pick
from tests.real.differential.rows_api import CONFIG_MAPS, NODES, config_map
from tests.real.differential.site import Site

_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
_COLUMNS = "columnDefinitions.*.name"
_GUEST = "/api/v1/namespaces/default/serviceaccounts/guest"


def _conflict(site: Site) -> Any:
    old = site.get(f"{CONFIG_MAPS}/c")
    site.request("PUT", f"{CONFIG_MAPS}/c", {**old, "data": {"a": "2"}})
    answer = site.request("PUT", f"{CONFIG_MAPS}/c", old)
    return {"status": answer.status, "body": comparable(answer.body)}


def _deleted(path: str, more: Any, site: Site) -> Any:
    """What deleting an object answers with."""
    made = site.request("POST", path, {"metadata": {"name": "short-lived"}, **more})
    answer = site.request("DELETE", f"{path}/short-lived")
    kind = pick(answer.body, "kind")
    return {"made": made.status, "status": answer.status, "kind": kind}


_IN_DEFAULT = "namespaces/default"
_SOURCE = {"source": {"persistentVolumeName": "p"}}
_ATTACHED = {"spec": {"attacher": "a", "nodeName": "w1", **_SOURCE}}
_NO_PODS = {"minAvailable": 0, "selector": {"matchLabels": {"app": "none"}}}
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_DELETED: tuple[tuple[str, Any], ...] = (
    (f"/api/v1/{_IN_DEFAULT}/services", {"spec": {"ports": [{"port": 80}]}}),
    (f"/api/v1/{_IN_DEFAULT}/secrets", {}),
    (f"/apis/policy/v1/{_IN_DEFAULT}/poddisruptionbudgets", {"spec": _NO_PODS}),
    (f"/apis/coordination.k8s.io/v1/{_IN_DEFAULT}/leases", {}),
    ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "p"}),
    ("/apis/storage.k8s.io/v1/volumeattachments", _ATTACHED),
    ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"roleRef": _ROLE}),
)
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/w1"
_LEASED = {"metadata": {"name": "w1"}, "spec": {"holderIdentity": "w1"}}
_OBJECT = "kind apiVersion metadata.# metadata.name data"
_UID = {"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}}
OBJECTS = (
    http("create", "POST", CONFIG_MAPS, config_map("c", a="1"), _OBJECT),
    http("create: again", "POST", CONFIG_MAPS, config_map("c")),
    http(
        "create: dry run",
        "POST",
        f"{CONFIG_MAPS}?dryRun=All",
        config_map("d"),
        _OBJECT,
    ),
    http("create: dry run leaves nothing", "GET", f"{CONFIG_MAPS}/d"),
    http("get", "GET", f"{CONFIG_MAPS}/c", None, _OBJECT),
    http(
        "list",
        "GET",
        f"{CONFIG_MAPS}?labelSelector=none",
        None,
        "kind apiVersion metadata.# items",
    ),
    Row("409: an update of an older version", _conflict),
    patch(
        "409: a patch of an older version",
        f"{CONFIG_MAPS}/c",
        "merge",
        {"metadata": {"resourceVersion": "1"}, "data": {"a": "9"}},
    ),
    http("409: delete of another object", "DELETE", f"{CONFIG_MAPS}/c", _UID),
    patch(
        "patch: merge",
        f"{CONFIG_MAPS}/c",
        "merge",
        {"data": {"a": None, "b": "1"}},
        _OBJECT,
    ),
    patch(
        "patch: merge, nothing new",
        f"{CONFIG_MAPS}/c",
        "merge",
        {"data": {"b": "1"}},
        _OBJECT,
    ),
    patch(
        "patch: strategic",
        f"{CONFIG_MAPS}/c",
        "strategic-merge",
        {"data": {"c": "2"}},
        _OBJECT,
    ),
    patch(
        "patch: json",
        f"{CONFIG_MAPS}/c",
        "json",
        [{"op": "replace", "path": "/data/c", "value": "3"}],
        _OBJECT,
    ),
    patch(
        "patch: json, a test that fails",
        f"{CONFIG_MAPS}/c",
        "json",
        [{"op": "test", "path": "/data/c", "value": "9"}],
    ),
    patch(
        "patch: json, a path that is missing",
        f"{CONFIG_MAPS}/c",
        "json",
        [{"op": "remove", "path": "/data/none"}],
    ),
    patch("patch: json that is none", f"{CONFIG_MAPS}/c", "json", {"data": {}}),
    patch(
        "patch: a kind that there is not", f"{CONFIG_MAPS}/c", "nothing", {"data": {}}
    ),
    patch(
        "patch: apply",
        f"{CONFIG_MAPS}/e?fieldManager=t",
        "apply",
        config_map("e", a="1"),
        _OBJECT,
    ),
    patch(
        "patch: apply again",
        f"{CONFIG_MAPS}/e?fieldManager=t",
        "apply",
        config_map("e", a="2"),
        _OBJECT,
    ),
    patch(
        "patch: apply without a manager",
        f"{CONFIG_MAPS}/e",
        "apply",
        config_map("e", a="2"),
    ),
    patch(
        "patch: apply, another manager's field",
        f"{CONFIG_MAPS}/e?fieldManager=u",
        "apply",
        config_map("e", a="3"),
        "data",
    ),
    http("update: a lease without its version", "PUT", _LEASE, _LEASED),
    http("delete", "DELETE", f"{CONFIG_MAPS}/c", None),
    http(
        "delete: a collection",
        "DELETE",
        f"{CONFIG_MAPS}?fieldSelector=metadata.name%3De",
        None,
        "kind",
    ),
    http(
        "create: a service account",
        "POST",
        _GUEST.rpartition("/")[0],
        {"metadata": {"name": "guest"}},
        "kind metadata.name",
    ),
    http(
        "delete: a service account",
        "DELETE",
        _GUEST,
        None,
        "kind metadata.name status",
    ),
    *(
        Row(
            f"delete: answers with {path.rpartition('/')[2]}",
            partial(_deleted, path, spec),
        )
        for path, spec in _DELETED
    ),
    http("delete: a node that is not there", "DELETE", f"{NODES}/none"),
)


def _watch(site: Site) -> Any:
    """Events that come after a list."""
    listed = site.get(CONFIG_MAPS)["metadata"]["resourceVersion"]
    site.request("POST", CONFIG_MAPS, config_map("seen", a="1"))
    site.request("DELETE", f"{CONFIG_MAPS}/seen")
    query = f"watch=true&resourceVersion={listed}&timeoutSeconds=2"
    query += "&fieldSelector=metadata.name%3Dseen"
    return _events(site, f"{CONFIG_MAPS}?{query}")


def _events(site: Site, path: str) -> Any:
    """Type, kind and name of each event of a watch."""
    answer = site.request("GET", path)
    events = [json.loads(line) for line in answer.body.splitlines()]
    fields = (
        "type",
        "object.kind",
        "object.metadata.name",
        "object.metadata.annotations",
    )
    return {
        "status": answer.status,
        "events": [[pick(event, field) for field in fields] for event in events],
    }


_BY_FIELD = "/api/v1/pods?fieldSelector=spec.nodeName%3Dnone"
SELECTORS = (
    do(
        "a watched object",
        lambda site: site.request("POST", CONFIG_MAPS, config_map("w")),
    ),
    Row("watch: after a list", _watch),
    Row(
        "watch: what there is",
        lambda site: _events(
            site,
            f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dw",
        ),
    ),
    Row(
        "watch: in place of a list",
        lambda site: _events(
            site,
            f"{CONFIG_MAPS}?watch=true&timeoutSeconds=2&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Dw",
        ),
    ),
    Row(
        "watch: one object",
        lambda site: _events(
            site,
            f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Dw",
        ),
    ),
    http("selector: by a pod's node", "GET", _BY_FIELD, None, "items"),
    http(
        "selector: a field that cannot be selected",
        "GET",
        "/api/v1/pods?fieldSelector=spec.nothing%3D1",
    ),
    http(
        "selector: a node's field",
        "GET",
        f"{NODES}?fieldSelector=metadata.name%3Dw1",
        None,
        "items.*.metadata.name",
    ),
    http(
        "selector: nodes that are cordoned",
        "GET",
        f"{NODES}?fieldSelector=spec.unschedulable%3Dtrue",
        None,
        "items",
    ),
    http(
        "selector: labels",
        "GET",
        f"{NODES}?labelSelector=kubernetes.io/hostname+in+(w1,w2),!nothing",
        None,
        "items.*.metadata.name",
    ),
    http(
        "selector: a label that is not w1",
        "GET",
        f"{NODES}?labelSelector=kubernetes.io/hostname!%3Dw1",
        None,
        "items.*.metadata.name",
    ),
    http("selector: labels that are none", "GET", f"{NODES}?labelSelector=a+in+b"),
    http(
        "selector: both",
        "GET",
        "/api/v1/pods?fieldSelector=status.phase%3DRunning,metadata.namespace!%3Dkube-system&labelSelector=app%3Dnone",
        None,
        "items",
    ),
    http(
        "list: in pages",
        "GET",
        f"{NODES}?limit=1",
        None,
        "items.*.metadata.name metadata.remainingItemCount",
    ),
    http(
        "table: nodes",
        "GET",
        NODES,
        None,
        f"{_COLUMNS} columnDefinitions.*.priority",
        headers=_TABLE,
    ),
    http(
        "table: pods",
        "GET",
        "/api/v1/pods",
        None,
        f"{_COLUMNS} columnDefinitions.*.priority",
        headers=_TABLE,
    ),
    http(
        "table: namespaces", "GET", "/api/v1/namespaces", None, _COLUMNS, headers=_TABLE
    ),
    http("table: secrets", "GET", "/api/v1/secrets", None, _COLUMNS, headers=_TABLE),
    http("table: events", "GET", "/api/v1/events", None, _COLUMNS, headers=_TABLE),
    http(
        "table: leases",
        "GET",
        "/apis/coordination.k8s.io/v1/leases",
        None,
        _COLUMNS,
        headers=_TABLE,
    ),
    http("table: services", "GET", "/api/v1/services", None, _COLUMNS, headers=_TABLE),
    http(
        "table: deployments",
        "GET",
        "/apis/apps/v1/deployments",
        None,
        _COLUMNS,
        headers=_TABLE,
    ),
    http(
        "table: daemon sets",
        "GET",
        "/apis/apps/v1/daemonsets",
        None,
        _COLUMNS,
        headers=_TABLE,
    ),
    http(
        "table: budgets",
        "GET",
        "/apis/policy/v1/poddisruptionbudgets",
        None,
        _COLUMNS,
        headers=_TABLE,
    ),
    http(
        "table: volume attachments",
        "GET",
        "/apis/storage.k8s.io/v1/volumeattachments",
        None,
        _COLUMNS,
        headers=_TABLE,
    ),
)

ROWS = (*OBJECTS, *SELECTORS)
