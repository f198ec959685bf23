# SPDX-License-Identifier: Apache-2.0
"""A node that falls silent, one that is deleted, a restart, and no etcd."""

import datetime
import json
import time
from http.client import HTTPException
from typing import Any

from tests.real.differential.kubelets import SILENT
from tests.real.differential.real import NODE_GRACE
from tests.real.differential.rows import Row, comparable, do, http, kubectl, same
from tests.real.differential.site import Site

_PODS = "/api/v1/namespaces/default/pods"
_NODE = f"/api/v1/nodes/{SILENT}"
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{SILENT}"
_LOST = ("lost-1", "lost-2", "lost-3")
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
#: Seconds more than the least that a controller takes: its period and a slow machine.
_PERIOD = 25


def prepare(site: Site) -> None:
    """Pods on the node that is to fall silent."""
    spec = {"nodeName": SILENT, "containers": [{"name": "main", "image": "none"}]}
    for name in _LOST:
        made = site.request("POST", _PODS, {"metadata": {"name": name}, "spec": spec})
        assert made.status == 201, made
    site.wait(lambda: site.request("GET", _LEASE).status == 200)
    site.wait(
        lambda: all(
            any(
                one["type"] == "Ready" and one["status"] == "True"
                for one in site.get(f"{_PODS}/{name}")["status"].get("conditions", ())
            )
            for name in _LOST
        )
    )


def _moment(stamp: str) -> float:
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def _ready(site: Site) -> Any:
    conditions = site.get(_NODE)["status"]["conditions"]
    return next(condition for condition in conditions if condition["type"] == "Ready")


def _unknown(site: Site) -> Any:
    ready = site.wait(lambda: (r := _ready(site))["status"] != "True" and r)
    heard = _moment(site.get(_LEASE)["spec"]["renewTime"])
    seconds = _moment(ready["lastTransitionTime"]) - heard
    in_time = NODE_GRACE - 2 <= seconds < NODE_GRACE + _PERIOD
    words = {key: ready[key] for key in ("status", "reason", "message")}
    site.wait(lambda: len(site.get(_NODE)["spec"].get("taints", [])) == 2)
    return {"grace kept": in_time or seconds, "condition": words}


def _gone(name: str, least: float, period: float) -> Any:
    """Whether a pod goes only after some seconds of what was done before this row."""

    def see(site: Site) -> Any:
        began = site.kept["began"]
        path = f"{_PODS}/{name}"
        site.wait(lambda: site.request("GET", path).status == 404)
        seconds = time.monotonic() - began
        return {"in time": least <= seconds < least + period or seconds}

    return see


def _begin(site: Site) -> None:
    site.kept["began"] = time.monotonic()


SILENCE = (
    Row("silence: NotReady after its grace", _unknown),
    http(
        "silence: conditions",
        "GET",
        _NODE,
        None,
        "status.conditions.*.type status.conditions.*.status "
        "status.conditions.*.reason spec.taints.*.key spec.taints.*.effect",
    ),
    kubectl("silence: columns", f"get node {SILENT}"),
    do(
        "silence: its pods are known not to be Ready",
        lambda s: s.wait(
            lambda: (
                "True"
                not in [
                    c["status"]
                    for c in s.get(f"{_PODS}/lost-1")["status"]["conditions"]
                    if c["type"] == "Ready"
                ]
            )
        ),
    ),
    http("silence: its pods", "GET", f"{_PODS}/lost-1", None, "status.phase"),
    kubectl(
        "silence: columns of its pods",
        f"get pods --field-selector spec.nodeName={SILENT}",
    ),
    kubectl(
        "silence: drain of one pod does not end",
        f"drain {SILENT} --force --timeout=4s --pod-selector=none!=x",
        unordered=True,
    ),
    kubectl(
        "silence: the driver's drain does",
        f"drain {SILENT} --force --ignore-daemonsets --timeout=30s "
        "--skip-wait-for-delete-timeout=1",
        unordered=True,
    ),
    do("silence: began", _begin),
    kubectl(
        "silence: the driver's taint",
        f"taint node {SILENT} {_OUT_OF_SERVICE} --overwrite",
    ),
    Row("silence: pods that were evicted go then", _gone("lost-1", 0, 2 * _PERIOD)),
)


def _orphan(site: Site) -> None:
    spec = {
        "nodeName": SILENT,
        "containers": [{"name": "main", "image": "none"}],
        "tolerations": [{"operator": "Exists"}],
    }
    made = site.request("POST", _PODS, {"metadata": {"name": "orphan"}, "spec": spec})
    assert made.status == 201, made


ORPHANS = (
    do("orphans: a pod", _orphan),
    kubectl("orphans: delete the node", f"delete node {SILENT}"),
    do("orphans: began", _begin),
    http(
        "orphans: its pod is still there",
        "GET",
        f"{_PODS}/orphan",
        None,
        "kind metadata.name",
    ),
    Row("orphans: it goes after a while", _gone("orphan", 35, 60)),
)


def _restart(site: Site) -> Any:
    """What the server answers, in order, while it is restarted."""
    site.actions["stop"]()
    seen: list[Any] = []
    refused = [site.run("get", "nodes"), site.run("get", "--raw", "/readyz")]
    manifest = json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    )
    refused += [
        site.run(verb, "-f", "-", stdin=manifest) for verb in ("apply", "delete")
    ]
    site.actions["start"]()

    def answers() -> bool:
        try:
            status = site.request("GET", "/readyz").status
        except (OSError, HTTPException):
            status = 0
        if seen[-1:] != [status]:
            seen.append(status)
        return bool(status == 200)

    site.wait(answers)
    return {
        "refused": [[d.returncode, same(d.stderr).splitlines()[-1:]] for d in refused],
        "statuses": seen,
    }


RESTART = (
    Row("restart: what is answered meanwhile", _restart),
    http(
        "restart: tokens of before are good",
        "GET",
        "/api/",
        None,
        "versions",
        token="admin",
    ),
    http(
        "restart: what was written is there",
        "GET",
        "/api/v1/nodes",
        None,
        "items.*.metadata.name",
    ),
)


def _without_etcd(site: Site) -> Any:
    site.actions["lose etcd"]()
    answer = site.wait(
        lambda: (a := site.request("GET", "/readyz")).status != 200 and a
    )
    done = site.run("--request-timeout=20s", "get", "--raw", "/readyz")
    version = site.run("get", "--raw", "/version")
    began = time.monotonic()
    nodes = site.run("--request-timeout=15s", "get", "nodes")
    return {
        "status": answer.status,
        "type": answer.headers["Content-Type"].replace(" ", ""),
        "report": comparable(answer.body.decode().splitlines()),
        "exit": done.returncode,
        "words": done.stderr[:60],
        "version": version.returncode,
        "nodes": [nodes.returncode, same(nodes.stderr).splitlines()[-1:]],
        "nodes wait for the client's limit": time.monotonic() - began > 14,
    }


WITHOUT_ETCD = (
    Row("no etcd: reports", _without_etcd),
    http("no etcd: /livez", "GET", "/livez"),
)

ROWS = (*SILENCE, *ORPHANS, *RESTART, *WITHOUT_ETCD)
