# SPDX-License-Identifier: Apache-2.0
"""Workloads, disruption budgets, drains and deletes."""

import json
from typing import Any

from tests.helpers import kubeapi
from tests.real.differential.rows import (
    Row,
    do,
    http,
    kubectl,
    manifest_list,
    pick,
    shown,
)
from tests.real.differential.site import Site

_PODS = "/api/v1/namespaces/default/pods"
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_DRAIN = "--ignore-daemonsets --delete-emptydir-data --force"


def _replicated(site: Site) -> None:
    site.wait(lambda: len(_running(site)) == 2)


def _running(site: Site) -> list[Any]:
    return [
        pod
        for pod in site.get(f"{_PODS}?labelSelector=app%3Dweb")["items"]
        if "deletionTimestamp" not in pod["metadata"]
        and any(
            c["type"] == "Ready" and c["status"] == "True"
            for c in pod["status"].get("conditions", ())
        )
    ]


def _counted(site: Site) -> None:
    """Until the controllers have seen that the pods are Ready."""
    apps = "/apis/apps/v1/namespaces/default"

    def count(path: str, field: str) -> bool:
        return bool(pick(site.get(f"{apps}/{path}"), f"status.{field}") == 2)

    site.wait(lambda: count("deployments/web", "availableReplicas"))
    site.wait(lambda: count("daemonsets/agent", "numberAvailable"))


def _keep_pod(site: Site) -> None:
    _replicated(site)
    pod = min(_running(site), key=lambda one: one["spec"]["nodeName"])
    site.kept.update(
        pod=pod["metadata"]["name"],
        node=pod["spec"]["nodeName"],
        uid=pod["metadata"]["uid"],
    )


def _allowed(number: int) -> Any:
    def wait(site: Site) -> None:
        """Until the controller has counted."""

        def counted() -> bool:
            budgets = site.get(_BUDGETS)["items"]
            return bool(budgets) and all(
                pick(b, "status.disruptionsAllowed") == number
                and pick(b, "status.observedGeneration")
                == pick(b, "metadata.generation")
                for b in budgets
            )

        site.wait(counted)

    return wait


_PLACE = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {
                                "key": "kubernetes.io/hostname",
                                "operator": "In",
                                "values": ["w1", "w2"],
                            }
                        ]
                    }
                ]
            }
        }
    }
}
_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "bare", "namespace": "default"},
    "spec": {
        "containers": [{"name": "main", "image": "none"}],
        "nodeName": "w1",
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
}
_EVICT = _PODS + "/{pod}/eviction"
_EVICTION = {
    "apiVersion": "policy/v1",
    "kind": "Eviction",
    "metadata": {"namespace": "default"},
}


def _agent() -> Any:
    manifest = kubeapi.deployment(
        "agent", 1, tolerations=[{"operator": "Exists"}], **_PLACE
    )
    manifest["kind"] = "DaemonSet"
    del manifest["spec"]["replicas"]
    return manifest


def _evict(name: str, **more: Any) -> Row:
    """An eviction of the pod that is kept."""

    def see(site: Site) -> Any:
        metadata = {"namespace": "default", "name": site.kept["pod"]}
        eviction = {**_EVICTION, "metadata": metadata, **more}
        return shown(site.request("POST", _EVICT.format(**site.kept), eviction), ())

    return Row(name, see)


def _held(site: Site) -> Any:
    """The grace of a pod that ``kubectl drain`` evicts with another one."""
    held = {"name": "held", "labels": {"app": "held"}, "finalizers": ["example.org/x"]}
    spec = {**_POD["spec"], "tolerations": [{"operator": "Exists"}]}
    site.request("POST", _PODS, {"metadata": held, "spec": spec})
    options = ("--pod-selector=app=held", "--grace-period=7", "--timeout=3s")
    done = site.run("drain", "w1", *_DRAIN.split(), *options)
    metadata = site.get(f"{_PODS}/held")["metadata"]
    free = {"metadata": {"finalizers": None}}
    merge = {"Content-Type": "application/merge-patch+json"}
    site.request("PATCH", f"{_PODS}/held", free, headers=merge)
    site.request("DELETE", f"{_PODS}/held", {"gracePeriodSeconds": 0})
    site.run("uncordon", "w1")
    return {"exit": done.returncode, "grace": metadata["deletionGracePeriodSeconds"]}


def _second(**spec: Any) -> str:
    second = kubeapi.budget("web", **spec)
    second["metadata"]["name"] = "second"
    return json.dumps(second)


