# SPDX-License-Identifier: Apache-2.0
"""Applications on a real cluster, and what its API says of them."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
import yaml

from lab import client
from tests.integration import applications
from tests.integration.applications import CHART
from tests.integration.cluster import ROOT, Cluster
from tests.real import workloads

#: Where the load balancer exposes the sample application.
NOTES_PORT = 8080
#: The sample's API with a Job that fails, below Files.
BROKEN = "notes/broken.yaml"
LIMITS = {"bootstrap": 300, "rollout": 120, "health": 60}


def source(api: str, place: Path) -> Path:
    """The samples, the applications' files, a chart's next version and a broken Job."""
    samples = ROOT / "samples" if api == "v1" else ROOT / "samples" / "v2"
    made = applications.source(samples, place)
    files = made / "vnfd" / "simple" / "Files"
    text = (files / "notes" / "api.yaml").read_text()
    broken = text.replace("< /etc/notes/schema.sql", "-e 'CREATE NONSENSE'")
    assert broken != text
    (files / BROKEN).write_text(broken)
    newer = files / "charts" / "web-0.2.0"
    shutil.copytree(CHART, newer)
    chart = newer / "Chart.yaml"
    chart.write_text(
        yaml.safe_dump({**yaml.safe_load(chart.read_text()), "version": "0.2.0"})
    )
    return made


def get(cluster: Cluster, *words: str) -> Any:
    return json.loads(cluster.kubectl("get", *words, "-o", "json"))


def query(cluster: Cluster, statement: str) -> str:
    """What the sample's database answers."""
    login = 'MYSQL_PWD="$MARIADB_ROOT_PASSWORD" mariadb -u root -h 127.0.0.1 notes'
    words = ("exec", "-n", "notes", "notes-db-0", "--", "sh", "-c")
    return cluster.kubectl(*words, f'{login} -N -e "{statement}"').strip()


def answers(cluster: Cluster) -> bool:
    """Whether the sample's API answers from outside, and it reaches its database."""
    url = f"http://{cluster.balancer_address()}:{NOTES_PORT}/healthz"
    with contextlib.suppress(requests.RequestException):
        answer = requests.get(url, timeout=10, headers={"Connection": "close"})
        return answer.ok and answer.text == "notes\n"
    return False


def wiki(version: str = "", **values: Any) -> dict[str, Any]:
    """One from the chart, which answers at no node port."""
    given = {"image": workloads.IMAGE, "containerPort": workloads.PORT, **values}
    path = f"Files/charts/web{version}"
    limits = {**LIMITS, "rollout": 30}
    return {"name": "wiki", "chart": {"path": path}, "values": given, "limits": limits}


@contextlib.contextmanager
def forwarded(cluster: Cluster) -> Iterator[int]:
    """The node registry's port on this machine, as options.rst has it."""
    cluster.kubectl("get", "nodes")
    words = ("-n", "kube-system", "port-forward", "service/registry", ":5000")
    argv = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = process.stdout.readline()
            yield int(told.partition(" -> ")[0].rpartition(":")[2])
        finally:
            process.terminate()


def pods(cluster: Cluster, app: str, namespace: str = "notes") -> list[dict[str, Any]]:
    """Those of a workload that are not about to end."""
    found = get(cluster, "pods", "-n", namespace, "-l", f"app={app}")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def living(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    """The pods of a namespace, if all of them are ready and none is leaving."""
    found = get(cluster, "pods", "-n", namespace)["items"]
    ready = all(
        "deletionTimestamp" not in pod["metadata"]
        and all(
            one["ready"]
            for one in pod["status"].get("containerStatuses", [{"ready": False}])
        )
        for pod in found
    )
    return found if ready else []


def released(cluster: Cluster) -> str:
    """The chart that Helm has installed for the second application."""
    words = ("helm", "list", "-n", "wiki", "-o", "json")
    told = client.on_host(
        cluster.server("masterNode"), *words, "--kubeconfig", client.ADMIN_CONF
    )
    (release,) = json.loads(told)
    assert release["status"] == "deployed"
    return str(release["chart"])
