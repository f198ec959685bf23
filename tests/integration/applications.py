# SPDX-License-Identifier: Apache-2.0
"""The sample application, one from a chart, and what a cluster has of them."""

import json
import shutil
from pathlib import Path
from typing import Any

import requests

from tests.integration.cluster import ROOT, Cluster
from tests.integration.v2 import ClusterV2

SAMPLE = ROOT / "samples" / "applications"
CHART = ROOT / "samples" / "cnf" / "Files" / "helm" / "web"
#: The metadata's entry.
ENTRY = "k8s_applications"
#: What the sample application consists of.
NOTES = {
    "statefulset.apps/notes-db",
    "job.batch/notes-schema",
    "deployment.apps/notes-api",
}
_KINDS = "deployments.apps,statefulsets.apps,jobs.batch"


def notes(**changes: Any) -> dict[str, Any]:
    """The sample's application, with a secret that a lab has."""
    (app,) = json.loads((SAMPLE / "applications.json").read_text())
    app["secrets"][0]["data"][0]["value"] = {"file": "ansible-server"}
    return {**app, **changes}


def source(samples: Path, place: Path, flavour: str = "simple") -> Path:
    """Samples with the files of the applications."""
    shutil.copytree(samples, place)
    files = place / "vnfd" / flavour / "Files"
    shutil.copytree(SAMPLE / "notes", files / "notes")
    shutil.copytree(CHART, files / "charts" / "web")
    return place


def want(cluster: Cluster, *apps: dict[str, Any], expect: str = "COMPLETED") -> str:
    """Have a cluster get these applications; the error text of the operation."""
    # Tacker's v2 API takes no long texts, its v1 API nothing but texts.
    entry = list(apps) if isinstance(cluster, ClusterV2) else json.dumps(apps)
    return cluster.modify({ENTRY: entry}, expect)


def workloads(cluster: Cluster, namespace: str) -> set[str]:
    """Kind and name of the workloads in a namespace."""
    return set(cluster.kubectl("get", _KINDS, "-n", namespace, "-o", "name").split())


def is_exposed(cluster: Cluster) -> bool:
    """Whether the load balancer exposes the sample's API."""
    owner = "app-notes.notes.notes-api.tcp.8090"
    return owner in json.dumps(cluster.balancer("status"))


def answer(cluster: Cluster) -> str:
    """What the sample's API answers through the load balancer; "" for nothing yet.

    In the laboratory a node answers in its place, with the pod's name.
    """
    url = f"http://{cluster.balancer_address()}:8090/"
    try:
        return requests.get(url, timeout=10).text
    except requests.RequestException:
        return ""