ROWS = (
    kubectl(
        "workloads: apply",
        "apply -f -",
        stdin=manifest_list(kubeapi.deployment("web", 2, **_PLACE), _agent()),
    ),
    kubectl(
        "workloads: apply again",
        "apply -f -",
        stdin=manifest_list(kubeapi.deployment("web", 2, **_PLACE), _agent()),
    ),
    do("workloads: two pods", _keep_pod),
    kubectl(
        "workloads: server-side apply",
        "apply --server-side -f -",
        stdin='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ssa"},"data":{"a":"b"}}',
    ),
    do("workloads: counted", _counted),
    kubectl("workloads: rollout", "rollout status deployment/web --timeout=30s"),
    kubectl("workloads: wide", "get deployments,daemonsets -o wide"),
    kubectl("workloads: columns of pods", "get pods -l app=web"),
    kubectl("workloads: columns of the deployment", "get deployment web"),
    http(
        "workloads: a pod",
        "GET",
        _PODS + "/{pod}",
        None,
        "# metadata.# metadata.ownerReferences.*.kind "
        "metadata.ownerReferences.*.# spec.restartPolicy "
        "spec.terminationGracePeriodSeconds spec.tolerations "
        "spec.serviceAccountName status.phase",
    ),
    kubectl("workloads: a pod of none", "apply -f -", stdin=json.dumps(_POD)),
    http(
        "workloads: a pod without containers",
        "POST",
        _PODS,
        {"metadata": {"name": "empty"}, "spec": {}},
    ),
    http(
        "budgets: 404 of an eviction",
        "POST",
        f"{_PODS}/none/eviction",
        {**_EVICTION, "metadata": {"name": "none"}},
    ),
    _evict("budgets: eviction as a dry run", deleteOptions={"dryRun": ["All"]}),
    _evict(
        "budgets: eviction of another object",
        deleteOptions={
            "preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}
        },
    ),
    _evict("budgets: eviction whose options are none", deleteOptions="x"),
    kubectl(
        "budgets: one that blocks",
        "apply -f -",
        stdin=json.dumps(kubeapi.budget("web", minAvailable=2)),
    ),
    do("budgets: counted", _allowed(0)),
    http(
        "budgets: status",
        "GET",
        f"{_BUDGETS}/web",
        None,
        "status.# status.currentHealthy status.desiredHealthy "
        "status.expectedPods status.disruptionsAllowed status.conditions.*.type "
        "status.conditions.*.reason status.conditions.*.#",
    ),
    kubectl("budgets: columns", "get pdb"),
    _evict("budgets: 429"),
    kubectl(
        "budgets: drain ends at its limit",
        f"drain {{node}} {_DRAIN} --timeout=3s",
        unordered=True,
    ),
    kubectl(
        "budgets: drain without leave",
        "drain {node} --timeout=3s",
        unordered=True,
    ),
    kubectl("budgets: drain of none", f"drain none {_DRAIN}"),
    kubectl("budgets: a second one", "apply -f -", stdin=_second(minAvailable=0)),
    _evict("budgets: 500 of two"),
    kubectl("budgets: the second goes", "delete pdb second"),
    kubectl(
        "budgets: applied otherwise",
        "apply -f -",
        stdin=json.dumps(kubeapi.budget("web", maxUnavailable="50%")),
    ),
    kubectl(
        "budgets: both kinds",
        "patch pdb web --type=merge -p "
        '\'{{"spec":{{"minAvailable":null,"maxUnavailable":"50%"}}}}\'',
    ),
    do("budgets: one may go", _allowed(1)),
    http(
        "budgets: status of percent",
        "GET",
        f"{_BUDGETS}/web",
        None,
        "status.currentHealthy status.desiredHealthy status.expectedPods "
        "status.disruptionsAllowed status.conditions.*.reason",
    ),
    kubectl(
        "drain: within the budget",
        f"drain {{node}} {_DRAIN} --timeout=60s",
        unordered=True,
    ),
    kubectl("drain: again", f"drain {{node}} {_DRAIN} --timeout=60s", unordered=True),
    Row("drain: another grace", _held),
    kubectl("drain: uncordon", "uncordon {node}"),
    do("drain: two pods", _keep_pod),
    do("drain: one may go", _allowed(1)),
    _evict("budgets: 201"),
    http(
        "budgets: a pod that is gone, or goes",
        "GET",
        _PODS + "/{pod}",
        None,
        "metadata.deletionGracePeriodSeconds",
    ),
    do("budgets: two pods", _keep_pod),
    kubectl(
        "delete: a pod at once, the driver's way",
        "delete pod {pod} --grace-period=0 --force --wait=false --ignore-not-found",
    ),
    kubectl(
        "delete: what is not there, the driver's way",
        "delete -f - --ignore-not-found --wait=false",
        stdin=manifest_list(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "none"}},
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": "none"},
            },
        ),
    ),
    do("delete: two pods", _keep_pod),
    http(
        "delete: a pod",
        "DELETE",
        _PODS + "/{pod}",
        None,
        "kind status.phase metadata.deletionGracePeriodSeconds",
    ),
    do("delete: two pods again", _keep_pod),
    http(
        "delete: a pod at once",
        "DELETE",
        _PODS + "/{pod}",
        {"gracePeriodSeconds": 0},
        "kind status.phase metadata.deletionGracePeriodSeconds",
    ),
    kubectl("delete: a deployment", "delete deployment web"),
    kubectl("namespaces: create", "create namespace blue"),
    http(
        "namespaces: delete",
        "DELETE",
        "/api/v1/namespaces/blue",
        None,
        "kind status.phase",
    ),
    kubectl(
        "namespaces: wait for its end",
        "wait namespace/blue --for=delete --timeout=60s",
    ),
)
