# SPDX-License-Identifier: Apache-2.0
"""Objects of a cluster, as its API server has them."""

import json
from typing import Any

from tacker_k8s_mgmt.features.node_settings import marks

# Objects of a cluster.
META = {
    "name": "a",
    "namespace": "n",
    "uid": "u1",
    "generation": 2,
    "labels": {"app": "a", "tacker-k8s-mgmt/owner": "app.a"},
    "annotations": {"deprecated.daemonset.template.generation": "2"},
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "resourceVersion": "7",
    "finalizers": ["kubernetes"],
    "ownerReferences": [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "name": "w",
            "uid": "u1",
            "controller": True,
        }
    ],
}

MARKS = {"labels": ["a"], "annotations": [], "taints": [["k", "NoSchedule"]]}

NODE = {
    "kind": "Node",
    "metadata": {
        **META,
        "name": "w",
        "labels": {"disk": "2"},
        "annotations": {marks.APPLIED: json.dumps(MARKS)},
    },
    "spec": {
        "unschedulable": False,
        "providerID": "openstack:///1",
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    },
    "status": {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
        "conditions": [{"type": "Ready", "status": "False", "reason": "Bad"}],
        "nodeInfo": {"kubeletVersion": "v1.31.9", "machineID": "m", "bootID": "b"},
        "images": [{"sizeBytes": 5, "names": ["registry.k8s.io/pause:3.10"]}],
    },
}

EXPRESSION = {"key": "disk", "operator": "Gt", "values": ["1"]}

PLACEMENT = {
    "nodeSelector": {"disk": "2"},
    "tolerations": [
        {"key": "k", "operator": "Lt", "value": "5", "effect": "NoSchedule"}
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [EXPRESSION], "matchFields": []}
                ]
            }
        }
    },
}

POD = {
    "kind": "Pod",
    "metadata": META,
    "spec": {"nodeName": "w", "volumes": [{"emptyDir": {}}], **PLACEMENT},
    "status": {
        "phase": "Running",
        "podIPs": [{"ip": "10.1.0.1"}],
        "conditions": [
            {"type": "Ready", "status": "False"},
            {"type": "PodScheduled", "status": "False", "reason": "no", "message": "m"},
        ],
        "containerStatuses": [
            {
                "name": "c",
                "ready": False,
                "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "x"}},
                "lastState": {"terminated": {"exitCode": 1}},
            }
        ],
    },
}

BUDGET = {
    "kind": "PodDisruptionBudget",
    "metadata": META,
    "spec": {
        "minAvailable": 1,
        "selector": {"matchLabels": {"app": "a"}, "matchExpressions": [EXPRESSION]},
    },
    "status": {
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "disruptionsAllowed": 0,
        "conditions": [{"reason": "SyncFailed", "message": "m"}],
    },
}

EVENT = {
    "kind": "Event",
    "metadata": META,
    "involvedObject": {"uid": "u1", "kind": "Job"},
    "type": "Warning",
    "reason": "BackoffLimitExceeded",
    "message": "m",
    "lastTimestamp": "2026-01-01T00:00:00Z",
}

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": META,
    "spec": {
        "type": "LoadBalancer",
        "clusterIP": "10.96.0.1",
        "clusterIPs": ["10.96.0.1"],
        "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}],
        "loadBalancerSourceRanges": ["10.0.0.0/8", "10.0.0.1"],
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 31000,
    },
    "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ipMode": "Proxy"}]}},
}


def _workload(kind: str, version: str = "apps/v1") -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": META,
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"spec": PLACEMENT},
        },
        "status": {
            "observedGeneration": 2,
            "numberMisscheduled": 0,
            "updatedNumberScheduled": 1,
            "numberAvailable": 1,
            "desiredNumberScheduled": 1,
            "active": 1,
            "conditions": [{"type": "Suspended", "status": "True"}],
        },
    }


DAEMON_SET, JOB = _workload("DaemonSet"), _workload("Job", "batch/v1")

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": META,
    "spec": {
        "group": "g",
        "scope": "Cluster",
        "names": {"kind": "K", "plural": "ks"},
        "versions": [{"name": "v1", "served": True}],
    },
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c", "annotations": {}},
    "spec": {},
}

RESOURCES = "pods po v1 true Pod\nnodes no v1 false Node\nks ex.org/v1 false K\n"

KINDS = {"api-resources": RESOURCES, "api-versions": "v1\napps/v1\n"}
